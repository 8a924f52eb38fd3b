//! A form field: what the template `form_field.html` shows, and the check of a required text.

use super::SubmittedForm;

/// A required form field.
pub(in crate::demo) struct FormField {
    pub name: &'static str,
    pub label: &'static str,
    /// `text`, `email`, `password` or `textarea`.
    pub kind: &'static str,
    /// The browser's autofill hint (HTML standard, §4.10.18.7).
    pub autocomplete: &'static str,
    /// The longest value in characters.
    pub max: usize,
    /// A rule shown above the field; empty for none.
    pub hint: &'static str,
    pub value: String,
    /// The error message shown below the field.
    pub problem: Option<String>,
}

impl FormField {
    pub(in crate::demo) const fn new(
        name: &'static str,
        label: &'static str,
        kind: &'static str,
        autocomplete: &'static str,
        max: usize,
    ) -> Self {
        Self { name, label, kind, autocomplete, max, hint: "", value: String::new(), problem: None }
    }

    pub(in crate::demo) const fn with_hint(mut self, hint: &'static str) -> Self {
        self.hint = hint;
        self
    }

    /// Takes the value from `form`, except a password: no page sends it back.
    pub(in crate::demo) fn filled_from(mut self, form: &SubmittedForm) -> Self {
        if self.kind != "password" {
            form.trimmed(self.name).clone_into(&mut self.value);
        }
        self
    }

    pub(in crate::demo) fn with_problem(mut self, problem: Option<&str>) -> Self {
        self.problem = problem.map(str::to_owned);
        self
    }

    /// Sets the problem of a value that is missing, too long, or contains invisible characters.
    pub(in crate::demo) fn check_text(self) -> Self {
        let length = self.value.chars().count();
        let problem = if length == 0 {
            Some(format!("Please enter your {}.", self.label.to_lowercase()))
        } else if length > self.max {
            Some(format!("This is too long ({length} characters). Please use at most {} characters.", self.max))
        } else if has_invisible(&self.value, self.kind != "email") {
            Some("This contains an invisible character. Please delete the text and type it again.".to_owned())
        } else {
            None
        };
        Self { problem, ..self }
    }
}

/// True if `text` has a character that nobody sees. With `joiners`, a joiner between two characters beyond ASCII counts
/// as visible: it changes the letters of Persian and Hindi, and combines emoji.
fn has_invisible(text: &str, joiners: bool) -> bool {
    let mut last = ' ';
    let mut is_joining = false;
    for character in text.chars() {
        if joiners && !is_joining && !last.is_ascii() && matches!(character, '\u{200c}' | '\u{200d}') {
            is_joining = true;
        } else if is_invisible(character) || (is_joining && character.is_ascii()) {
            return true;
        } else {
            (last, is_joining) = (character, false);
        }
    }
    is_joining
}

/// Control characters, the replacement character for invalid UTF-8, and characters that have no width or change the
/// text direction (Unicode Technical Report 36, §2.10). They could make two different names look the same.
fn is_invisible(character: char) -> bool {
    let is_format = matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fffd}');
    is_format || (character.is_control() && character != '\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_required_text_must_fit_and_be_visible() {
        let check = |value: &str| {
            let field = FormField { value: value.to_owned(), ..FormField::new("name", "Full name", "text", "name", 5) };
            field.check_text().problem
        };
        assert_eq!(check("äöüßé"), None);
        assert_eq!(check(""), Some("Please enter your full name.".to_owned()));
        assert!(check("Ada Lovelace").unwrap().contains("at most 5"));
        assert!(check("a\0b").is_some());
    }

    #[test]
    fn a_joiner_is_allowed_where_a_script_needs_it() {
        for name in ["علی\u{200c}رضا", "क्\u{200d}ष", "👩\u{200d}👧"] {
            assert!(!has_invisible(name, true) && has_invisible(name, false), "{name}");
        }
        for name in ["A\u{200d}da", "Ada\u{200c}", "\u{200d}é", "é\u{200d}\u{200d}é", "é\u{200b}é"] {
            assert!(has_invisible(name, true), "{name}");
        }
    }
}
