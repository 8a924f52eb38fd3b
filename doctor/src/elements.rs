//! The elements of a page that contain all differences between two renders, as CSS selectors.

use std::{collections::HashMap, ops::Range};

use edgefront::page_cache::token_range;

use super::{
    difference::{self, Difference},
    pieces::Pieces,
    tokens::{attribute, start_tags},
};

/// Elements without content, which have no end tag.
const VOID: [&str; 13] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"];

/// Elements that are too large or too special to belong to one visitor.
const NEVER: [&str; 8] = ["html", "head", "body", "main", "title", "script", "style", "svg"];

/// Elements that select themselves if the page has one of them.
const LANDMARKS: [&str; 6] = ["header", "nav", "aside", "footer", "form", "dialog"];

/// Most elements of a page that a proposed selector may match.
const MAX_MATCHES: usize = 5;

const TOO_LARGE: &str = "the elements around all differences are more than half of the page.";
const WITH_ID: &str = "put each personal part into an element with an id that the pages of all visitors have";

/// Selectors of the smallest elements of `one` that contain everything that differs in `other`, except for pieces that change
/// for every request.
///
/// # Errors
/// The cause, as a part of a sentence: a difference is outside of all elements that both renders have and a selector can name,
/// or the elements are more than half of the page.
pub fn covering(one: &Pieces, other: &Pieces) -> Result<Vec<String>, String> {
    let (elements, counts) = (elements(one.texts()), (counts(one.texts()), counts(other.texts())));
    let is_in_both = |selector: &str| {
        let count = counts.0.get(selector);
        count == counts.1.get(selector) && count.is_some_and(|count| *count <= MAX_MATCHES)
    };
    let (mut chosen, mut uncovered): (Vec<(Range<usize>, String)>, _) = (Vec::new(), Vec::new());
    for (at, at_other) in one.changes_to(other) {
        if one.is_changing(at.clone()) && other.is_changing(at_other.clone()) {
            continue;
        }
        // A hole includes its element's start tag.
        let has_tag = tag_at(one, at.start).is_some_and(|name| tag_at(other, at_other.start) == Some(name));
        let starts_before = |start: usize| start < at.start || start == at.start && has_tag && !at.is_empty();
        let around =
            elements.iter().filter(|element| starts_before(element.range.start) && at.end <= element.range.end);
        // The last one to start is the smallest.
        let named = around.rev().find_map(|element| {
            let selector = element.selectors.iter().find(|selector| is_in_both(selector))?;
            Some((element.range.clone(), selector.clone()))
        });
        match named {
            Some(named) => chosen.push(named),
            None => uncovered.push((at, at_other)),
        }
    }
    if !uncovered.is_empty() {
        return Err(not_covered(one, other, &uncovered));
    }
    let is_inside = |inner: &Range<usize>, outer: &Range<usize>| outer.start < inner.start && inner.end <= outer.end;
    let all = chosen.clone();
    chosen.retain(|(range, _)| !all.iter().any(|(outer, _)| is_inside(range, outer)));
    chosen.sort_by_key(|(range, _)| range.start);
    chosen.dedup();
    // Tags, because a script with data has any number of pieces.
    let tags = |pieces: &[String]| pieces.iter().filter(|piece| piece.starts_with('<')).count();
    let covered: usize = chosen.iter().filter_map(|(range, _)| one.texts().get(range.clone())).map(tags).sum();
    let mut selectors: Vec<_> = chosen.into_iter().map(|(_, selector)| selector).collect();
    let mut seen = Vec::new();
    selectors.retain(|selector| {
        !seen.contains(selector) && {
            seen.push(selector.clone());
            true
        }
    });
    if covered * 2 <= tags(one.texts()) { Ok(selectors) } else { Err(format!("{TOO_LARGE} Let the shop {WITH_ID}")) }
}

/// The name of the start tag at this place.
fn tag_at(pieces: &Pieces, at: usize) -> Option<&str> {
    tag_name(pieces.texts().get(at)?)
}

