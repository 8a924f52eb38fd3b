//! Properties of each parser that hold for any bytes. `cargo xtask test` tries these functions for some seconds with
//! the corpora and what proptest makes of them; `cargo +nightly fuzz run NAME` for as long as you like.

use std::{rc::Rc, time::Duration};

use bytes::Bytes;
use edgefront::{
    carts::{CartChange, CartChanges},
    config::{CartConfig, Forward, Secret, SessionConfig, rules::UrlRules},
    orders::Order,
    page_cache::{
        PageKey, SelectingHeaders, StoredPage,
        policy::{
            VaryFields,
            cache_control::CacheControl,
            range::{self, Part},
        },
        visitor_cookies::VisitorCookies,
    },
    ports::{
        fetch::{Fetch, FetchError, Request, Response},
        time::{Clock, Timestamp},
    },
    schema::{keys::Keys, redis::Redis},
    sessions::{Keyring, cookie},
};
use edgefront_gateway::{reply, request};
use futures_util::{FutureExt, future::LocalBoxFuture};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use upstash_rest::{Command, Credentials, ExchangeTerms, Reply, TransportError};

/// A function that panics if what it stands for does not hold of these bytes.
pub type Property = fn(&[u8]);

/// Each with its name: of its target, and of the folder of its corpus.
pub const ALL: [(&str, Property); 8] = [
    ("cookie", cookie),
    ("page_url", page_url),
    ("headers", headers),
    ("redis_reply", redis_reply),
    ("stored_page", stored_page),
    ("order", order),
    ("gateway_request", gateway_request),
    ("gateway_reply", gateway_reply),
];

const NOW: Timestamp = Timestamp::from_millis(1_795_000_000_000);

/// A `Cookie` header: only text with a valid MAC is a token, and edgefront's cookie is not passed on.
pub fn cookie(data: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(data) else { return };
    let days = |days: u64| Duration::from_hours(24 * days);
    let keyring = Keyring::new(&SessionConfig {
        signing_keys: vec![Secret::new("0123456789abcdef0123456789abcdef")],
        limit: 1,
        idle: days(30),
        max_age: days(36_500),
        view_window: Duration::ZERO,
    });
    let headers = HeaderMap::from_iter([(header::COOKIE, value)]);
    if let Some(token) = keyring.read(&headers, NOW) {
        let pair = keyring.pair(&token).expect("there is a key");
        let stands_there = data.split(|byte| *byte == b';').any(|one| one.trim_ascii() == pair.as_bytes());
        assert!(stands_there, "a token that nobody signed");
    }
    if let Some(others) = cookie::strip(&headers) {
        let others = HeaderMap::from_iter([(header::COOKIE, others)]);
        assert!(!cookie::is_sent(&others), "our cookie is not the origin's");
        assert_eq!(cookie::strip(&others).as_ref(), others.get(header::COOKIE));
    }
}

/// A URL: its canonical form is its own, its key is as long as any and tells apart what the canonical form does, and
/// what is in it comes from the URL's own host.
pub fn page_url(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let routes = UrlRules::default();
    let urls = [text.to_owned(), format!("https://shop.example/{text}"), format!("https://shop.example/?item={text}")];
    let pages: Vec<_> = urls.iter().filter_map(|url| PageKey::of_url(url, &routes).ok()).collect();
    for page in &pages {
        let again = PageKey::of_url(page.url(), &routes).expect("a canonical URL is a page's");
        assert_eq!((again.url(), again.hash(), again.item()), (page.url(), page.hash(), page.item()));
        assert!(again.is_exact() && again.by_popularity() == page.by_popularity());
        assert!(page.hash().len() == 64 && page.hash().bytes().all(|digit| digit.is_ascii_hexdigit()));
        assert!(!page.url().contains(['#', ' ', '\n']), "{}", page.url());
        for other in &pages {
            assert_eq!(page.hash() == other.hash(), page.url() == other.url());
        }
    }
}

