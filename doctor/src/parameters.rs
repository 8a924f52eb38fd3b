//! The query parameters of a kind of page: those of lists, and one that names an item.

use edgefront::config::item_routes::ItemRoutes;

/// Parameters of lists of products.
const OF_LISTS: [&str; 11] =
    ["page", "p", "paged", "sort", "sort_by", "order", "orderby", "order_by", "dir", "category", "cat"];

/// Words in the names of parameters whose values belong to a visitor.
const OF_VISITORS: [&str; 5] = ["user", "customer", "account", "session", "order"];

/// The names of a kind's parameters.
pub fn of_kind(kind: &str) -> impl Iterator<Item = &str> {
    kind.split_once('?').into_iter().flat_map(|(_, names)| names.split('&'))
}

/// The parameters that `QUERY_KEPT` must name before `PATHS_SHARED` can store the pages of the kind. None if a parameter is neither one
/// of a list nor one of `routes`: visitors could store a page for each value.
pub fn kept<'a>(kind: &'a str, routes: &ItemRoutes) -> Option<Vec<&'a str>> {
    let path = kind.split('?').next().unwrap_or_default();
    let is_of_item = |name: &&str| name.ends_with("={item}") || routes.parameters(path).any(|own| own == *name);
    let kept: Vec<_> = of_kind(kind).filter(|name| !is_of_item(name)).collect();
    kept.iter().all(|name| OF_LISTS.contains(name)).then_some(kept)
}

/// The pattern in `ITEM_ROUTES` for pages whose only parameter names an item, such as `/product?id={item}`. None if `routes` has it.
pub fn item_route(kind: &str, routes: &ItemRoutes) -> Option<String> {
    let (path, name) = kind.split_once('?')?;
    let lower = name.to_ascii_lowercase();
    let is_id =
        lower == "id" || lower.ends_with("_id") || matches!(&*lower, "pid" | "productid" | "sku" | "item" | "product");
    let is_new = !routes.parameters(path).any(|own| own == name);
    let is_item = is_id && is_new && !OF_VISITORS.iter().any(|word| lower.contains(word));
    (is_item && !path.contains(['*', '{'])).then(|| format!("{path}?{name}={{item}}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_parameter_may_name_the_item() {
        let routes = ItemRoutes::parse("/known?id={item}").unwrap();
        for (kind, expected) in [
            ("/product?id", Some("/product?id={item}")),
            ("/product_info.php?products_id", Some("/product_info.php?products_id={item}")),
            ("/p?SKU", Some("/p?SKU={item}")),
            ("/product?id&color", None),
            ("/search?q", None),
            ("/a/*?id", None),
            ("/invoice?order_id", None),
            ("/product?id={item}", None),
            ("/product", None),
            ("/known?id", None),
        ] {
            assert_eq!(item_route(kind, &routes).as_deref(), expected, "{kind}");
        }
    }

    #[test]
    fn only_known_parameters_are_kept() {
        let routes = ItemRoutes::parse("/product?id={item}").unwrap();
        for (kind, expected) in [
            ("/list", Some(vec![])),
            ("/list?page&sort", Some(vec!["page", "sort"])),
            ("/product?id", Some(vec![])),
            ("/?item={item}&page", Some(vec!["page"])),
            ("/list?id", None),
            ("/search?page&q", None),
        ] {
            assert_eq!(kept(kind, &routes), expected, "{kind}");
        }
    }
}
