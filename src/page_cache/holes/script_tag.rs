//! The tag of the script that fills holes in the browser.

use super::placeholder::Placeholder;
use crate::ports::{
    assets::{Asset, asset},
    html,
};

/// The script that fills the holes of a page whose content did not arrive with it.
const SCRIPT: Asset = asset!("holes.js");

/// The tag that lets [`SCRIPT`] replace the element before it. A module runs once, however often its tag is repeated.
/// `attributes`: empty, or those of [`token_tag`].
#[must_use]
pub fn script_tag(selector: &str, index: usize, attributes: &str) -> String {
    let selector = escaped(selector);
    format!(r#"<script type="module" src="{SCRIPT}" data-hole="{selector}" data-index="{index}"{attributes}></script>"#)
}

/// The tag of a token.
pub(super) fn token_tag(Placeholder { selector, form, index, .. }: &Placeholder) -> String {
    let form = if form.is_empty() { String::new() } else { format!(" data-form=\"{}\"", escaped(form)) };
    script_tag(selector, *index, &(form + ON_USE))
}

/// Text as the value of an attribute in double quotes, without `>`.
fn escaped(text: &str) -> String {
    html::escaped(text).replace('"', "&quot;").replace('>', "&gt;")
}

/// The script waits until the visitor uses a form.
pub(super) const ON_USE: &str = " data-on-use";

/// The length of a script tag for a token at the start of `html`, also of an older version of the script; 0 without one.
pub(super) fn tag_length(html: &[u8]) -> usize {
    const START: &[u8] = br#"<script type="module" src="/_edge/assets/holes.js"#;
    // No attribute contains `>`: see [`script_tag`].
    let end = html.iter().position(|byte| *byte == b'>').unwrap_or_default();
    let is_tag = html.starts_with(START) && html.get(..end).is_some_and(|tag| tag.ends_with(ON_USE.as_bytes()));
    if is_tag { end + "></script>".len() } else { 0 }
}
