//! One request of a visitor.

use std::rc::Rc;

use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};

use super::csrf::{is_cross_site, is_subrequest};
use crate::{
    App,
    metrics::traffic::Metric,
    ports::{
        fetch::{Body, Request},
        header_names::remove_all,
        network::ClientNetwork,
        time::Timestamp,
    },
    ranking::{activity::Viewer, crawler},
    schema::{
        ids::{ItemId, RowId},
        token::Token,
    },
    sessions::cookie,
};

/// A visitor's request, with the facts that are known without Redis.
#[derive(Clone)]
pub struct Visit {
    pub app: Rc<App>,
    pub now: Timestamp,
    /// The token of a correctly signed cookie; its session may have ended.
    pub token: Option<Token>,
    /// The visitor may have a session although the request has no token: see [`RequestHead::may_lack_session_cookie`].
    pub may_lack_session_cookie: bool,
    /// The item that the URL names.
    pub item: Option<ItemId>,
    pub network: Option<ClientNetwork>,
    /// The origin gets the visitor's cart (`CART_ROUTES`, `FLASH_CHECKOUT`), which no cache key contains.
    pub sends_cart: bool,
    /// The flash sale whose piece the visitor buys here (`FLASH_CHECKOUT`).
    pub sale: Option<RowId>,
    /// The edge tier's request for a stored page; None for a request of a visitor.
    pub edge: Option<EdgeAsk>,
    /// The response is a part of a page whose visit is recorded already.
    pub is_part: bool,
}

impl Visit {
    #[must_use]
    pub fn of(app: &Rc<App>, request: &Request, now: Timestamp) -> Self {
        let (config, path, query) = (&app.config, request.uri().path(), request.uri().query());
        let sale = config.flash.checkout.item(path, query).map(RowId::from);
        Self {
            app: app.clone(),
            now,
            token: app.keyring.read(request.headers(), now),
            may_lack_session_cookie: may_lack_session_cookie(request.method(), request.uri(), request.headers()),
            item: config.page.urls.items.item(path, query),
            network: ClientNetwork::of(request.headers()),
            sends_cart: config.origin.cart_routes.contains(path) || sale.is_some(),
            sale,
            edge: request.extensions().get().copied(),
            is_part: false,
        }
    }

    /// Records the session's activity, and a person's view of the item if its page has status 200. So invented item
    /// names never enter the ranking. The item that the origin `named` wins over the URL's.
    pub fn record(&self, method: &Method, headers: &HeaderMap, status: StatusCode, named: Option<&ItemId>) {
        if self.is_part {
            return;
        }
        let item = named.or(self.item.as_ref());
        let is_view = |_: &&ItemId| method == Method::GET && status == StatusCode::OK && crawler::is_human(headers);
        let item = item.filter(is_view);
        if item.is_some() {
            self.app.traffic.count(Metric::View);
        }
        self.app.activity.record_visit(Viewer { token: self.token.as_ref(), network: self.network }, item, self.now);
    }
}

/// The edge tier's request for a stored page.
#[derive(Debug, Clone, Copy)]
pub struct EdgeAsk {
    /// The render of its copy.
    pub held: Option<u64>,
    /// No visitor waits for the page or sees it.
    pub is_confirmation: bool,
}

/// Method, URI and headers of a request whose body travels to the origin.
#[derive(Clone)]
pub struct RequestHead {
    pub method: Method,
    pub uri: Uri,
    pub headers: HeaderMap,
}

impl RequestHead {
    #[must_use]
    pub fn of(request: &Request) -> Self {
        Self { method: request.method().clone(), uri: request.uri().clone(), headers: request.headers().clone() }
    }

    /// Returns whether the browser may have withheld the session cookie (`SameSite=Lax`): another site sent this request, which has
    /// no session cookie and follows no link.
    #[must_use]
    pub fn may_lack_session_cookie(&self) -> bool {
        may_lack_session_cookie(&self.method, &self.uri, &self.headers)
    }

    /// The request without a body.
    #[must_use]
    pub fn into_request(self) -> Request {
        let mut request = Request::new(Body::Empty);
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (self.method, self.uri, self.headers);
        request
    }

    /// The request without a body, for a whole response that is not compressed.
    pub(super) fn for_scan(&self) -> Request {
        let mut request = self.clone().into_request();
        let headers = request.headers_mut();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        remove_all(headers, &["range", "if-range"]);
        request
    }
}

fn may_lack_session_cookie(method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
    let is_link = method.is_safe() && !is_subrequest(headers);
    !is_link && !cookie::is_sent(headers) && is_cross_site(uri, headers)
}