/// A message's head, one line each: the parsed values are bounded and do not depend on line breaks.
pub fn headers(data: &[u8]) {
    let mut headers = HeaderMap::new();
    for line in data.split(|byte| *byte == b'\n').take(64) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (HeaderName::from_bytes(&line[..colon]), HeaderValue::from_bytes(&line[colon + 1..]));
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    let said = CacheControl::of(&headers);
    let (targeted, _) = (CacheControl::of_response(&headers), said.wants_validation(&headers));
    assert!(targeted.is_targeted() || targeted == said, "without a targeted field, Cache-Control counts");
    for name in ["max-age", "s-maxage", "min-fresh", "stale-while-revalidate"] {
        assert!(said.seconds(name).is_none() || said.has(name));
    }

    if let Some(fields) = VaryFields::of(&headers) {
        assert_eq!(VaryFields::from_text(&fields.to_text()), fields);
        let selecting = SelectingHeaders::of(&headers, &Forward::All.into(), &VisitorCookies::default());
        if let Some(variant) = selecting.variant(&fields) {
            assert_eq!(fields.is_empty(), variant.is_empty());
            let again =
                SelectingHeaders::of(&selecting.headers(None), &Forward::All.into(), &VisitorCookies::default());
            assert_eq!(again.variant(&fields), Some(variant), "what the origin is sent selects the same");
        }
    }

    for length in [0, 1, 10, data.len()] {
        if let Part::Bytes { start, end } = range::part(&headers, &headers, length) {
            assert!(start < end && end <= length, "{start}..{end} of {length}");
        }
    }
}

/// A response of Redis over REST: it is read whole or refused. Three commands get three replies or an error, and what a
/// reply holds is in the answer.
pub fn redis_reply(data: &[u8]) {
    let credentials = Credentials { url: "http://redis".to_owned(), authorization: HeaderValue::from_static("x") };
    let (answer, clock) = (Rc::new(Said(Bytes::copy_from_slice(data))), Rc::new(Still));
    let redis = Redis::new(answer, clock, credentials, Duration::from_secs(1), Keys::BOOK);
    let ping = || Command::write("PING");
    let one = redis.run::<Reply>(ping()).now_or_never().expect("nothing waits");
    if let Ok(reply) = one {
        assert!(size(&reply) <= data.len(), "{reply:?}");
    }
    let three = [ping(), ping(), ping()];
    if let Ok(replies) = redis.pipeline(&three).now_or_never().expect("nothing waits") {
        assert_eq!(replies.len(), three.len());
        assert!(replies.iter().flatten().map(size).sum::<usize>() <= data.len(), "{replies:?}");
    }
}

/// Bytes and elements.
fn size(reply: &Reply) -> usize {
    match reply {
        Reply::Nil | Reply::Integer(_) => 1,
        Reply::Bytes(bytes) => bytes.len(),
        Reply::List(items) => 1 + items.iter().map(size).sum::<usize>(),
    }
}

/// A stored page: only the requested page is decoded, and it is encoded as it was decoded.
pub fn stored_page(data: &[u8]) {
    let page = |path| PageKey::of_url(path, &UrlRules::default()).expect("a page");
    let (own, other) = (page("https://shop.example/products/mug"), page("https://shop.example/products/cup"));
    let selecting = SelectingHeaders::default();
    let Some(entry) = StoredPage::decode(&Bytes::copy_from_slice(data), &own, &selecting) else { return };
    let written = Bytes::from(entry.encode(&own).concat());
    assert_eq!(StoredPage::decode(&written, &own, &selecting).as_ref(), Some(&entry));
    assert_eq!(StoredPage::decode(&written, &other, &selecting), None, "another page");
}

