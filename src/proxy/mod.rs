//! The storefront behind us: any HTTP server, or the demo shop. What belongs to a connection, and every `Edge-*` header that
//! is not ours to send, stays on its side.

use std::time::Duration;

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Uri,
    header::{self, Entry},
};
use serde_json::json;
use url::Url;

use crate::{
    App,
    carts::{self, Cart},
    config::CartConfig,
    orders::{Order, flash_sale::Reservation},
    ports::{
        error::Error,
        fetch::{Body, FetchError, Request, Response},
        time::Timestamp,
    },
    schema::ids::{RowId, Tag, UserId},
    sessions::{Session, cookie},
};

/// What the origin is told of whoever asks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct VisitorContext {
    /// `Edge-User`: who is logged in.
    pub user: Option<UserId>,
    /// `Edge-Cart`: what is in their cart. None if that was not read.
    pub cart: Option<Cart>,
    /// `Edge-Reservation`: the piece of a flash sale that is held for them, where they buy it.
    pub reservation: Option<(RowId, Reservation)>,
}

impl From<Option<Session>> for VisitorContext {
    fn from(session: Option<Session>) -> Self {
        Self { user: session.and_then(|session| session.user), ..Self::default() }
    }
}

/// What the origin tells us beside its answer (PRODUCT §4); the headers themselves are removed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct OriginDirectives {
    /// `Edge-Login`: this user has logged in.
    pub user: Option<UserId>,
    /// `Edge-LogoutScope`.
    pub logout: Option<LogoutScope>,
    /// `Edge-Cart`: a change to the visitor's cart.
    pub cart: Option<carts::CartChange>,
    /// `Edge-Order`: what the visitor has bought.
    pub order: Option<Order>,
    /// `Edge-Tags`.
    pub tags: Vec<Tag>,
}

/// Which sessions end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogoutScope {
    /// `1`: the visitor's.
    This,
    /// `all`: every session of the visitor's user.
    All,
}

/// Passes a visitor's request on: all that it has but our cookie, with what the origin is to know of the visitor.
///
/// # Errors
/// [`Error::Origin`] if there is no answer; its body may still break off.
pub async fn ask(
    app: &App,
    mut request: Request,
    visitor: &VisitorContext,
    now: Timestamp,
) -> Result<(Response, OriginDirectives), Error> {
    let cookies = cookie::strip(request.headers());
    let headers = request.headers_mut();
    remove_hop_by_hop(headers);
    remove(headers, is_edge);
    headers.remove(header::HOST);
    // Answered by our own server already.
    headers.remove(header::EXPECT);
    headers.remove(header::COOKIE);
    if let Some(cookies) = cookies {
        headers.insert(header::COOKIE, cookies);
    }
    // All are visible ASCII, so they always are header values.
    let user = visitor.user.as_ref().map(|user| user.as_str().to_owned());
    let cart = visitor.cart.as_ref().map(|cart| cart.to_json().to_string());
    let reservation = visitor.reservation.as_ref().map(|(sale, Reservation { id, until })| {
        json!({"sale": sale.as_str(), "id": id.as_str(), "until": until.as_score()}).to_string()
    });
    for (name, value) in [("edge-user", user), ("edge-cart", cart), ("edge-reservation", reservation)] {
        headers.extend(
            value.map(HeaderValue::try_from).and_then(Result::ok).map(|value| (HeaderName::from_static(name), value)),
        );
    }
    send(app, request, now).await
}

/// Asks for a page that may be stored, by its canonical URL. All that the request carries is in that, in `headers`, or the same
/// for all.
///
/// # Errors
/// As [`ask`].
pub async fn ask_for_page(
    app: &App,
    url: &str,
    headers: HeaderMap,
    now: Timestamp,
) -> Result<(Response, OriginDirectives), Error> {
    let mut request = Request::new(Body::Empty);
    *request.method_mut() = Method::GET;
    *request.uri_mut() = url.parse().map_err(|_| Error::Platform("a page's URL is none".to_owned()))?;
    request.headers_mut().extend([
        (header::ACCEPT, HeaderValue::from_static("text/html,*/*;q=0.8")),
        (header::ACCEPT_ENCODING, HeaderValue::from_static("identity")),
        (header::USER_AGENT, HeaderValue::from_static("edgefront")),
    ]);
    // Replaces those of ours that it has too.
    request.headers_mut().extend(headers);
    send(app, request, now).await
}

