//! Finds the route of a request. The matcher compares bytes, because most patterns differ from a path in their first
//! letters.

use futures_util::future::LocalBoxFuture;
use http::{HeaderValue, Method, request::Parts};
use percent_encoding::percent_decode;

use super::{
    PREFIX, ROUTES,
    access::Access,
    request::{ApiRequest, PathParameters},
};
use crate::{ports::answer::Answer, routes::problem::Problem};

pub type Handler = for<'a> fn(ApiRequest<'a>) -> LocalBoxFuture<'a, Result<Answer, Problem>>;

pub struct ApiRoute {
    pub access: Access,
    pub method: Method,
    /// The path after [`PREFIX`]. A segment in braces matches any one segment.
    pub path: &'static str,
    pub handler: Handler,
    /// The route's line in `docs/api.md`.
    #[cfg(test)]
    pub summary: &'static str,
}

/// The route of a request, with the path's parameters. HEAD takes the route of GET.
///
/// # Errors
/// [`Problem::NoSuchPath`], and [`Problem::WrongMethod`] if the path has routes for other methods.
pub fn find_route(head: &Parts) -> Result<(&'static ApiRoute, PathParameters), Problem> {
    let path = head.uri.path().strip_prefix(PREFIX).ok_or(Problem::NoSuchPath)?;
    let method = if head.method == Method::HEAD { &Method::GET } else { &head.method };
    let mut allow = String::new();
    for route in ROUTES {
        let Some(parameters) = match_path(route.path, path) else { continue };
        if route.method == *method {
            return Ok((route, parameters));
        }
        let separator = if allow.is_empty() { "" } else { ", " };
        let methods = if route.method == Method::GET { "GET, HEAD" } else { route.method.as_str() };
        allow.extend([separator, methods]);
    }
    match HeaderValue::try_from(allow) {
        Ok(allow) if !allow.is_empty() => Err(Problem::WrongMethod { allow }),
        _ => Err(Problem::NoSuchPath),
    }
}

/// The parameters of `path`. None if it does not match `pattern`.
fn match_path(pattern: &str, path: &str) -> Option<PathParameters> {
    let (mut pattern, mut path) = (pattern.as_bytes(), path.as_bytes());
    let mut parameters = PathParameters::default();
    let mut next_parameter = parameters.iter_mut();
    loop {
        match (pattern, path) {
            ([], []) => return Some(parameters),
            ([b'{', ..], _) => {
                let value = first_segment(path);
                *next_parameter.next()? = percent_decode(value).decode_utf8_lossy().into_owned();
                (pattern, path) = (pattern.strip_prefix(first_segment(pattern))?, path.strip_prefix(value)?);
            }
            ([one, pattern_rest @ ..], [other, path_rest @ ..]) if one == other => {
                (pattern, path) = (pattern_rest, path_rest);
            }
            _ => return None,
        }
    }
}

/// The part before the next slash.
fn first_segment(path: &[u8]) -> &[u8] {
    path.split(|byte| *byte == b'/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(method: Method, uri: &str) -> Result<(&'static str, PathParameters), Problem> {
        let head = http::Request::builder().method(method).uri(uri).body(()).unwrap().into_parts().0;
        find_route(&head).map(|(route, parameters)| (route.path, parameters))
    }

    #[test]
    fn a_path_finds_its_route_and_parameters() {
        for (method, path, route, parameters) in [
            (Method::GET, "/cart", "/cart", ["", ""]),
            (Method::HEAD, "/cart?x=/y", "/cart", ["", ""]),
            (Method::PUT, "/cart/items/mug", "/cart/items/{item}", ["mug", ""]),
            (Method::PUT, "/cart/items/", "/cart/items/{item}", ["", ""]),
            (Method::PUT, "/cart/items/a%2Fb%3A", "/cart/items/{item}", ["a/b:", ""]),
            (Method::GET, "/rows/7/schedule", "/rows/{row}/schedule", ["7", ""]),
            (Method::DELETE, "/flash/mug/reservations/1.a%5F", "/flash/{sale}/reservations/{id}", ["mug", "1.a_"]),
            (Method::PUT, "/cart/items/%ff", "/cart/items/{item}", ["\u{fffd}", ""]),
        ] {
            let found = find(method, &format!("https://shop.example/_edge/v1{path}")).unwrap();
            assert_eq!(found, (route, parameters.map(str::to_owned)), "{path}");
        }
    }

    #[test]
    fn an_unknown_path_is_not_found() {
        for path in
            ["/_edge", "/_edge/", "/_edge/v2/cart", "/_edge/v1", "/_edge/v1/", "/_edge/v1/cart/", "/_edge/v1//cart"]
        {
            assert!(matches!(find(Method::GET, path), Err(Problem::NoSuchPath)), "{path}");
        }
    }

    #[test]
    fn an_unsupported_method_is_answered_with_the_supported_ones() {
        for (method, path, supported) in [
            (Method::POST, "/_edge/v1/cart", "GET, HEAD, DELETE"),
            (Method::OPTIONS, "/_edge/v1/cart/items/mug", "PUT, DELETE"),
            (Method::PUT, "/_edge/v1/sessions", "GET, HEAD, DELETE, POST"),
        ] {
            match find(method, path) {
                Err(Problem::WrongMethod { allow }) => assert_eq!(allow, supported),
                other => panic!("{path}: {other:?}"),
            }
        }
    }
}
