//! The exchange with the origin: any HTTP server (`ORIGIN_URL`), or the demo shop.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use serde_json::json;
use url::Url;

use super::{
    cookies, csrf,
    directives::OriginDirectives,
    esi::CAPABILITY_HEADER,
    headers::{origin_uri, prefix, remove, remove_hop_by_hop, rewrite_location, set_forwarded, websocket_upgrade},
    visitor::VisitorContext,
};
use crate::{
    App,
    metrics::traffic::LatencyKind,
    orders::flash_sale::Reservation,
    ports::{
        error::Error,
        fetch::{Body, FetchError, Request, Response, content_length},
        header_names::{DIGESTS, append_text, is_edge, remove_all},
        time::Timestamp,
    },
    sessions::cookie,
};

/// Timeout of a health check.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(3);
/// Longest body that is sent within `ORIGIN_TIMEOUT` even by a slow client, bytes.
const SHORT_BODY: u64 = 1 << 20;
/// The deadline of a request with a longer body, in units of `ORIGIN_TIMEOUT`: the deadline includes the upload.
const UPLOAD_DEADLINES: u32 = 10;

/// Sends a visitor's own request without edgefront's cookie, and with the `Edge-*` headers about the visitor.
///
/// # Errors
/// [`Error::Origin`] without a response; its body may still be truncated.
pub(super) async fn fetch_personal(
    app: &App,
    mut request: Request,
    visitor: &VisitorContext,
    now: Timestamp,
) -> Result<(Response, OriginDirectives), Error> {
    let cookies = cookie::strip(request.headers());
    let upgrade = websocket_upgrade(request.headers());
    let headers = request.headers_mut();
    remove_hop_by_hop(headers);
    remove(headers, is_edge);
    if let Some(upgrade) = upgrade {
        headers.insert(header::UPGRADE, upgrade);
    }
    headers.remove(header::HOST);
    // The platform's server has answered `Expect` already.
    headers.remove(header::EXPECT);
    // edgefront expands the ESI of an answer to one visitor, but does not ask for it: the origin's own expansion takes
    // one request.
    headers.remove(CAPABILITY_HEADER);
    headers.remove(header::COOKIE);
    if let Some(cookies) = cookies {
        headers.insert(header::COOKIE, cookies);
    }
    if let Some(name) = &app.config.page.cookies.csrf {
        let (is_safe, uri) = (request.method().is_safe(), request.uri().clone());
        csrf::protect(request.headers_mut(), name, &uri, is_safe);
    }
    let headers = request.headers_mut();
    let session = Some(visitor.session.as_str().to_owned());
    let user = visitor.user.as_ref().map(|user| user.as_str().to_owned());
    let cart = visitor.cart.as_ref().map(|cart| cart.to_json().to_string());
    let reservation = visitor.reservation.as_ref().map(|(sale, Reservation { id, until })| {
        json!({"sale": sale.as_str(), "id": id.as_str(), "until": until.as_score()}).to_string()
    });
    let facts =
        [("edge-session", session), ("edge-user", user), ("edge-cart", cart), ("edge-reservation", reservation)];
    for (name, value) in facts {
        if let Some(value) = value {
            append_text(headers, HeaderName::from_static(name), value);
        }
    }
    send(app, request, now).await
}

/// Requests a page for all visitors, by its canonical URL. The request depends on `url` and `headers` only.
///
/// # Errors
/// [`Error::Origin`] without a response; its body may still be truncated.
pub async fn fetch_shared(
    app: &App,
    url: &str,
    headers: HeaderMap,
    now: Timestamp,
) -> Result<(Response, OriginDirectives), Error> {
    let mut request = Request::new(Body::Empty);
    *request.method_mut() = Method::GET;
    *request.uri_mut() = url.parse().map_err(|_| Error::Platform("a page's URL is invalid".to_owned()))?;
    request.headers_mut().extend([
        (header::ACCEPT, HeaderValue::from_static("text/html,*/*;q=0.8")),
        (header::ACCEPT_ENCODING, HeaderValue::from_static("identity")),
        (header::USER_AGENT, HeaderValue::from_static("edgefront")),
    ]);
    // Replaces the defaults above.
    request.headers_mut().extend(headers);
    request.headers_mut().insert("edge-shared", HeaderValue::from_static("1"));
    if let Some(name) = &app.config.page.cookies.csrf {
        csrf::add(request.headers_mut(), name);
    }
    send(app, request, now).await
}

/// Checks that the origin answers with a status below 500; for the demo shop, that its database answers.
///
/// # Errors
/// [`Error::Origin`], [`Error::Database`], or [`Error::Platform`] with the origin's status.
pub async fn check_health(app: &App) -> Result<(), Error> {
    let Some(url) = &app.config.origin.url else {
        let database = app.database.as_ref().ok_or_else(no_origin)?;
        return Ok(database.query("SELECT 1", &[]).await.map(drop)?);
    };
    let mut request = Request::new(Body::Empty);
    *request.method_mut() = Method::HEAD;
    *request.uri_mut() = url.as_str().parse().map_err(|_| no_origin())?;
    if let Some(key) = &app.config.origin.key {
        request.headers_mut().insert("edge-key", key.clone());
    }
    let status = app.fetch.fetch(request, app.config.origin.timeout.min(HEALTH_TIMEOUT)).await?.status();
    if status.is_server_error() { Err(Error::Platform(format!("the origin answers {status}"))) } else { Ok(()) }
}

