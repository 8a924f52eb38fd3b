//! The exchange between the tiers. An isolate of the edge tier passes each request that it cannot answer to the home
//! tier, which is placed beside Redis. The binding between the tiers has no public address.
//!
//! Headers `Edge-Tier-*` carry facts that no visitor may claim. edgefront removes these headers from the requests of
//! visitors and from the responses to visitors.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use upstash_rest::TransportError;

use super::{
    headers::{ADDRESS, remove},
    origin::deadline,
    visit::EdgeAsk,
};
use crate::{
    App,
    metrics::traffic::LatencyKind,
    ports::{
        error::Error,
        fetch::{Body, Collected, FetchError, Request, Response, content_length, is_whole},
        header_names::append_text,
        home::Home,
        time::Timestamp,
    },
};

/// Proves that the request comes from the edge tier. The home tier's entry point removes this header. In a response, it
/// says that the home tier refuses the key.
const KEY: HeaderName = HeaderName::from_static("edge-tier-key");
/// The visitor's address.
const CLIENT: HeaderName = HeaderName::from_static("edge-tier-client");
/// The edge tier asks for the stored page. The value is the render number of its copy; empty without a copy.
const HELD: HeaderName = HeaderName::from_static("edge-tier-held");
/// The edge tier asks only to confirm its copy: no visitor waits.
const CONFIRM: HeaderName = HeaderName::from_static("edge-tier-confirm");
/// In a request: the last [`PageChange`] that the edge tier knows. In a response: the change that the request made, by the
/// clock of the home tier. Its time in milliseconds, then `1` if a visitor's request changed the page, else `0`.
const CHANGED: HeaderName = HeaderName::from_static("edge-tier-changed");
/// The response hands a stored page over. `same`: the edge tier's copy has its body; `new`: the response has it. Then the
/// milliseconds since Redis confirmed the page.
pub const PAGE: HeaderName = HeaderName::from_static("edge-tier-page");
/// In a response: [`FromHome::lacks_redis`].
const WITHOUT_REDIS: HeaderName = HeaderName::from_static("edge-tier-without-redis");
/// The path of [batches](batch) and [probes](probe).
pub const PATH: &str = "/_edge/tier";
/// Largest head of a page that the home tier hands over, bytes: its headers, its tags and the places of its holes.
const MAX_HEAD: usize = 1 << 20;
/// The address of this path. The binding needs no host.
const ADDRESS_OF_BATCHES: &str = "https://home.invalid/_edge/tier";

/// A change of a page that an isolate knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageChange {
    pub at: Timestamp,
    /// A visitor's request changed the page, so only the origin has the new page for a moment. Otherwise the page was
    /// purged.
    pub by_request: bool,
}

/// Marks a request that the edge tier passes on. The edge tier has already counted it in the rate limits of visitors. Two
/// tiers at one location share these counters, so the home tier must not count it again.
#[derive(Debug, Clone, Copy)]
pub struct FromEdge;

/// Marks a response of the home tier. The home tier has counted it in the traffic.
#[derive(Debug, Clone, Copy, Default)]
pub struct FromHome {
    /// Redis did not answer the home tier, so the response says nothing about the stored page.
    pub lacks_redis: bool,
}

/// Returns whether a header belongs to the exchange between the tiers.
fn is_of_tiers(name: &HeaderName) -> bool {
    name.as_str().starts_with("edge-tier-")
}

/// Removes the headers of the exchange.
pub fn clean(headers: &mut HeaderMap) {
    remove(headers, is_of_tiers);
}

/// Tells the edge tier that Redis did not answer.
pub fn mark_without_redis(headers: &mut HeaderMap) {
    headers.insert(WITHOUT_REDIS, HeaderValue::from_static(""));
}

/// Adds a change of a page to a request or a response.
pub fn tell_change(headers: &mut HeaderMap, PageChange { at, by_request }: PageChange) {
    append_text(headers, CHANGED, format!("{} {}", at.as_millis(), u8::from(by_request)));
}

/// Sends a request to the home tier, at most once. With `ask`, the response may be a stored page.
///
/// A timeout does not count for the circuit: a client or the origin may have sent a body slowly. Only a timeout of the
/// [`probe`] that follows it counts.
///
/// # Errors
/// [`Error::Home`], at once while the circuit is open.
pub async fn send(app: &App, mut request: Request, ask: Option<EdgeAsk>) -> Result<Response, Error> {
    let home = app.home.as_ref().filter(|_| !app.circuit.is_open()).ok_or(Error::Home(FetchError::Unreachable))?;
    let headers = request.headers_mut();
    clean(headers);
    if let Some(address) = headers.get(ADDRESS).cloned() {
        headers.insert(CLIENT, address);
    }
    headers.insert(KEY, app.keyring.tier_key()?);
    if let Some(EdgeAsk { held, is_confirmation }) = ask {
        headers.insert(HELD, held.map_or(HeaderValue::from_static(""), HeaderValue::from));
        if is_confirmation {
            headers.insert(CONFIRM, HeaderValue::from_static(""));
        }
    }
    if let Some(change) = request.extensions().get().copied() {
        tell_change(request.headers_mut(), change);
    }
    let config = &app.config;
    // The home tier waits for a form and its tokens before it asks the origin.
    let tokens = if config.page.holes.has_tokens() { 2 * config.page.holes_wait } else { Duration::ZERO };
    let deadline = deadline(&request, config.origin.timeout) + config.page.wait + tokens + config.redis.timeout;
    let began = app.clock.now();
    let response = exchange(&**home, request, deadline).await;
    app.traffic.record(LatencyKind::Home, app.clock.now().since(began));
    match &response {
        Ok(_) => app.circuit.record(&Ok(()), app.clock.now()),
        Err(FetchError::Timeout) => _ = probe(app).await,
        Err(_) => {}
    }
    let mut response = response.map_err(Error::Home)?;
    let headers = response.headers_mut();
    let (lacks_redis, page) = (headers.remove(WITHOUT_REDIS).is_some(), headers.remove(PAGE));
    let change = read_change(headers);
    // A newer home tier may have further headers.
    clean(headers);
    if let Some(page) = page {
        headers.insert(PAGE, page);
    }
    response.extensions_mut().insert(FromHome { lacks_redis });
    if let Some(change) = change {
        response.extensions_mut().insert(change);
    }
    Ok(response)
}