/// An order or a cart change of the origin: an accepted one is within the limits.
pub fn order(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(order) = Order::parse(text) {
        assert!((1..=500).contains(&order.lines.len()) && order.lines.iter().all(|line| line.quantity > 0));
        let items: std::collections::BTreeSet<_> = order.lines.iter().map(|line| &line.item).collect();
        assert_eq!(items.len(), order.lines.len(), "each item once");
    }
    let config = CartConfig { max_lines: 100, max_quantity: 999 };
    let Ok(changes) = CartChanges::parse(text, &config) else { return };
    assert!((1..=CartChanges::MAX).contains(&changes.as_slice().len()));
    for change in changes.as_slice() {
        if let CartChange::Add(_, quantity) | CartChange::Set(_, quantity) = change {
            assert!(quantity.get() <= config.max_quantity);
        }
    }
}

/// Answers everything with the same bytes.
struct Said(Bytes);

impl Fetch for Said {
    fn fetch(&self, _: Request, _: Duration) -> LocalBoxFuture<'_, Result<Response, FetchError>> {
        Box::pin(async { Err(FetchError::Unreachable) })
    }

    fn exchange(
        &self,
        _: http::Request<Bytes>,
        _: ExchangeTerms,
    ) -> LocalBoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        Box::pin(async { Ok(http::Response::new(self.0.clone())) })
    }
}

struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        NOW
    }

    fn sleep(&self, _: Duration) -> LocalBoxFuture<'static, ()> {
        Box::pin(async {})
    }
}

/// A request to the gateway: the commands that are read are those that they are written as, in either form; and a
/// refusal quotes nothing of what was sent.
pub fn gateway_request(data: &[u8]) {
    for read in [request::single, request::batch] {
        match read(data) {
            Ok(commands) => {
                assert!((1..=1_000).contains(&commands.len()));
                let text = |arg: &Vec<u8>| String::from_utf8(arg.clone()).expect("JSON is UTF-8");
                let lists: Vec<Vec<_>> =
                    commands.iter().map(|command| command.args.iter().map(text).collect()).collect();
                let written = serde_json::to_vec(&lists).expect("strings");
                assert_eq!(request::batch(&written), Ok(commands));
            }
            Err(told) => {
                let is_ours = ["ERR ", "EOF", "expected JSON array"].iter().any(|begin| told.starts_with(begin));
                assert!(is_ours && told.len() < 100, "{told}");
            }
        }
    }
    // A line of path and query, then the body.
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (head, body) = (String::from_utf8_lossy(&data[..end]), data.get(end + 1..).unwrap_or_default());
    let (path, query) = head.split_once('?').unwrap_or((&head, ""));
    if let Ok(commands) = request::path(path, &request::query_pairs(query), body) {
        let [command] = &commands[..] else { panic!("one path is one command") };
        let escaped = |arg: &Vec<u8>| arg.iter().map(|byte| format!("%{byte:02X}")).collect::<Vec<_>>().concat();
        let written = command.args.iter().map(|arg| format!("/{}", escaped(arg))).collect::<Vec<_>>().concat();
        assert_eq!(request::path(&written, &[], b""), Ok(commands.clone()));
    }
}

/// A stream of replies of Redis to the gateway: it is refused, or each reply is one result or one error in JSON. Its
/// RESP2 is read as the same replies again.
pub fn gateway_reply(data: &[u8]) {
    let Some(replies) = reply::render(data) else { return };
    for reply in &replies {
        for json in [&reply.json, &reply.base64] {
            let json: serde_json::Value = match serde_json::from_slice(json) {
                Ok(json) => json,
                // serde_json reads 127 levels; a reply may have more.
                Err(cause) if cause.to_string().starts_with("recursion limit") => continue,
                Err(cause) => panic!("{cause}"),
            };
            let members = json.as_object().expect("an object");
            assert!(members.len() == 1 && (members.contains_key("result") || members["error"].is_string()));
        }
    }
    let resp2 = |replies: &[reply::Rendered]| -> Vec<u8> {
        replies.iter().flat_map(|reply| reply.resp2.iter().copied()).collect()
    };
    let again = reply::render(&resp2(&replies)).expect("RESP2");
    assert_eq!((again.len(), resp2(&again)), (replies.len(), resp2(&replies)));
}