fn no_origin() -> Error {
    Error::Platform("there is no origin: set ORIGIN_URL, or bind the demo shop's database".to_owned())
}

async fn send(app: &App, mut request: Request, now: Timestamp) -> Result<(Response, OriginDirectives), Error> {
    let config = &app.config.origin;
    set_forwarded(&mut request);
    if let Some(key) = &config.key {
        request.headers_mut().insert("edge-key", key.clone());
    }
    let began = app.clock.now();
    let response = match &config.url {
        Some(url) => send_to_server(app, url, request).await,
        None => send_to_demo(app, request, now).await,
    };
    app.traffic.record(LatencyKind::Origin, app.clock.now().since(began));
    let mut response = response?;
    if let Some(name) = &app.config.page.cookies.csrf {
        csrf::replace_set_cookie(response.headers_mut(), name);
    }
    let directives = OriginDirectives::take(response.headers_mut(), app.config.cart);
    if directives.has_esi {
        // They describe the page before its processing.
        remove_all(response.headers_mut(), &["accept-ranges", "etag", "last-modified"]);
        remove_all(response.headers_mut(), &DIGESTS);
    }
    Ok((response, directives))
}

async fn send_to_server(app: &App, url: &Url, mut request: Request) -> Result<Response, Error> {
    *request.uri_mut() = origin_uri(url, request.uri())?;
    let deadline = deadline(&request, app.config.origin.timeout);
    let is_handshake = request.headers().contains_key(header::UPGRADE);
    let mut response = app.fetch.fetch(request, deadline).await?;
    // The platform can pass on neither another interim response nor an unknown class.
    let is_open = is_handshake && response.status() == StatusCode::SWITCHING_PROTOCOLS;
    if !is_open && !(200..600).contains(&response.status().as_u16()) {
        return Err(FetchError::Unreachable.into());
    }
    // The platform removes no other transfer coding, and the request asked for none (RFC 9112 §6.1, §7.4).
    let codings = response.headers().get_all(header::TRANSFER_ENCODING);
    if codings.iter().any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"chunked")) {
        return Err(FetchError::Unreachable.into());
    }
    let has_no_body = matches!(response.status().as_u16(), 204 | 205);
    // Such a length does not delimit the body (RFC 9112 §6.3), so the body must not be compared with it.
    if has_no_body || response.headers().contains_key(header::TRANSFER_ENCODING) {
        response.headers_mut().remove(header::CONTENT_LENGTH);
    }
    remove_hop_by_hop(response.headers_mut());
    for name in [header::LOCATION, header::CONTENT_LOCATION] {
        rewrite_location(response.headers_mut(), name, url);
    }
    if !prefix(url).is_empty() {
        cookies::rewrite_paths(response.headers_mut(), prefix(url));
    }
    Ok(response)
}

#[cfg(feature = "demo")]
async fn send_to_demo(app: &App, request: Request, now: Timestamp) -> Result<Response, Error> {
    use crate::{
        config::MailTarget,
        orders::flash_sale::GRACE,
        ports::{
            mail::{LogMailer, Mailer},
            time::within,
        },
    };
    let database = app.database.as_ref().ok_or_else(no_origin)?;
    let mailer = app.config.origin.mail.map(|MailTarget::Log| &LogMailer as &dyn Mailer);
    let (logins, site) = (&app.limits.logins, app.config.origin.site.as_deref());
    let services = crate::demo::Services {
        database: database.as_ref(),
        logins,
        mailer,
        max_quantity: app.config.cart.max_quantity,
        flash_hold: app.config.flash.hold + GRACE,
        site,
    };
    let response = Box::pin(crate::demo::respond(services, request, now));
    within(&*app.clock, app.config.origin.timeout, response).await.ok_or_else(|| FetchError::Timeout.into())
}

/// Unreachable: such a Worker does not start without `ORIGIN_URL`.
#[cfg(not(feature = "demo"))]
#[expect(clippy::unused_async, reason = "the same signature as with the demo shop")]
async fn send_to_demo(_: &App, _: Request, _: Timestamp) -> Result<Response, Error> {
    Err(FetchError::Unreachable.into())
}

/// The deadline of a request to the origin.
pub(super) fn deadline(request: &Request, timeout: Duration) -> Duration {
    let is_long = || content_length(request.headers()).is_none_or(|length: u64| length > SHORT_BODY);
    let is_upload = matches!(request.body(), Body::Stream(_)) && is_long();
    if is_upload { timeout * UPLOAD_DEADLINES } else { timeout }
}
