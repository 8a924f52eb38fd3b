//! One polite HTTP client for all requests to the shop: one request at a time, a pause after each, and limits for time
//! and size. edgefront's own code sends its requests through it, too.

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::{Bytes, BytesMut};
use edgefront::{
    ports::{
        fetch::{Body, Fetch, FetchError, Request, Response},
        time::{Clock, Timestamp},
    },
    proxy::esi,
};
use futures_util::future::LocalBoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use tokio::{
    sync::Mutex,
    time::{Instant, sleep, sleep_until, timeout},
};
use upstash_rest::{ExchangeTerms, TransportError};
use url::{Host, Url};
use xtask::failure::{Failure, root_cause};

/// Longest time for one page, with its body.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Longest wait for one `Retry-After`.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);
/// Longest time of all these waits together.
const MAX_WAITS: Duration = Duration::from_mins(2);
/// See [`Page::start`], bytes.
const MAX_START: usize = 1 << 20;
/// Names the doctor in the shop's log.
const USER_AGENT: &str = concat!("edgefront-doctor/", env!("CARGO_PKG_VERSION"));
/// The doctor trusts the certificates of the system. workerd has its own list.
const CERTIFICATE_REMEDY: &str = "if you trust the certificate, name the file of its authority in SSL_CERT_FILE, and in \
    NODE_EXTRA_CA_CERTS for `cargo xtask dev`";

/// The examined shop.
pub struct Shop {
    client: reqwest::Client,
    /// No request starts before this moment. The lock makes requests wait for each other.
    next: Mutex<Instant>,
    pause: Duration,
    /// Largest body, bytes. The rest is not read.
    limit: usize,
    requests: Cell<u32>,
    /// The waits after `Retry-After` so far.
    waited: Cell<Duration>,
    /// The pages with ESI that edgefront's code got, by their addresses.
    templates: RefCell<HashMap<String, Bytes>>,
    /// The tags and texts of the pages that the crawl has read.
    shown: RefCell<HashSet<String>>,
}

/// A response with its body.
pub struct Page {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The first bytes of a body that exceeds the limit.
    pub body: Bytes,
}

/// The reason why there is no page.
#[derive(Debug)]
pub enum NoPage {
    Timeout,
    /// The cause, for people.
    Unreachable(String),
}

impl Shop {
    /// `limit`: edgefront stores no larger page, in bytes.
    ///
    /// # Errors
    /// When the system has no certificates.
    pub fn new(start: &Url, pause: Duration, limit: usize) -> Result<Self, Failure> {
        // Fails if a provider is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).user_agent(USER_AGENT);
        // A proxy cannot reach this machine.
        let builder = if is_loopback(start) { builder.no_proxy() } else { builder };
        let client =
            builder.build().map_err(|error| Failure::new(format!("no HTTP client: {}", root_cause(&error)), ""))?;
        // Room for the size of a page that is too large.
        let limit = limit.saturating_mul(8);
        Ok(Self {
            client,
            next: Mutex::new(Instant::now()),
            pause,
            limit,
            requests: Cell::new(0),
            waited: Cell::default(),
            templates: RefCell::default(),
            shown: RefCell::default(),
        })
    }

    /// The page with ESI that edgefront's code got last from this address.
    pub fn template(&self, url: &str) -> Option<Bytes> {
        self.templates.borrow().get(url).cloned()
    }

    /// Remembers the tags and texts of a page that the crawl has read.
    pub fn remember(&self, texts: &[String]) {
        self.shown.borrow_mut().extend(texts.iter().cloned());
    }

    /// Returns whether a page that the crawl has read has this tag or text.
    pub fn has_shown(&self, text: &str) -> bool {
        self.shown.borrow().contains(text)
    }

    /// Number of requests that the shop got.
    pub fn requests(&self) -> u32 {
        self.requests.get()
    }

    /// Requests a page as a browser with these cookies does.
    ///
    /// # Errors
    /// When there is no response.
    pub async fn get(&self, url: &Url, cookies: Option<&HeaderValue>) -> Result<Page, NoPage> {
        self.get_with(url, cookies.map(|cookies| (header::COOKIE, cookies.clone()))).await
    }

    /// Requests a page with these cookies, whose fragments the shop may leave to edgefront.
    ///
    /// # Errors
    /// When there is no response.
    pub async fn get_with_esi(&self, url: &Url, cookies: &HeaderValue) -> Result<Page, NoPage> {
        let capability = HeaderValue::from_static(esi::CAPABILITY);
        self.get_with(url, [(header::COOKIE, cookies.clone()), (esi::CAPABILITY_HEADER, capability)]).await
    }