/// What whoever asks whether the origin answers waits for it at the most.
const PATIENCE: Duration = Duration::from_secs(3);

/// Finds out whether the origin answers, with any status below 500; of the demo shop, whether its database does.
///
/// # Errors
/// [`Error::Origin`], [`Error::Database`], or [`Error::Platform`] with the status that it answered.
pub async fn answers(app: &App) -> Result<(), Error> {
    let Some(url) = &app.config.origin.url else {
        let database = app.database.as_ref().ok_or_else(no_origin)?;
        return Ok(database.query("SELECT 1", &[]).await.map(drop)?);
    };
    let mut request = Request::new(Body::Empty);
    *request.method_mut() = Method::HEAD;
    *request.uri_mut() = url.as_str().parse().map_err(|_| no_origin())?;
    request.headers_mut().extend(app.config.origin.key.clone().map(|key| (HeaderName::from_static("edge-key"), key)));
    let status = app.fetch.fetch(request, app.config.origin.timeout.min(PATIENCE)).await?.status();
    if status.is_server_error() { Err(Error::Platform(format!("the origin answers {status}"))) } else { Ok(()) }
}

fn no_origin() -> Error {
    Error::Platform("neither ORIGIN_URL nor the demo shop's database is there".to_owned())
}

async fn send(app: &App, mut request: Request, now: Timestamp) -> Result<(Response, OriginDirectives), Error> {
    let config = &app.config.origin;
    forwarded(&mut request);
    if let Some(key) = &config.key {
        request.headers_mut().insert("edge-key", key.clone());
    }
    let mut response = match &config.url {
        Some(url) => proxy(app, url, request).await?,
        None => demo(app, request, now).await?,
    };
    let says = OriginDirectives::take(response.headers_mut(), app.config.cart);
    Ok((response, says))
}

/// Asks the storefront of `ORIGIN_URL`, whose path goes before every other.
async fn proxy(app: &App, url: &Url, mut request: Request) -> Result<Response, Error> {
    *request.uri_mut() = address(url, request.uri())?;
    let mut response = app.fetch.fetch(request, app.config.origin.timeout).await?;
    // Neither an answer nor one that the platform could pass on: interim (101 too, as no upgrade was asked for), or none of HTTP's.
    if !(200..600).contains(&response.status().as_u16()) {
        return Err(FetchError::Unreachable.into());
    }
    remove_hop_by_hop(response.headers_mut());
    keep_here(response.headers_mut(), url);
    Ok(response)
}

/// Asks the built-in shop.
#[cfg(feature = "demo")]
async fn demo(app: &App, request: Request, now: Timestamp) -> Result<Response, Error> {
    let database = app.database.as_ref().ok_or_else(no_origin)?;
    Ok(crate::demo::respond(database.as_ref(), &app.limits.logins, request, now).await)
}

/// Can not be: such a Worker does not start without `ORIGIN_URL`.
#[cfg(not(feature = "demo"))]
#[expect(clippy::unused_async, reason = "as the other one")]
async fn demo(_: &App, _: Request, _: Timestamp) -> Result<Response, Error> {
    Err(FetchError::Unreachable.into())
}

impl OriginDirectives {
    /// Whether it means one visitor: such an answer is nobody else's.
    #[must_use]
    pub const fn is_personal(&self) -> bool {
        self.user.is_some() || self.logout.is_some() || self.cart.is_some() || self.order.is_some()
    }

