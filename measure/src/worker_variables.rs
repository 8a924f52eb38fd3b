//! The variables of a measured Worker.

use xtask::variables::Variables;

/// The token of the REST gateway.
pub const GATEWAY_TOKEN: &str = "bench";
/// Authorises calls of the service part of edgefront's API.
pub const SERVICE_KEY: &str = "0123456789abcdef0123456789abcdef";

/// The variables of edgefront; the peers read some of them. The other variables keep their defaults.
pub fn worker_variables(gateway_url: &str, origin_url: &str) -> Variables {
    let rows_url = format!("{origin_url}/rows");
    let variables = [
        ("UPSTASH_REDIS_REST_URL", gateway_url),
        ("UPSTASH_REDIS_REST_TOKEN", GATEWAY_TOKEN),
        ("SESSION_KEYS", "0123456789abcdef0123456789abcdef"),
        ("SERVICE_KEY", SERVICE_KEY),
        ("ORIGIN_URL", origin_url),
        ("ROWS_TABLE", ""),
        ("ROWS_URL", &rows_url),
        // Every item ranks high enough for the page cache, even if its page is requested only once.
        ("PAGE_RANK_LIMIT", "1000000"),
    ];
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}