/// Reads the whole body of a response of the home tier, such as a page that it hands over. None if the body exceeds
/// `PAGE_MAX_BYTES` and [`MAX_HEAD`] together, breaks off, or takes longer than `PAGE_WAIT_MS` and `REDIS_TIMEOUT_MS` together.
pub async fn collect(app: &App, response: Response) -> Option<http::Response<Bytes>> {
    let (head, body) = response.into_parts();
    let length = content_length(&head.headers);
    let patience = app.clock.sleep(app.config.page.wait + app.config.redis.timeout);
    let limit = app.config.page.max_bytes.saturating_add(MAX_HEAD);
    match body.collect_within(limit, std::pin::pin!(patience)).await {
        Ok(Collected::Whole(body)) if is_whole(length, &body) => return Some(http::Response::from_parts(head, body)),
        Ok(Collected::TooLarge(_)) => {
            log::warn!("page cache: the page of the home tier is too large: give both tiers the same PAGE_MAX_BYTES");
        }
        _ => log::warn!("page cache: the home tier did not send the whole page"),
    }
    None
}

/// Sends a request. A response without edgefront's headers comes from the platform, not from the home tier. It counts as
/// unreachable, as does a refused key. Each response of edgefront has `Cache-Control` or `Cache-Status`, except those to a
/// batch and to a WebSocket.
async fn exchange(home: &dyn Home, request: Request, deadline: Duration) -> Result<Response, FetchError> {
    let is_batch = request.uri().path() == PATH;
    let response = home.send(request, deadline).await?;
    let status = response.status();
    let headers = response.headers();
    let is_refused = headers.contains_key(KEY);
    if is_refused {
        log::error!("the home tier refuses the edge tier's key: both tiers need the same SESSION_KEYS");
    }
    let is_own = headers.contains_key(header::CACHE_CONTROL) || headers.contains_key("cache-status");
    let may_lack_both = is_batch && !status.is_server_error() || status == StatusCode::SWITCHING_PROTOCOLS;
    if is_refused || !is_own && !may_lack_both {
        return Err(FetchError::Unreachable);
    }
    Ok(response)
}

/// The response to a request that the edge tier did not send.
#[must_use]
pub fn refusal() -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::FORBIDDEN;
    response.headers_mut().insert(KEY, HeaderValue::from_static("refused"));
    response
}

/// A batch of views, touches and counts for the home tier.
#[must_use]
pub fn batch(lines: String) -> Request {
    let mut request = Request::new(Body::from(lines));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static(ADDRESS_OF_BATCHES);
    request
}

/// Probes the home tier with an empty batch. An answer closes the circuit. Returns whether the home tier answered.
pub async fn probe(app: &App) -> bool {
    let (Some(home), Ok(key)) = (&app.home, app.keyring.tier_key()) else { return false };
    let mut request = batch(String::new());
    request.headers_mut().insert(KEY, key);
    let outcome = exchange(&**home, request, app.config.redis.timeout).await.map(drop);
    let is_alive = outcome.is_ok();
    app.circuit.record(&outcome.map_err(|error| TransportError::from(error).into()), app.clock.now());
    is_alive
}

/// Returns whether a request has the tier's key. The home tier's entry point [removes](accept) the key, so only a request
/// to the entry point for visitors still has it.
#[must_use]
pub fn is_from_edge(app: &App, headers: &HeaderMap) -> bool {
    headers.get(KEY).is_some_and(|key| app.keyring.is_tier_key(key.as_bytes()))
}

/// Reads and removes the headers of the exchange. Returns whether the edge tier sent the request.
pub fn accept(app: &App, request: &mut Request) -> bool {
    let headers = request.headers_mut();
    let is_from_edge = is_from_edge(app, headers);
    let address = headers.remove(CLIENT);
    let held = headers.get(HELD).map(|render| render.to_str().ok().and_then(|render| render.parse().ok()));
    let ask = held.map(|held| EdgeAsk { held, is_confirmation: headers.contains_key(CONFIRM) });
    let change = read_change(headers);
    clean(headers);
    headers.remove(ADDRESS);
    if let Some(address) = address {
        headers.insert(ADDRESS, address);
    }
    let extensions = request.extensions_mut();
    extensions.insert(FromEdge);
    if let Some(ask) = ask {
        extensions.insert(ask);
    }
    if let Some(change) = change {
        extensions.insert(change);
    }
    is_from_edge
}

fn read_change(headers: &HeaderMap) -> Option<PageChange> {
    let (at, by_request) = headers.get(CHANGED)?.to_str().ok()?.split_once(' ')?;
    Some(PageChange { at: Timestamp::from_millis(at.parse().ok()?), by_request: by_request == "1" })
}
