//! Measures the CPU work of a page view natively, one part at a time: `cargo bench`. The figures show which part a
//! change made slower or faster. `cargo xtask bench` measures the speed of edgefront as a whole.

use std::{hint::black_box, rc::Rc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use edgefront::{
    config::{Config, rules::UrlRules},
    page_cache::{PageKey, SelectingHeaders, StoredPage, policy::VaryFields},
    ports::{
        fetch::{Body, Fetch, FetchError, Request, Response},
        time::{Clock, Timestamp},
    },
    schema::{keys::Keys, redis::Redis, token::Token},
    sessions::Keyring,
};
use futures_util::{FutureExt, future::LocalBoxFuture};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use upstash_rest::{Command, Credentials, ExchangeTerms, Reply, TransportError};

const URL: &str = "https://shop.example/products/mug?utm_source=letter&utm_medium=mail";
const NOW: Timestamp = Timestamp::from_millis(1_795_000_000_000);

/// Encodes and decodes a stored page of 20 KB.
fn stored_page(criterion: &mut Criterion) {
    let page = page();
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    let entry = StoredPage {
        render: "0123456789abcdef".to_owned(),
        stamp: 1_795_000_000_123_456,
        stored: NOW,
        fresh_until: NOW + Duration::from_mins(5),
        stale_until: NOW + Duration::from_mins(6),
        error_until: NOW + Duration::from_mins(6),
        dies: NOW + Duration::from_mins(6),
        strict: false,
        is_declared_shared: false,
        vary: VaryFields::from_text(""),
        variant: String::new(),
        has_generated_etag: true,
        item: None,
        tags: Vec::new(),
        status: StatusCode::OK,
        headers,
        body: vec![b'x'; 20_000].into(),
        holes: Vec::new(),
    };
    let value = Bytes::from(entry.encode(&page).concat());
    let selecting = SelectingHeaders::default();
    criterion.bench_function("stored page, encode", |bench| bench.iter(|| black_box(&entry).encode(&page)));
    criterion.bench_function("stored page, decode", |bench| {
        bench.iter(|| StoredPage::decode(black_box(&value), &page, &selecting).unwrap());
    });
}

/// Canonicalizes a URL and hashes it.
fn page_key(criterion: &mut Criterion) {
    let rules = UrlRules::default();
    criterion.bench_function("page key", |bench| {
        bench.iter(|| PageKey::of_url(black_box(URL), &rules).unwrap());
    });
}

/// Finds the session cookie among others, decodes it, and checks its signature.
fn session_cookie(criterion: &mut Criterion) {
    let variables = [
        ("UPSTASH_REDIS_REST_URL", "http://127.0.0.1"),
        ("UPSTASH_REDIS_REST_TOKEN", "token"),
        ("SESSION_KEYS", "0123456789abcdef0123456789abcdef"),
    ];
    let value = |name: &str| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned());
    let Ok(config) = Config::from_lookup(value) else { panic!("the configuration is incomplete") };
    let keyring = Keyring::new(&config.session);
    let cookie = keyring.pair(&Token::new(NOW).unwrap()).unwrap();
    let headers =
        [(header::COOKIE, format!("theme=dark; {cookie}; lang=en").try_into().unwrap())].into_iter().collect();
    criterion.bench_function("session cookie, check", |bench| {
        bench.iter(|| keyring.read(black_box(&headers), NOW).unwrap());
    });
}

/// Encodes a command and decodes its reply, without the network: a number, and a page of 20 KB in both directions.
fn redis_exchange(criterion: &mut Criterion) {
    let page = "<p class=\"item\">A mug with a handle, and a second one</p>\n".repeat(340);
    let read = format!("[{{\"result\":\"{}\"}}]", STANDARD.encode(&page));
    let number = r#"[{"result":1}]"#.to_owned();
    let get = || Command::read("GET").arg("cache:0123456789abcdef");
    let set = || Command::write("SET").arg("cache:0123456789abcdef").arg(&page);
    let run = |criterion: &mut Criterion, name: &str, reply: String, command: &dyn Fn() -> Command| {
        let credentials =
            Credentials { url: "http://127.0.0.1".to_owned(), authorization: HeaderValue::from_static("Bearer token") };
        let fetch = Rc::new(CannedFetch(reply.into()));
        let redis = Redis::new(fetch, Rc::new(StoppedClock), credentials, Duration::from_secs(1), Keys::BOOK);
        criterion.bench_function(name, |bench| {
            bench.iter(|| redis.run::<Reply>(black_box(command())).now_or_never().unwrap().unwrap());
        });
    };
    run(criterion, "reply, number", number.clone(), &get);
    run(criterion, "reply, page of 20 KB", read, &get);
    run(criterion, "command, page of 20 KB", number, &set);
}

/// Responds at once.
struct CannedFetch(Bytes);

impl Fetch for CannedFetch {
    fn fetch(&self, _: Request, _: Duration) -> LocalBoxFuture<'_, Result<Response, FetchError>> {
        std::future::ready(Ok(Response::new(Body::Bytes(self.0.clone())))).boxed_local()
    }

    fn exchange(
        &self,
        _: http::Request<Bytes>,
        _: ExchangeTerms,
    ) -> LocalBoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        std::future::ready(Ok(http::Response::new(self.0.clone()))).boxed_local()
    }
}

/// A clock that stands still.
struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        NOW
    }

    fn sleep(&self, _: Duration) -> LocalBoxFuture<'static, ()> {
        std::future::pending().boxed_local()
    }
}

fn page() -> PageKey {
    PageKey::of_url(URL, &UrlRules::default()).unwrap()
}

criterion_group!(benches, stored_page, page_key, session_cookie, redis_exchange);
criterion_main!(benches);
