//! The storefront behind edgefront: the check of its address, the name of its Redis data, and whether it answers.

use std::{net::IpAddr, time::Duration};

use reqwest::Url;
use tokio::{net::TcpStream, time};
use xtask::failure::Failure;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Checks that the value of `--origin` has a scheme. The Worker's own rules check the rest.
///
/// # Errors
/// Without a scheme. The remedy names the whole address.
pub fn check(text: &str) -> Result<(), Failure> {
    if text.is_empty() || text.contains("://") {
        return Ok(());
    }
    let host = text.split(['/', ':']).next().unwrap_or_default();
    let is_local = host == "localhost" || host.parse::<IpAddr>().is_ok() || text.starts_with('[');
    let scheme = if is_local { "http" } else { "https" };
    Err(Failure::new(format!("--origin is not an address: write {scheme}://{text}"), ""))
}

/// Checks that the origin is not the address at which edgefront itself listens: each request would come back.
///
/// # Errors
/// If it is.
pub fn check_is_elsewhere(origin: &str, port: u16) -> Result<(), Failure> {
    let Some(url) = Url::parse(origin).ok().filter(|url| url.port_or_known_default() == Some(port)) else {
        return Ok(());
    };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_own = |address: IpAddr| address.is_loopback() || address.is_unspecified();
    if host != "localhost" && !host.parse().is_ok_and(is_own) {
        return Ok(());
    }
    let remedy = "write the address of the shop, or choose another --port";
    Err(Failure::new(format!("{origin} is the address of edgefront itself"), remedy))
}

/// The name of the directory of the Redis data. Each storefront has its own, because pages, sessions and rankings of two
/// shops must not mix. Without a storefront, the demo shop has `redis`.
pub fn data_name(origin: Option<&str>) -> String {
    let Some(origin) = origin else { return "redis".to_owned() };
    // The parsed URL has one spelling: lower case, no default port.
    let origin = Url::parse(origin).map_or_else(|_| origin.to_owned(), String::from);
    let name = origin.trim_end_matches('/').replace("://", "_").replace(':', "_");
    let is_safe = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    format!("redis-{}", name.replace(|character| !is_safe(character), "-"))
}

/// A warning if no server accepts connections at the origin.
pub async fn warning(origin: &str) -> Option<String> {
    let url = Url::parse(origin).ok()?;
    let (host, port) = (url.host_str()?, url.port_or_known_default()?);
    let host = host.trim_matches(['[', ']']);
    let cause = match time::timeout(CONNECT_TIMEOUT, TcpStream::connect((host, port))).await {
        Ok(Ok(_)) => return None,
        Ok(Err(cause)) => cause.to_string(),
        Err(_) => format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()),
    };
    Some(format!("warning: {origin} does not answer ({cause}): start the storefront, or correct --origin"))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn an_origin_without_a_scheme_is_refused_with_the_whole_address() {
        for (text, advice) in [
            ("127.0.0.1:18201", "http://127.0.0.1:18201"),
            ("localhost:8000", "http://localhost:8000"),
            ("[::1]:8000", "http://[::1]:8000"),
            ("shop.example", "https://shop.example"),
        ] {
            let failure = check(text).unwrap_err();
            assert_eq!(failure.to_string(), format!("error: --origin is not an address: write {advice}"));
        }
        assert!(check("http://127.0.0.1:18201").is_ok() && check("").is_ok());
    }

    #[test]
    fn edgefront_is_not_its_own_origin() {
        for own in ["http://localhost:8787", "http://127.0.0.1:8787/shop", "http://[::1]:8787", "http://0.0.0.0:8787"] {
            let failure = check_is_elsewhere(own, 8787).unwrap_err();
            assert_eq!(failure.cause, format!("{own} is the address of edgefront itself"));
        }
        for other in ["http://localhost:8000", "http://shop.example:8787", "http://10.0.0.1:8787"] {
            assert!(check_is_elsewhere(other, 8787).is_ok(), "{other}");
        }
    }

    #[test]
    fn each_storefront_has_redis_data_of_its_own() {
        let names = [
            None,
            Some("http://127.0.0.1:8000"),
            Some("http://127.0.0.1:8001"),
            Some("https://shop.example"),
            Some("http://shop.example"),
        ]
        .map(data_name);
        assert_eq!(
            names,
            [
                "redis",
                "redis-http_127.0.0.1_8000",
                "redis-http_127.0.0.1_8001",
                "redis-https_shop.example",
                "redis-http_shop.example"
            ]
        );
    }

    #[test]
    fn spellings_of_one_origin_share_their_redis_data() {
        for spelling in ["https://Shop.Example", "https://shop.example/", "https://shop.example:443"] {
            assert_eq!(data_name(Some(spelling)), "redis-https_shop.example");
        }
        assert_eq!(data_name(Some("http://[::1]:8000/../x")), "redis-http_-__1-_8000-x");
    }

    #[tokio::test]
    async fn an_origin_that_does_not_answer_is_named() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        assert_eq!(warning(&origin).await, None);
        drop(listener);
        let text = warning(&origin).await.unwrap();
        assert!(text.starts_with(&format!("warning: {origin} does not answer (")), "{text}");
    }
}