    /// Reads and removes what the origin said.
    fn take(headers: &mut HeaderMap, config: CartConfig) -> Self {
        // Most answers are a page, and nothing else.
        if !headers.keys().any(is_edge) {
            return Self::default();
        }
        let logout = match text(headers, "edge-logout") {
            Some("1") => Some(LogoutScope::This),
            Some("all") => Some(LogoutScope::All),
            _ => None,
        };
        let says = Self {
            user: read(headers, "edge-login", UserId::parse),
            logout,
            cart: read(headers, "edge-cart", |text| carts::CartChange::parse(text, &config)),
            order: read(headers, "edge-order", |text| Order::parse(text, &config)),
            tags: tags(headers),
        };
        remove(headers, is_edge);
        says
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// What a header says; one that says nothing we understand is logged, and is none.
fn read<T>(headers: &HeaderMap, name: &str, parse: impl Fn(&str) -> Result<T, Error>) -> Option<T> {
    match parse(text(headers, name)?) {
        Ok(said) => Some(said),
        Err(error) => {
            log::error!("the origin's {name} is ignored: {error}");
            None
        }
    }
}

/// The tags of `Edge-Tags: a, b`, without those that are none; 32 at the most, since each is looked up at every hit.
fn tags(headers: &HeaderMap) -> Vec<Tag> {
    let lines = headers.get_all("edge-tags").iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).filter_map(|tag| Tag::parse(tag.trim()).ok()).take(32).collect()
}

/// The origin's address for what was asked of us: its path, then ours, to the letter.
fn address(origin: &Url, asked: &Uri) -> Result<Uri, Error> {
    let path = asked.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let address = format!("{}{}{path}", root(origin), prefix(origin));
    // What came in as a path goes out as one, unless it is longer than an address may be (64 KB).
    address.parse().map_err(|_| FetchError::Unreachable.into())
}

fn root(origin: &Url) -> String {
    origin.origin().ascii_serialization()
}

/// `/shop` of `https://shop.example/shop/`, or nothing.
fn prefix(origin: &Url) -> &str {
    origin.path().trim_end_matches('/')
}

/// Tells the origin how the visitor named it: links that it makes then lead to us.
fn forwarded(request: &mut Request) {
    let uri = request.uri();
    let values = [
        ("x-forwarded-host", uri.authority().map(ToString::to_string)),
        ("x-forwarded-proto", uri.scheme_str().map(str::to_owned)),
    ];
    for (name, value) in values {
        if let Some(Ok(value)) = value.map(HeaderValue::try_from) {
            request.headers_mut().insert(name, value);
        }
    }
}

/// A redirect to the origin's own address would lead the visitor past us: it becomes one to the same path here. Any other
/// `Location` is left as it is.
fn keep_here(headers: &mut HeaderMap, origin: &Url) {
    let Entry::Occupied(mut location) = headers.entry(header::LOCATION) else { return };
    let Ok(text) = location.get().to_str() else { return };
    let (root, prefix) = (root(origin), prefix(origin));
    // With the origin's name, or a bare path under its prefix.
    let path = text.strip_prefix(&root).or_else(|| (!prefix.is_empty() && text.starts_with('/')).then_some(text));
    let Some(here) = path.and_then(|path| path.strip_prefix(prefix)) else { return };
    let here = match here.chars().next() {
        Some('/') if !names_a_host(here) => here.to_owned(),
        None | Some('?' | '#') => format!("/{here}"),
        // Another host, port or path that only begins like the origin's.
        Some(_) => return,
    };
    if let Ok(here) = HeaderValue::try_from(here) {
        location.insert(here);
    }
}

/// Whether a browser takes a path for `//host`: a backslash is a slash to it, and a tab is nothing (the URL standard, §4.4).
fn names_a_host(path: &str) -> bool {
    let mut characters = path.chars().filter(|character| *character != '\t').skip(1);
    matches!(characters.next(), Some('/' | '\\'))
}

/// Headers of one connection (RFC 9110 §7.6.1), and those that `Connection` names.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Whether a header is one connection's by its name.
#[must_use]
pub fn is_hop_by_hop(name: &str) -> bool {
    HOP_BY_HOP.contains(&name)
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let lines = headers.get_all(header::CONNECTION).iter().filter_map(|line| line.to_str().ok());
    let named: Vec<_> = lines.flat_map(|line| line.split(',')).map(|name| name.trim().to_ascii_lowercase()).collect();
    remove(headers, |name| is_hop_by_hop(name.as_str()) || named.iter().any(|named| named == name.as_str()));
}

fn remove(headers: &mut HeaderMap, which: impl Fn(&HeaderName) -> bool) {
    let removed: Vec<_> = headers.keys().filter(|name| which(name)).cloned().collect();
    for name in removed {
        headers.remove(name);
    }
}

/// Whether a header is part of what the origin and we say to each other. Also `Edge_User` and `Edge.User`: a storefront that knows its
/// headers by their CGI names (RFC 3875 §4.1.18) reads them as `Edge-User`.
#[must_use]
pub fn is_edge(name: &HeaderName) -> bool {
    name.as_str().strip_prefix("edge").is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_alphanumeric()))
}
