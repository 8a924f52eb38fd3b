//! The query parameters of a kind of page: those of lists, those that name the kind, and one that names an item.

use edgefront::config::rules::{QueryRules, UrlRules};

use super::personal::has_personal_name;

/// Parameters of lists of products.
const OF_LISTS: [&str; 15] = [
    "page",
    "p",
    "paged",
    "sort",
    "sort_by",
    "order",
    "orderby",
    "order_by",
    "dir",
    "category",
    "cat",
    "category_id",
    "cpath",
    "id_category",
    "path",
];

/// Parameters that name the kind of a page, such as `route=product/product` of `OpenCart` or `main_page=login` of Zen Cart.
const OF_KINDS: [&str; 10] =
    ["route", "r", "main_page", "controller", "option", "view", "dispatch", "cl", "module", "mod"];
/// Longest value that names a kind.
const MAX_KIND: usize = 40;

/// Words in the names of parameters whose values belong to a visitor.
const OF_VISITORS: [&str; 5] = ["user", "customer", "account", "session", "order"];

/// The names of a kind's parameters. One whose value is part of the kind has the value, too, as in `route=product/product`.
pub fn of_kind(kind: &str) -> impl Iterator<Item = &str> {
    kind.split_once('?').into_iter().flat_map(|(_, names)| names.split('&'))
}

/// Returns whether the value of a parameter is part of the kind: it names the kind, or `QUERY_KEPT` lists it.
pub fn is_of_kind(name: &str, value: &str, rules: &QueryRules) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphabetic() || b"/._-".contains(&byte);
    let is_name = !value.is_empty() && value.len() <= MAX_KIND && value.bytes().all(is_word);
    rules.kept.lists(name, value) || is_name && names_kind(name)
}

/// Returns whether a parameter of this name can name the kind of a page.
pub fn names_kind(name: &str) -> bool {
    OF_KINDS.contains(&name.to_ascii_lowercase().as_str())
}

/// The parameters that `QUERY_KEPT` must name before `PATHS_SHARED` can store the pages of the kind, or popularity those of items. None
/// if a parameter is neither one of a list or of a kind, nor one of an item: visitors could store a page for each value.
pub fn kept<'a>(kind: &'a str, rules: &UrlRules) -> Option<Vec<&'a str>> {
    let path = kind.split('?').next().unwrap_or_default();
    let new_item = item_parameter(kind, rules);
    let is_of_item = |name: &str| {
        name.ends_with("={item}") || rules.items.parameters(path).any(|own| own == name) || new_item == Some(name)
    };
    let is_kept = |name: &str| match name.split_once('=') {
        Some((_, value)) => !is_of_visitor(value),
        None => OF_LISTS.contains(&&*name.to_ascii_lowercase()),
    };
    let has_rule = |name: &str| match name.split_once('=') {
        Some((name, value)) => rules.query.kept.lists(name, value),
        None => rules.query.kept.allows_any_value(name),
    };
    let kept: Vec<_> = of_kind(kind).filter(|name| !is_of_item(name)).collect();
    let may_be_kept = kept.iter().all(|name| is_kept(name));
    may_be_kept.then(|| kept.into_iter().filter(|name| !has_rule(name)).collect())
}

/// The pattern in `ITEM_ROUTES` for pages with one parameter that names an item, such as `/product?id={item}`. Their other parameters
/// name the kind. None if `ITEM_ROUTES` has the pattern.
pub fn item_route(kind: &str, rules: &UrlRules) -> Option<String> {
    let (path, _) = kind.split_once('?')?;
    item_parameter(kind, rules).map(|name| format!("{path}?{name}={{item}}"))
}

