//! The template of a page: the parts of its HTML that pages from one template have in common.

use std::collections::BTreeSet;

use html5gum::StartTag;
use http::StatusCode;

use super::{
    carts, difference, elements,
    personal::has_personal_name,
    tokens::{attribute, start_tags},
};

/// Two pages from one template share at least this part of their elements, as a fraction (Jaccard index).
const MIN_SHARED: (usize, usize) = (85, 100);
/// A shorter name of a page occurs in other classes by chance.
const MIN_NAME: usize = 3;
/// Parts of the names and `autocomplete` values of fields that only a visitor's own pages have.
const PERSONAL_FIELDS: [&str; 9] =
    ["password", "passwd", "cc-", "card_number", "cardnumber", "one-time-code", "street", "postcode", "postal"];

/// The template of one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    status: StatusCode,
    /// Name, classes and id of each element, without digits and without the page's own name.
    elements: BTreeSet<String>,
    /// Method and field names of each form.
    forms: BTreeSet<String>,
    /// Selectors of the fields and `meta` elements with a CSRF token. None: one that no selector can name.
    pub tokens: BTreeSet<Option<String>>,
    /// A form of the page belongs to a login, a registration, a checkout or an account.
    pub has_personal_form: bool,
}

impl Template {
    /// Reads a page. `path`: its canonical path.
    pub fn of(status: StatusCode, html: &str, path: &str) -> Self {
        let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let mut template = Self {
            status,
            elements: BTreeSet::new(),
            forms: BTreeSet::new(),
            tokens: BTreeSet::new(),
            has_personal_form: false,
        };
        let mut form: Option<Form> = None;
        for tag in start_tags(html) {
            template.elements.insert(element(&tag, name));
            if is_token(&tag) {
                let name = attribute(&tag, "name").unwrap_or_default();
                template.tokens.insert(elements::named(&String::from_utf8_lossy(&tag.name), &name));
            }
            template.has_personal_form |= is_personal(&tag);
            match &**tag.name {
                // A form cannot contain another one, so a form ends where the next one starts.
                b"form" => template.forms.extend(form.replace(Form::of(&tag)).map(Form::into_kind)),
                b"input" | b"select" | b"textarea" => {
                    if let Some(form) = &mut form {
                        form.fields.extend(attribute(&tag, "name").as_deref().map(plain));
                    }
                }
                _ => {}
            }
        }
        template.forms.extend(form.map(Form::into_kind));
        template
    }

    /// Returns whether the shop refused the request: 4xx or 5xx.
    pub fn is_error(&self) -> bool {
        self.status.is_client_error() || self.status.is_server_error()
    }

    /// Returns whether both pages come from one template.
    pub fn is_like(&self, other: &Self) -> bool {
        let shared = self.elements.intersection(&other.elements).count();
        let all = self.elements.union(&other.elements).count();
        self.status == other.status && self.forms == other.forms && shared * MIN_SHARED.1 >= all * MIN_SHARED.0
    }
}

/// A form that is being read.
struct Form {
    method: String,
    fields: BTreeSet<String>,
}

impl Form {
    fn of(tag: &StartTag<()>) -> Self {
        let method = attribute(tag, "method").unwrap_or_default().to_ascii_lowercase();
        Self { method, fields: BTreeSet::new() }
    }

    fn into_kind(self) -> String {
        format!("{} {}", self.method, self.fields.into_iter().collect::<Vec<_>>().join(","))
    }
}

fn element(tag: &StartTag<()>, name: &str) -> String {
    let part = |attribute_name: &str| {
        let text = plain(&attribute(tag, attribute_name).unwrap_or_default());
        let text = if name.len() < MIN_NAME { text } else { text.replace(&plain(name), "") };
        text.split_whitespace().collect::<Vec<_>>().join(".")
    };
    format!("{} {} {}", String::from_utf8_lossy(&tag.name), part("class"), part("id"))
}

/// A text without digits. Ids and classes often contain the number of a record.
fn plain(text: &str) -> String {
    text.chars().filter(|character| !character.is_ascii_digit()).collect()
}

/// Returns whether an element is a hidden field or a `meta` element with a CSRF token.
fn is_token(tag: &StartTag<()>) -> bool {
    let is_hidden = || attribute(tag, "type").is_some_and(|kind| kind.eq_ignore_ascii_case("hidden"));
    let may_hold_token = **tag.name == *b"meta" || **tag.name == *b"input" && is_hidden();
    may_hold_token && attribute(tag, "name").is_some_and(|name| difference::is_csrf_name(&name.to_ascii_lowercase()))
}

/// Returns whether an element belongs to a form of one visitor. Forms that add to a cart are on pages for everybody, too.
fn is_personal(tag: &StartTag<()>) -> bool {
    if **tag.name == *b"form" {
        let action = attribute(tag, "action").unwrap_or_default();
        let path = action.split(['?', '#']).next().unwrap_or_default();
        return has_personal_name(path) && !carts::is_cart(path);
    }
    let values = ["type", "name", "autocomplete"].into_iter().filter_map(|name| attribute(tag, name));
    **tag.name == *b"input"
        && values
            .map(|value| value.to_ascii_lowercase())
            .any(|value| PERSONAL_FIELDS.iter().any(|field| value.contains(field)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(path: &str, html: &str) -> Template {
        Template::of(StatusCode::OK, html, path)
    }

    #[test]
    fn pages_with_other_products_have_one_template() {
        let page = |name: &str, number: usize, products: usize| {
            let product =
                "<li class='card item-7'><form method=post><input name=quantity><button>Add</button></form></li>";
            let html =
                format!("<body class='page page-{name}'><h1 id=t{number}>{name}</h1>{}", product.repeat(products));
            template(&format!("/categories/{name}"), &html)
        };
        assert!(page("books", 1, 3).is_like(&page("toys", 22, 1)));
        assert!(!page("books", 1, 3).is_like(&page("toys", 1, 0)), "no form");
    }

    #[test]
    fn other_elements_or_forms_are_another_template() {
        let list = "<body><h1>A</h1><ul class=products><li><a href=/1>1</a></ul>";
        let one = template("/c/a", list);
        for other in ["<body><h1>A</h1><p>Text</p>", &format!("{list}<form><input name=email></form>")] {
            assert!(!one.is_like(&template("/c/b", other)), "{other}");
        }
        assert!(one.is_like(&template("/c/b", "<body><h1>B</h1><ul class=products><li><a href=/2>2</a><li></ul>")));
        assert!(!one.is_like(&Template::of(StatusCode::NOT_FOUND, list, "/c/a")));
    }

    #[test]
    fn forms_of_one_visitor_and_tokens_are_found() {
        for (html, is_personal) in [
            ("<form action=/session><input type=password>", true),
            ("<form action=/account/register?next=/><input name=email>", true),
            ("<form action=/buy><input autocomplete='billing street-address'>", true),
            ("<form action=/cart/add><input name=quantity>", false),
            ("<form action=/search><input name=q>", false),
        ] {
            assert_eq!(template("/x/a", html).has_personal_form, is_personal, "{html}");
        }
        let html =
            "<meta name=csrf-token content=1><input type=hidden name=_token><input name=token><meta name=author>";
        let tokens = ["meta[name='csrf-token']", "input[name='_token']"].map(|selector| Some(selector.to_owned()));
        assert_eq!(template("/x/a", html).tokens, BTreeSet::from(tokens));
    }
}