/// The cause if no element covers these changes, and the remedies.
fn not_covered(one: &Pieces, other: &Pieces, changes: &[(Range<usize>, Range<usize>)]) -> String {
    let quoted = |text: &str| if text.is_empty() { "nothing".to_owned() } else { format!("`{text}`") };
    let first =
        changes.first().map(|(at, at_other)| difference::of_change((one, at.clone()), (other, at_other.clone()), &[]));
    let (first, second) = first.map(|found| (quoted(&found.one), quoted(&found.other))).unwrap_or_default();
    let mut remedies: Vec<_> = changes.iter().map(|(at, at_other)| remedy((one, at), (other, at_other))).collect();
    remedies.sort_unstable();
    remedies.dedup();
    format!(
        "the difference between {first} and {second} is in no element that HOLES can name. To cover all differences, let the shop {}",
        remedies.join(", and ")
    )
}

/// The change of the shop that lets an element cover a change.
fn remedy((one, at): (&Pieces, &Range<usize>), (other, at_other): (&Pieces, &Range<usize>)) -> &'static str {
    let pieces = |pieces: &Pieces, at: &Range<usize>| pieces.texts().get(at.clone()).unwrap_or_default().to_vec();
    let changed = [pieces(one, at), pieces(other, at_other)].concat();
    let is_root = |piece: &String| ["html", "body"].iter().any(|name| tag_name(piece) == Some(name));
    if changed.iter().any(is_root) {
        "send the same attributes of html and body to all visitors"
    } else if one.has_script(at.clone()) || other.has_script(at_other.clone()) {
        "send the same scripts to all visitors, and request the account's data with a script"
    } else {
        WITH_ID
    }
}

/// An element that a selector can name.
struct Element {
    /// From the start tag to the end tag, exclusive.
    range: Range<usize>,
    selectors: Vec<String>,
}

/// The elements of a page, in the order of their start tags. Without those inside of a `template`: `holes.js` looks for holes in the
/// document, and this content is in another tree, such as a shadow tree.
fn elements(pieces: &[String]) -> Vec<Element> {
    let mut elements: Vec<(usize, usize)> = Vec::new();
    // The open elements: the name, and the place in `elements`.
    let mut open: Vec<(String, usize)> = Vec::new();
    let mut is_nameable = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        if let Some(name) = piece.strip_prefix("</") {
            let name = name.trim_end_matches('>');
            if let Some(depth) = open.iter().rposition(|(open, _)| open == name) {
                // Elements without an end tag end with their parent.
                for (_, element) in open.drain(depth..) {
                    if let Some((_, end)) = elements.get_mut(element) {
                        *end = at;
                    }
                }
            }
        } else if let Some(name) = tag_name(piece).filter(|name| !VOID.contains(name)) {
            is_nameable.push(!open.iter().any(|(open, _)| open == "template"));
            open.push((name.to_owned(), elements.len()));
            elements.push((at, pieces.len()));
        }
    }
    let nameable =
        elements.into_iter().zip(is_nameable).filter_map(|(element, is_nameable)| is_nameable.then_some(element));
    let named = nameable.filter_map(|(start, end)| {
        let selectors = selectors(pieces.get(start)?);
        (!selectors.is_empty()).then_some(Element { range: start..end, selectors })
    });
    named.collect()
}

/// The number of elements for each selector.
fn counts(pieces: &[String]) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for selector in pieces.iter().flat_map(|piece| selectors(piece)) {
        *counts.entry(selector).or_default() += 1;
    }
    counts
}

/// Selectors of the elements with a token: fields, `meta` elements, scripts, and forms with one in their address. None if something
/// else differs between `one` and `other`, too, except for `noise`. A form field counts although it is noise, because a token may sign it.
pub fn tokens(one: &Pieces, other: &Pieces, noise: &[Difference]) -> Option<Vec<String>> {
    let mut found = Vec::new();
    for (difference, (at, at_other)) in difference::between(one, other, &[]).iter().zip(one.changes_to(other)) {
        let is_field = |index: usize| one.texts().get(index).is_some_and(|piece| tag_name(piece) == Some("input"));
        if !at.clone().any(is_field) && noise.iter().any(|noise| noise.explains(difference)) {
            continue;
        }
        if at.len() != at_other.len() {
            return None;
        }
        for index in at {
            let selector = token(one.texts(), index)?;
            if !found.contains(&selector) {
                found.push(selector);
            }
        }
    }
    Some(found)
}