fn item_parameter<'a>(kind: &'a str, rules: &UrlRules) -> Option<&'a str> {
    let (path, _) = kind.split_once('?')?;
    let mut values = of_kind(kind).filter_map(|name| name.split_once('=')).map(|(_, value)| value);
    let mut names = of_kind(kind).filter(|name| !name.contains('='));
    let name = names.next().filter(|_| names.next().is_none())?;
    let lower = name.to_ascii_lowercase();
    let is_id = lower == "id"
        || lower.ends_with("_id")
        || lower.starts_with("id_")
        || matches!(&*lower, "pid" | "productid" | "sku" | "item" | "product" | "anid");
    let is_new = !rules.items.parameters(path).any(|own| own == name);
    let is_of_list = OF_LISTS.contains(&&*lower);
    let is_item = is_id && is_new && !is_of_list && !OF_VISITORS.iter().any(|word| lower.contains(word));
    (is_item && !path.contains(['*', '{']) && !values.any(|value| value == "{item}" || is_of_visitor(value)))
        .then_some(name)
}

/// Returns whether a value such as `checkout/cart` names pages of one visitor.
fn is_of_visitor(value: &str) -> bool {
    let words = value.split(|character: char| !character.is_ascii_alphabetic());
    value.split('/').chain(words).any(|word| has_personal_name(&format!("/{}", word.to_ascii_lowercase())))
}

#[cfg(test)]
mod tests {
    use edgefront::config::{
        item_routes::ItemRoutes,
        rules::{Parameters, QueryRules},
    };

    use super::*;

    fn rules(routes: &str) -> UrlRules {
        let kept = Parameters::parse("language=en-gb").unwrap();
        let query = QueryRules { kept, ..QueryRules::default() };
        UrlRules { items: ItemRoutes::parse(routes).unwrap(), query, ..UrlRules::default() }
    }

    #[test]
    fn one_parameter_may_name_the_item() {
        for (kind, expected) in [
            ("/product?id", Some("/product?id={item}")),
            ("/product_info.php?products_id", Some("/product_info.php?products_id={item}")),
            ("/p?SKU", Some("/p?SKU={item}")),
            ("/index.php?product_id&route=product/product", Some("/index.php?product_id={item}")),
            ("/index.php?controller=product&id_product", Some("/index.php?id_product={item}")),
            ("/index.php?language=en-gb&product_id", Some("/index.php?product_id={item}")),
            ("/index.php?main_page=shopping_cart&products_id", None),
            ("/index.php?path&route=product/category", None),
            ("/list?category_id", None),
            ("/product?id&color", None),
            ("/search?q", None),
            ("/a/*?id", None),
            ("/invoice?order_id", None),
            ("/product?id={item}", None),
            ("/product", None),
            ("/known?id", None),
        ] {
            assert_eq!(item_route(kind, &rules("/known?id={item}")).as_deref(), expected, "{kind}");
        }
    }

    #[test]
    fn only_known_parameters_are_kept() {
        for (kind, expected) in [
            ("/list", Some(vec![])),
            ("/list?page&sort", Some(vec!["page", "sort"])),
            ("/product?id", Some(vec![])),
            ("/?item={item}&page", Some(vec!["page"])),
            ("/i?language=en-gb&path&route=product/category", Some(vec!["path", "route=product/category"])),
            ("/i?product_id&route=product/product", Some(vec!["route=product/product"])),
            ("/i?route=account/order.info", None),
            ("/i?main_page=shopping_cart", None),
            ("/i?cPath&main_page=index", Some(vec!["cPath", "main_page=index"])),
            ("/list?id", Some(vec![])),
            ("/search?page&q", None),
        ] {
            assert_eq!(kept(kind, &rules("/product?id={item}")), expected, "{kind}");
        }
    }

    #[test]
    fn words_of_some_parameters_name_the_kind() {
        for (name, value, expected) in [
            ("route", "product/product", true),
            ("dispatch", "products.view", true),
            ("language", "en-gb", true),
            ("language", "de-de", false),
            ("r", "https://elsewhere.example", false),
            ("view", "7", false),
            ("q", "mug", false),
        ] {
            assert_eq!(is_of_kind(name, value, &rules("/{item}").query), expected, "{name}={value}");
        }
    }
}