    /// Requests a page as a browser with these headers does.
    ///
    /// # Errors
    /// When there is no response.
    pub async fn get_with(
        &self,
        url: &Url,
        more: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
    ) -> Result<Page, NoPage> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/html,*/*;q=0.8"));
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        for (name, value) in more {
            headers.insert(name, value);
        }
        self.send(self.client.get(url.clone()).headers(headers)).await
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Page, NoPage> {
        let mut next = self.next.lock().await;
        sleep_until(*next).await;
        self.requests.set(self.requests.get().saturating_add(1));
        let answer = timeout(TIMEOUT, self.read(request)).await;
        let wait = answer.as_ref().ok().and_then(|page| retry_after(page.as_ref().ok()?)).unwrap_or_default();
        let wait = wait.min(MAX_WAITS.saturating_sub(self.waited.get()));
        self.waited.set(self.waited.get() + wait);
        *next = Instant::now() + self.pause.max(wait);
        match answer {
            Ok(Ok(page)) => Ok(page),
            Err(_) => Err(NoPage::Timeout),
            Ok(Err(error)) if error.is_timeout() => Err(NoPage::Timeout),
            Ok(Err(error)) => Err(NoPage::Unreachable(root_cause(&error))),
        }
    }

    async fn read(&self, request: reqwest::RequestBuilder) -> reqwest::Result<Page> {
        let mut response = request.send().await?;
        let mut body = BytesMut::new();
        while body.len() <= self.limit
            && let Some(chunk) = response.chunk().await?
        {
            body.extend_from_slice(&chunk);
        }
        body.truncate(self.limit.saturating_add(1));
        let headers = std::mem::take(response.headers_mut());
        Ok(Page { status: response.status(), headers, body: body.freeze() })
    }
}

/// Returns whether a shop in trouble sent this status. Such a response says nothing about the page.
pub fn is_trouble(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

/// The wait that a shop in trouble asks for (RFC 9110 §10.2.3), at most [`MAX_RETRY_AFTER`].
fn retry_after(page: &Page) -> Option<Duration> {
    let value = page.headers.get(header::RETRY_AFTER).filter(|_| is_trouble(page.status))?;
    Some(Duration::from_secs(value.to_str().ok()?.trim().parse().ok()?).min(MAX_RETRY_AFTER))
}

/// The target of a redirect.
pub fn redirect(status: StatusCode, headers: &HeaderMap, url: &Url) -> Option<Url> {
    let location = headers.get(header::LOCATION).filter(|_| status.is_redirection())?;
    url.join(location.to_str().ok()?).ok()
}

impl Page {
    /// Returns whether the body is HTML.
    pub fn is_html(&self) -> bool {
        let kind = self.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.to_ascii_lowercase();
        kind.starts_with("text/html") || kind.starts_with("application/xhtml+xml")
    }

    /// Returns whether the body has ESI.
    pub fn has_esi(&self) -> bool {
        esi::is_declared(&self.headers)
    }

    /// The first MiB of the body, as [`Page::text`]. It has enough links, and to parse 8 MB takes a minute.
    pub fn start(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.body.get(..MAX_START).unwrap_or(&self.body))
    }

    /// The body. Bytes that are not UTF-8 become U+FFFD.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }
}

impl NoPage {
    /// The error for the first request of a run.
    pub fn failure(self, url: &Url) -> Failure {
        match self {
            Self::Timeout => {
                let cause = format!("{url} did not answer within {} s", TIMEOUT.as_secs());
                Failure::new(cause, "check that the shop runs")
            }
            Self::Unreachable(cause) => {
                let remedy = "check the address, and that the shop runs";
                let remedy = match without_tls(url) {
                    Some(_) if cause.contains("certificate") => CERTIFICATE_REMEDY.to_owned(),
                    Some(plain) => format!("{remedy}; if the shop has no TLS, write {plain}"),
                    None => remedy.to_owned(),
                };
                Failure::new(format!("{url} is unreachable: {cause}"), remedy)
            }
        }
    }
}

impl Fetch for Shop {
    fn fetch(&self, request: Request, _: Duration) -> LocalBoxFuture<'_, Result<Response, FetchError>> {
        Box::pin(async move {
            let (mut head, _) = request.into_parts();
            // The host is the URL's.
            head.headers.remove(header::HOST);
            let url = head.uri.to_string();
            let builder = self.client.request(head.method, url.clone()).headers(head.headers);
            let page = self.send(builder).await.map_err(|error| match error {
                NoPage::Timeout => FetchError::Timeout,
                NoPage::Unreachable(_) => FetchError::Unreachable,
            })?;
            if page.has_esi() {
                self.templates.borrow_mut().insert(url, page.body.clone());
            } else {
                self.templates.borrow_mut().remove(&url);
            }
            let mut response = Response::new(Body::from(page.body));
            *response.status_mut() = page.status;
            *response.headers_mut() = page.headers;
            Ok(response)
        })
    }

    fn exchange(
        &self,
        _: http::Request<Bytes>,
        _: ExchangeTerms,
    ) -> LocalBoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        Box::pin(async { Err(TransportError::NotSent("the doctor has no Redis")) })
    }
}

/// The clock of this machine.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()> {
        Box::pin(sleep(duration))
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// The address with `http:`. None if it has no TLS already.
fn without_tls(url: &Url) -> Option<Url> {
    let mut plain = url.clone();
    (url.scheme() == "https" && plain.set_scheme("http").is_ok()).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_certificate_has_its_own_remedy() {
        let url = Url::parse("https://localhost:8443/").unwrap();
        let failure = NoPage::Unreachable("invalid peer certificate: UnknownIssuer".to_owned()).failure(&url);
        assert!(failure.remedy.contains("SSL_CERT_FILE") && !failure.remedy.contains("http://"), "{}", failure.remedy);
    }
}
