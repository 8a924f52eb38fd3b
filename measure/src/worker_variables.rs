//! The variables of a measured Worker.

use xtask::variables::Variables;

/// The token of the REST gateway.
pub const GATEWAY_TOKEN: &str = "bench";
/// Authorises calls of the service part of edgefront's API.
pub const SERVICE_KEY: &str = "0123456789abcdef0123456789abcdef";

/// The variables that every Worker needs. The other variables keep their defaults.
pub fn required_variables(gateway_url: &str, origin_url: &str) -> Variables {
    let variables = [
        ("UPSTASH_REDIS_REST_URL", gateway_url),
        ("UPSTASH_REDIS_REST_TOKEN", GATEWAY_TOKEN),
        ("SESSION_KEYS", "0123456789abcdef0123456789abcdef"),
        ("SERVICE_KEY", SERVICE_KEY),
        ("ORIGIN_URL", origin_url),
        ("ROWS_TABLE", ""),
    ];
    owned(variables).collect()
}

/// The variables of a Worker in front of [`crate::origin`]. The peers read some of them.
pub fn worker_variables(gateway_url: &str, origin_url: &str) -> Variables {
    let mut variables = required_variables(gateway_url, origin_url);
    variables.extend(owned([
        ("ROWS_URL", format!("{origin_url}/rows").as_str()),
        // Every item ranks high enough for the page cache, even if its page is requested only once.
        ("PAGE_RANK_LIMIT", "1000000"),
        // The pages of one workload have holes; their elements are on every page.
        ("HOLES", "/flash/* .user <- user; /flash/* .cart <- cart"),
    ]));
    variables
}

/// Names and values as a [`Variables`] has them.
pub fn owned<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> impl Iterator<Item = (String, String)> {
    variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()))
}
