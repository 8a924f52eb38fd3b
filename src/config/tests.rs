use super::*;
use crate::schema::keys::Keys;

/// Reads `variables` and the secrets that a Worker cannot do without.
pub fn read(variables: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
    let needed = [
        ("UPSTASH_REDIS_REST_URL", "http://127.0.0.1:8079/"),
        ("UPSTASH_REDIS_REST_TOKEN", "a-token"),
        ("SESSION_KEYS", "0123456789abcdef0123456789abcdef"),
    ];
    let find =
        |name: &str, list: &[(&str, &str)]| list.iter().find(|(key, _)| *key == name).map(|(_, v)| (*v).to_owned());
    Config::from_lookup(|name| find(name, variables).or_else(|| find(name, &needed)))
}

#[test]
fn the_defaults_are_the_books() {
    let config = read(&[]).unwrap();
    assert_eq!(config.session.limit, 10_000_000);
    assert_eq!(config.redis.keys, Keys::BOOK);
    assert_eq!((config.page.ttl.as_secs(), config.page.rank_limit), (300, 10_000));
    assert_eq!((config.ranking.keep, config.ranking.half_life.as_secs()), (20_000, 300));
    assert_eq!((config.insights.keep, config.insights.half_life.as_secs()), (20_000, 604_800));
    assert_eq!(config.redis.credentials.url, "http://127.0.0.1:8079");
    assert!(config.origin.url.is_none() && config.rows.is_none());
    assert_eq!((config.page.memory.as_secs(), config.row_memory.as_secs()), (5, 1));
    assert_eq!(config.origin.cart_routes.names().collect::<Vec<_>>(), ["/cart", "/checkout", "/account", "/orders/*"]);
    let personal_writes = presets::Preset::DEFAULT.get("WRITES_PERSONAL").unwrap();
    let personal_writes = rules::paths::PathPatterns::parse(personal_writes).unwrap();
    assert_eq!(config.page.urls, rules::UrlRules { personal_writes, ..Default::default() });
}

#[test]
fn every_wrong_variable_names_itself_and_no_secret_shows() {
    for (variable, value) in [
        ("UPSTASH_REDIS_REST_URL", ""),
        ("UPSTASH_REDIS_REST_URL", "redis://x"),
        ("UPSTASH_REDIS_REST_TOKEN", ""),
        ("UPSTASH_REDIS_REST_TOKEN", "a\nb"),
        ("SESSION_KEYS", "short-secret"),
        ("SERVICE_KEY", "short-secret"),
        ("ORIGIN_KEY", "short-secret"),
        ("SHARDS_KNOWN", "1, 257"),
        ("SHARDS_KNOWN", "1,"),
        ("SESSION_LIMIT", "-1"),
        ("SESSION_IDLE", "soon"),
        ("CART_MAX_LINES", "4294967296"),
        ("PAGE_TTL", "1.5"),
        ("ITEM_ROUTES", "/products"),
        ("CART_ROUTES", "/cart, checkout"),
        ("CART_ROUTES", "/{item}"),
        ("LOGIN_ROUTES", "login"),
        ("DEMO_MAIL", "smtp"),
        ("DEMO_MAIL", "log"),
        ("DEMO_URL", "shop.example"),
        ("FLASH_CHECKOUT", "/flash/{item}/checkout"),
        ("PAGE_FORWARD_HEADERS", "accept language"),
        ("PAGE_FORWARD_HEADERS", "accept, Cookie"),
        ("PAGE_FORWARD_HEADERS", "+x-country"),
        ("PAGE_FORWARD_HEADERS", "*, x-country"),
        ("HEADERS_VARIED", "x country"),
        ("HEADERS_VARIED", "x-country, Cookie"),
        ("HEADERS_NORMALIZED", "accept-language"),
        ("PRESET", "oscar"),
        ("COOKIES_IGNORED", "*"),
        ("COOKIES_PERSONAL", "a b"),
        ("COOKIES_VARIED", "currency=EUR USD"),
        ("COOKIES_DROPPED", "history"),
        ("CSRF_COOKIE", "csrf token"),
        ("PATHS_PERSONAL", "/admin/*, accounts"),
        ("QUERY_IGNORED", "a=b"),
        ("QUERY_KEPT", "\"a\""),
        ("ORIGIN_URL", "shop.example"),
        ("ORIGIN_URL", "https://user@shop.example"),
        ("ORIGIN_URL", "https://:short-secret@shop.example"),
        ("ORIGIN_URL", "https://shop.example/index.php?site=2"),
        ("ORIGIN_URL", "https://shop.example/#top"),
        ("ROWS_TABLE", "a; DROP TABLE b"),
    ] {
        let errors = read(&[(variable, value)]).unwrap_err();
        assert_eq!(errors.0.len(), 1, "{errors}");
        assert!(errors.to_string().starts_with(&format!("{variable} ")), "{errors}");
        assert!(!errors.to_string().contains("short-secret"), "{errors}");
    }
    let both = read(&[("ROWS_TABLE", "a"), ("ROWS_URL", "http://a")]).unwrap_err();
    assert_eq!(both.0.len(), 1, "{both}");
    let two = read(&[("PAGE_TTL", "x"), ("SESSION_KEYS", "")]).unwrap_err();
    assert_eq!(two.0.len(), 2);
}