/// The selector of a field or a `meta` element by its name, of a form by the parameter of its address, or of the page's own scripts.
fn token(pieces: &[String], at: usize) -> Option<String> {
    let piece = pieces.get(at)?;
    if !piece.starts_with('<') {
        let tag = pieces.get(..at)?.iter().rfind(|piece| piece.starts_with('<'))?;
        let is_inline = tag_name(tag) == Some("script") && attribute(&start_tags(tag).next()?, "src").is_none();
        return is_inline.then(|| "script:not([src])".to_owned());
    }
    if tag_name(piece) == Some("form") {
        let before = piece.get(..token_range(piece.as_bytes())?.start)?;
        let parameter = before.rsplit(['?', '&', ';']).next()?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=".contains(&byte);
        return parameter.bytes().all(is_plain).then(|| format!("form[action*='{parameter}']"));
    }
    let tag = tag_name(piece).filter(|name| ["input", "meta"].contains(name))?;
    named(tag, &attribute(&start_tags(piece).next()?, "name")?)
}

/// The selector of an element by its name. None if a selector cannot have the name as it is.
pub fn named(tag: &str, name: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_[].:".contains(&byte);
    (!name.is_empty() && name.bytes().all(is_plain)).then(|| format!("{tag}[name='{name}']"))
}

