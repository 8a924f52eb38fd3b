//! Kinds of pages: addresses with the same path pattern.
//!
//! A segment of a path becomes `*` if it looks like one of many: it contains a digit, or it has many siblings. At the top of the site,
//! a digit counts only if several siblings have one, and a number before a name does not count. Siblings that have pages below them count apart from those that have none. A segment
//! without a digit keeps its name if most pages of the level above have it, such as `reviews` of each product, or if it names pages
//! of one visitor, such as `cart`.

use std::collections::{HashMap, HashSet};

use edgefront::{config::rules::UrlRules, page_cache::PageKey};
use url::Url;

use super::{parameters, personal::has_personal_name};

/// Minimum number of siblings that makes a segment one of many.
const MANY: usize = 6;
/// Minimum number of pages with a segment below them that makes the segment the name of a page that each of them has.
const MANY_PARENTS: usize = 3;
/// As [`MANY`], at the top of the site or of a language, which has many pages of its own, such as /about and /chairs. A rule that
/// names all of them names pages of any kind, so up to this number they have rules of their own.
const MANY_AT_TOP: usize = 24;
/// Minimum number of siblings with a digit at the top. Fewer may be single pages, such as `/sale-50` and `/error404`.
const MANY_NUMBERED_AT_TOP: usize = 3;

/// The parts of an address that say of which kind its page is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The path without its first slash. The item's segment is `{item}`.
    segments: Vec<String>,
    /// The names of the query parameters that are part of the page's key, with the value if it [names the
    /// kind](parameters::is_of_kind).
    parameters: Vec<String>,
}

impl Shape {
    /// Reads an address with the rules of the shop.
    pub fn of(url: &Url, rules: &UrlRules) -> Self {
        let key = PageKey::of_url(url.as_str(), rules).ok();
        let canonical = key.as_ref().and_then(|key| Url::parse(key.url()).ok());
        let url = canonical.as_ref().unwrap_or(url);
        let item = key.as_ref().and_then(|key| key.item()).map(ToString::to_string);
        let named = |text: &str| if item.as_deref() == Some(text) { "{item}".to_owned() } else { text.to_owned() };
        let parameter = |(name, value): (std::borrow::Cow<str>, std::borrow::Cow<str>)| {
            if item.as_deref() == Some(&*value) {
                format!("{name}={{item}}")
            } else if parameters::is_of_kind(&name, &value, &rules.query) {
                format!("{name}={value}")
            } else {
                name.into_owned()
            }
        };
        let mut parameters: Vec<_> = url.query_pairs().map(parameter).collect();
        parameters.sort();
        parameters.dedup();
        Self { segments: url.path().split('/').skip(1).map(named).collect(), parameters }
    }

    /// Number of query parameters of the address.
    pub fn parameters(&self) -> usize {
        self.parameters.len()
    }

    fn is_last(&self, depth: usize) -> bool {
        // A final slash is part of the last segment.
        depth + 1 == self.segments.len()
            || (depth + 2 == self.segments.len() && self.segments.last().is_some_and(String::is_empty))
    }
}

