//! Checks an email.

use crate::{demo::forms::FormField, schema::ids::UserId};

/// Converts the field's value to lower case and checks it. People type their email with capitals at times, and no
/// current provider distinguishes two mailboxes by them.
pub(in crate::demo) fn check_email(mut field: FormField) -> FormField {
    field.value = field.value.to_ascii_lowercase();
    field = field.check_text();
    if field.problem.is_none() && !is_email(&field.value) {
        field.problem = Some("This email is not valid. Please enter one like ada@example.org.".to_owned());
    }
    field
}

/// True if `text` is a mailbox in dot-atom form (RFC 5321 §4.1.2) of characters that a [`UserId`] allows.
fn is_email(text: &str) -> bool {
    let Some((mailbox, host)) = text.rsplit_once('@') else { return false };
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_atom = |atom: &str| !atom.is_empty() && !atom.contains(['@', '(', ')', '<', '>', '[', ']', ':', ';']);
    mailbox.split('.').all(is_atom)
        && host.contains('.')
        && host.split('.').all(is_label)
        && UserId::parse(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_email_is_a_valid_user_id() {
        for email in ["ada@example.org", "a.b+c@mail.example-shop.co.uk", "o'neill_1@x.io"] {
            assert!(is_email(email), "{email}");
        }
        for email in [
            "",
            "ada",
            "@example.org",
            "ada@",
            "ada@example",
            "ada@-a.org",
            "ada@a..org",
            ".ada@a.org",
            "a b@a.org",
            "a@b@c.org",
            "a,b@a.org",
            "<ada@a.org>",
            "ädä@a.org",
            "ada@ä.org",
            &format!("{}@a.org", "a".repeat(130)),
        ] {
            assert!(!is_email(email), "{email}");
        }
    }

    #[test]
    fn an_email_is_kept_in_lower_case() {
        let field = FormField::new("email", "Email", "email", "email", 128);
        let checked = check_email(FormField { value: "Ada@Example.ORG".to_owned(), ..field });
        assert_eq!((checked.value.as_str(), checked.problem), ("ada@example.org", None));
    }
}