/// Returns whether an element is a custom one, such as `mini-cart`.
fn is_custom(name: &str) -> bool {
    name.contains('-') && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// The selectors that name an element, the most exact first: its id, its name with a class, its name.
fn selectors(piece: &str) -> Vec<String> {
    let Some(name) = tag_name(piece).filter(|name| !NEVER.contains(name)) else { return Vec::new() };
    let Some(tag) = start_tags(piece).next() else { return Vec::new() };
    let id = attribute(&tag, "id").filter(|id| is_identifier(id)).map(|id| format!("#{id}"));
    let classes = attribute(&tag, "class").unwrap_or_default();
    let classes = classes.split_whitespace().filter(|class| is_identifier(class));
    let classes = classes.map(|class| format!("{name}.{class}"));
    let by_name = (LANDMARKS.contains(&name) || is_custom(name)).then(|| name.to_owned());
    id.into_iter().chain(classes).chain(by_name).collect()
}

/// The name of a start tag.
fn tag_name(piece: &str) -> Option<&str> {
    let rest = piece.strip_prefix('<').filter(|rest| !rest.starts_with(['/', '!']))?;
    rest.split([' ', '>']).next()
}

/// Returns whether a text is a CSS identifier without escapes. Ids and classes with digits at their end are often generated.
fn is_identifier(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::{super::tokens::CsrfTokens, *};

    const REST: &str =
        "<h1>Mug</h1><p>A mug.</p><p>Blue.</p><p>5 EUR</p><ul><li>a<li>b<li>c</ul><p>End</p><p>Of page</p>";

    fn covering_of(one: &str, other: &str) -> Option<Vec<String>> {
        let pieces = |part: &str| Pieces::of(&format!("<html><body>{part}{REST}</body></html>"), CsrfTokens::Personal);
        covering(&pieces(one), &pieces(other)).ok()
    }

    #[test]
    fn the_smallest_named_element_covers_a_difference() {
        for (one, other, expected) in [
            ("<div id=user><a>Sign in</a></div>", "<div id=user><a>Ann</a></div>", "#user"),
            ("<div id=top><b class='cart n'>0</b></div>", "<div id=top><b class='cart n'>2</b></div>", "b.cart"),
            ("<div id=top><a href=/in>In</a></div>", "<div id=top><a href=/out>Out</a><i>Hi</i></div>", "#top"),
            ("<div id=top><a class=in>In</a></div>", "<div id=top><a class=out>In</a></div>", "#top"),
            ("<nav><img src=a><br>Guest</nav>", "<nav><img src=b><br>Ann</nav>", "nav"),
            ("<p class=x>0</p><p class=x>0</p>", "<p class=x>1</p><p class=x>1</p>", "p.x"),
            ("<div id=a><ul id=b><li>1<li>2</ul>0</div>", "<div id=a><ul id=b><li>1<li>3</ul>1</div>", "#a"),
            ("<div id=9a class=x:y><b id=b>0</b></div>", "<div id=9a class=x:y><b id=b>1</b></div>", "#b"),
            ("<div id=top><b id=b title=0>Cart</b></div>", "<div id=top><b id=b title=2>Cart</b></div>", "#b"),
            ("<div id=top><b id=b title=0>-</b></div>", "<div id=top><i>1</i><b id=b title=2>-</b></div>", "#top"),
            ("<mini-cart count=0>Cart</mini-cart>", "<mini-cart count=2>Cart</mini-cart>", "mini-cart"),
            (
                "<my-top><template shadowrootmode=open><b id=n>0</b></template></my-top>",
                "<my-top><template shadowrootmode=open><b id=n>1</b></template></my-top>",
                "my-top",
            ),
        ] {
            assert_eq!(covering_of(one, other), Some(vec![expected.to_owned()]), "{one}");
        }
        assert_eq!(covering_of("<p>same</p>", "<p>same</p>"), Some(Vec::new()));
        let two = covering_of("<i id=a>0</i><i>-</i><i id=b>0</i>", "<i id=a>1</i><i>-</i><i id=b>1</i>");
        assert_eq!(two, Some(vec!["#a".to_owned(), "#b".to_owned()]));
    }

    #[test]
    fn tokens_are_fields_meta_elements_scripts_and_addresses_of_forms() {
        let pieces = |html: &str| Pieces::of(html, CsrfTokens::Personal);
        let form = |token| {
            format!("<meta name=csrf-token content={token}><b>a</b><input type=hidden name='f[_token]' value={token}>")
        };
        let selectors = tokens(&pieces(&form("1")), &pieces(&form("2")), &[]);
        assert_eq!(selectors.unwrap(), ["meta[name='csrf-token']", "input[name='f[_token]']"]);
        let script = |token| format!("<script>var shop = {{debug: 0, csrf_token: '{token}', user: 4}}</script>");
        let selectors = tokens(&pieces(&script("1")), &pieces(&script("2")), &[]);
        assert_eq!(selectors.unwrap(), ["script:not([src])"]);
        let form = |token| format!("<form action='/a?id=1&amp;my_token=0123456789abcde{token}'>");
        let selectors = tokens(&pieces(&form("1")), &pieces(&form("2")), &[]);
        assert_eq!(selectors.unwrap(), ["form[action*='my_token=']"]);
        for (one, other) in [("<b>1</b>", "<b>2</b>"), ("<input value=1>", "<input value=2>"), ("<i>", "<b>")] {
            assert_eq!(tokens(&pieces(one), &pieces(other), &[]), None, "{one}");
        }
    }

    #[test]
    fn a_difference_without_a_named_element_is_not_covered() {
        for (one, other) in [
            ("<p>Guest</p>", "<p>Ann</p>"),
            ("<body class=guest>", "<body class=user>"),
            ("<i id=guest>0</i>", "<i id=ann>0</i>"),
            ("<script>user = 0</script>", "<script>user = 1</script>"),
            ("<b class=n>0</b>", "<b class=n>1</b><b class=n>new</b>"),
        ] {
            assert_eq!(covering_of(one, other), None, "{one}");
        }
        let page = |name| format!("<div id=page><p>{name}</p>{REST}{REST}</div>");
        assert_eq!(covering_of(&page("Guest"), &page("Ann")), None, "most of the page");
        let app = |name| Pieces::of(&page(name).replace("div id=page", "app-root"), CsrfTokens::Personal);
        let cause = covering(&app("Guest"), &app("Ann")).unwrap_err();
        assert!(cause.contains("more than half of the page") && cause.ends_with(WITH_ID), "{cause}");
        let with_data = |name| format!("{}<script>data = [{}0]</script>", page(name), "1,".repeat(1_000));
        assert_eq!(
            covering_of(&with_data("Guest"), &with_data("Ann")),
            None,
            "data are no part of what the visitor sees"
        );
    }
}