/// The pattern of each address, such as `/catalogue/{item}/` or `/search?q`. All addresses of the site are needed to
/// learn the patterns.
pub fn patterns(shapes: &[Shape]) -> Vec<String> {
    let mut patterns = vec![String::new(); shapes.len()];
    let depth = shapes.iter().map(|shape| shape.segments.len()).max().unwrap_or_default();
    for depth in 0..depth {
        let mut siblings: HashMap<(String, bool), HashSet<&str>> = HashMap::new();
        let mut parents: HashMap<String, Parents> = HashMap::new();
        for (pattern, shape) in patterns.iter().zip(shapes) {
            if let (Some(segment), Some(parent)) = (shape.segments.get(depth), shape.segments.get(..depth)) {
                siblings.entry((pattern.clone(), shape.is_last(depth))).or_default().insert(segment);
                parents.entry(pattern.clone()).or_default().add(segment, parent);
            }
        }
        for (pattern, shape) in patterns.iter_mut().zip(shapes) {
            let Some(segment) = shape.segments.get(depth) else { continue };
            let is_top = is_top(pattern);
            let many = if is_top { MANY_AT_TOP } else { MANY };
            let siblings = || siblings.get(&(pattern.clone(), shape.is_last(depth))).into_iter().flatten();
            // A page such as `/shop/cart` does not count as one of many products such as `/shop/item-7`.
            let is_one_of_many = || siblings().filter(|sibling| !has_digit(sibling)).count() >= many;
            let are_many_numbered =
                || siblings().filter(|sibling| has_own_digit(sibling)).count() >= MANY_NUMBERED_AT_TOP;
            let is_literal = segment.is_empty() || segment == "{item}";
            let is_numbered = if is_top { has_own_digit(segment) && are_many_numbered() } else { has_digit(segment) };
            let has_most_parents = || parents.get(pattern).is_some_and(|parents| parents.have_mostly(segment));
            let is_name = || has_most_parents() || has_personal_name(segment);
            let is_variable = !is_literal && (is_numbered || is_one_of_many() && !is_name());
            pattern.push('/');
            pattern.push_str(if is_variable { "*" } else { segment });
        }
    }
    let with_parameters = |(pattern, shape): (String, &Shape)| match shape.parameters.as_slice() {
        [] => pattern,
        parameters => format!("{pattern}?{}", parameters.join("&")),
    };
    patterns.into_iter().zip(shapes).map(with_parameters).collect()
}

fn has_digit(segment: &str) -> bool {
    segment.bytes().any(|byte| byte.is_ascii_digit())
}

/// Returns whether a segment at the top has a digit. The name of a category may begin with its number, as in `/3-mugs` of `PrestaShop`.
fn has_own_digit(segment: &str) -> bool {
    let is_numbered = segment.starts_with(|first: char| first.is_ascii_digit())
        && segment.contains(|letter: char| letter.is_ascii_alphabetic());
    has_digit(segment) && !is_numbered
}

/// The pattern in `ITEM_ROUTES` for the pages of a kind. Only the last segment can name the item: a page below an item, such as its
/// reviews, would count as a view of the item. The number of a list's page names nothing.
pub fn item_route(kind: &str) -> Option<String> {
    let before = kind.trim_end_matches('/').strip_suffix("/*")?;
    let is_list = before.is_empty() || before.contains(['*', '?']) || before.ends_with("/page");
    (!is_list).then(|| kind.replace('*', "{item}"))
}

/// Returns whether a pattern is the top of the site or of a language: empty, or `/en`.
pub fn is_top(pattern: &str) -> bool {
    pattern.is_empty() || pattern.strip_prefix('/').is_some_and(is_locale_segment)
}

/// Returns whether a segment of a path has the form of a language or a country, such as `en`, `pt-br` or `us`. Any two letters
/// count: a list of languages would lack some of the countries.
pub fn is_locale_segment(segment: &str) -> bool {
    let is_short = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_alphabetic());
    segment.split(['-', '_']).all(is_short)
}

/// The paths of one pattern that have pages below them.
#[derive(Default)]
struct Parents<'a> {
    all: HashSet<&'a [String]>,
    /// The paths below which there is a segment.
    of_segment: HashMap<&'a str, HashSet<&'a [String]>>,
}

impl<'a> Parents<'a> {
    fn add(&mut self, segment: &'a str, parent: &'a [String]) {
        self.all.insert(parent);
        self.of_segment.entry(segment).or_default().insert(parent);
    }

    /// Returns whether at least half of the paths have the segment below them.
    fn have_mostly(&self, segment: &str) -> bool {
        let count = self.of_segment.get(segment).map_or(0, HashSet::len);
        count >= MANY_PARENTS && 2 * count >= self.all.len()
    }
}

#[cfg(test)]
mod tests {
    use edgefront::config::item_routes::ItemRoutes;

    use super::*;