#[test]
fn visitors_sign_in_at_or_below_login_routes() {
    let routes = read(&[("LOGIN_ROUTES", "/login,, /User/, ")]).unwrap().origin.login_routes;
    for path in ["/login", "/Login/", "/login/again", "/%6cogin;a=b", "/user", "/reset", "/login.data"] {
        assert!(routes.contains(path), "{path}");
    }
    for path in ["/", "/logins", "/a/login", "/a/..%2fb/login"] {
        assert!(!routes.contains(path), "{path}");
    }
}

#[test]
fn a_message_says_what_is_wrong_and_what_to_set() {
    for (variable, value, message) in [
        ("SHARDS", "257", r#"SHARDS is "257": set a whole number of shards, 1 to 256"#),
        (
            "SHARDS_KNOWN",
            "4, 16",
            r#"SHARDS_KNOWN is "4, 16": set numbers of shards separated by commas, SHARDS among them, such as 1, 16"#,
        ),
        ("SESSION_IDLE", "59", r#"SESSION_IDLE is "59": set a whole number of seconds, at least 60"#),
        (
            "RANKING_KEEP",
            "1000000000001",
            r#"RANKING_KEEP is "1000000000001": set a whole number of items, 1 to 1000000000000"#,
        ),
        (
            "CART_ROUTES",
            "cart",
            r#"CART_ROUTES has "cart": a path begins with / and has no ?, #, { or //, such as /shop/*"#,
        ),
        ("SERVICE_KEY", "short-secret", "SERVICE_KEY has 12 characters: set at least 16 characters"),
    ] {
        assert_eq!(read(&[(variable, value)]).unwrap_err().to_string(), message);
    }
}

#[test]
fn debug_output_shows_no_secret() {
    let (key, service, token) = ("0123456789abcdef0123456789abcdef", "the-service-key-x", "a-token");
    let config = read(&[("SERVICE_KEY", service), ("ORIGIN_KEY", "the-origin-key-xx")]).unwrap();
    let shown = format!("{config:?}");
    for secret in [key, service, token, "the-origin-key-xx"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
}

#[test]
fn a_shared_path_needs_the_names_of_the_forwarded_headers() {
    let errors = read(&[("PATHS_SHARED", "/shoes/*"), ("PAGE_FORWARD_HEADERS", "*")]).unwrap_err();
    assert!(errors.to_string().starts_with("PATHS_SHARED is set, and PAGE_FORWARD_HEADERS is *"), "{errors}");
    assert!(read(&[("PATHS_SHARED", "/shoes/*")]).is_ok() && read(&[("PAGE_FORWARD_HEADERS", "*")]).is_ok());
}