    fn kinds(paths: &[String]) -> Vec<String> {
        let rules = UrlRules { items: ItemRoutes::parse("/product/{item}").unwrap(), ..UrlRules::default() };
        let site = Url::parse("https://shop.example").unwrap();
        let shapes: Vec<_> = paths.iter().map(|path| Shape::of(&site.join(path).unwrap(), &rules)).collect();
        let mut kinds = patterns(&shapes);
        kinds.sort();
        kinds.dedup();
        kinds
    }

    #[test]
    fn pages_of_the_same_form_are_one_kind() {
        let words = ["red", "green", "blue", "black", "white", "grey", "pink"];
        let mut paths: Vec<_> = [
            "/",
            "/?route=a/list&path=1",
            "/?route=a/item&id=2",
            "/about/",
            "/cart",
            "/search?q=mug",
            "/search?q=cup&page=2",
            "/product/a",
            "/product/b",
        ]
        .map(str::to_owned)
        .into();
        paths.extend(words.map(|word| format!("/shoes/{word}/")));
        paths.extend(words.map(|word| format!("/shoes/{word}/sizes/")));
        paths.extend((0..3).map(|number| format!("/blog/post-{number}.html")));
        let expected = [
            "/",
            "/?id&route=a/item",
            "/?path&route=a/list",
            "/about/",
            "/blog/*",
            "/cart",
            "/product/{item}",
            "/search?page&q",
            "/search?q",
            "/shoes/*/",
            "/shoes/*/sizes/",
        ];
        assert_eq!(kinds(&paths), expected);
    }

    #[test]
    fn a_page_that_most_parents_have_keeps_its_name() {
        let events = ["autumn", "winter", "spring", "summer", "harbour", "river"];
        let mut paths: Vec<_> = events.map(|event| format!("/hall/{event}/resend/")).into();
        paths.extend((1..8).map(|date| format!("/hall/series/{date}/")));
        assert_eq!(kinds(&paths), ["/hall/*/*/", "/hall/*/resend/"]);
        let in_categories = |product: &str| ["sale", "new", "red"].map(|category| format!("/{category}/{product}"));
        let words = ["lamp", "mug", "bowl", "vase", "chair", "desk", "rug"];
        let mut paths: Vec<_> = (0..12).map(|shop| format!("/shop-{shop}/{}", words[shop % 7])).collect();
        paths.extend(in_categories("lamp").map(|path| format!("/shop-1{path}")));
        assert_eq!(kinds(&paths), ["/*/*", "/*/new/lamp", "/*/red/lamp", "/*/sale/lamp"]);
    }

    #[test]
    fn many_pages_at_the_top_stay_apart_and_so_does_a_cart() {
        let words = ["chairs", "tables", "lamps", "beds", "rugs", "about", "login", "cart"];
        let paths: Vec<_> = words.iter().flat_map(|word| [format!("/{word}"), format!("/en/{word}")]).collect();
        assert_eq!(kinds(&paths).len(), paths.len());
        let categories: Vec<_> = ["/3-mugs", "/4-plates", "/en/3-mugs", "/en/4-plates"].map(str::to_owned).into();
        assert_eq!(kinds(&categories), categories);
        let numbers: Vec<_> = ["/17", "/18", "/19", "/3-mugs/17-red.html"].map(str::to_owned).into();
        assert_eq!(kinds(&numbers), ["/*", "/3-mugs/*"]);
        assert_eq!(kinds(&numbers[..2]), ["/17", "/18"], "too few pages are no evidence");
        let below = words.map(|word| format!("/shop/{word}"));
        assert_eq!(kinds(&below), ["/shop/*", "/shop/cart", "/shop/login"]);
        let numbered: Vec<_> =
            (0..8).map(|number| format!("/shop/item-{number}")).chain(["/shop/bag".to_owned()]).collect();
        assert_eq!(kinds(&numbered), ["/shop/*", "/shop/bag"]);
    }

    #[test]
    fn a_few_siblings_stay_apart() {
        let paths = ["/help/returns", "/help/delivery", "/help/contact"].map(str::to_owned);
        assert_eq!(kinds(&paths), ["/help/contact", "/help/delivery", "/help/returns"]);
    }
}
