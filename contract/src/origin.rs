//! Requests to the origin, with the headers that edgefront would send.

use std::time::Duration;

use edgefront::{page_cache::policy::CacheControl, proxy::cookie_name, schema::ids::UserId};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use url::Url;
use xtask::failure::{Failure, root_cause};

use crate::form::Cookies;

const TIMEOUT: Duration = Duration::from_secs(15);
/// Bytes of a body that are read: as many as edgefront reads of a response of `ROWS_URL`.
const MAX_BODY: usize = 4 << 20;
/// The address that personal requests carry: one of the documentation range (RFC 5737).
const VISITOR_ADDRESS: HeaderValue = HeaderValue::from_static("192.0.2.7");

/// The examined origin.
pub struct Origin {
    client: reqwest::Client,
    pub url: Url,
    /// The address that visitors use.
    pub public: Url,
    pub key: HeaderValue,
}

/// The visitor of a request.
#[derive(Clone, Copy)]
pub enum Visitor<'a> {
    /// Everybody: a shared render.
    Shared,
    User(&'a UserId),
    Guest,
    None,
    Unknown,
}

/// A response with its body.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

/// A request that is being put together.
#[derive(Clone)]
pub struct Call<'a> {
    origin: &'a Origin,
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Option<String>,
}

impl Origin {
    pub fn new(url: Url, public: Option<Url>, key: HeaderValue) -> Result<Self, Failure> {
        // Fails if a provider is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(TIMEOUT);
        let client = builder.no_proxy().user_agent("edgefront-contract").build();
        let client = client.map_err(|error| Failure::new(format!("no HTTP client: {error}"), ""))?;
        Ok(Self { client, public: public.unwrap_or_else(|| url.clone()), url, key })
    }

    /// A GET with the right key.
    pub fn get<'a>(&'a self, path: &str, visitor: Visitor<'_>) -> Call<'a> {
        self.call(Method::GET, path, visitor)
    }

    pub fn call<'a>(&'a self, method: Method, path: &str, visitor: Visitor<'_>) -> Call<'a> {
        let mut call = Call { origin: self, method, path: path.to_owned(), headers: HeaderMap::new(), body: None };
        let headers = &mut call.headers;
        headers.insert("edge-key", self.key.clone());
        for (name, value) in [("x-forwarded-host", host(&self.public)), ("x-forwarded-proto", self.public.scheme())] {
            headers.extend(HeaderValue::from_str(value).map(|value| (HeaderName::from_static(name), value)));
        }
        let session = match visitor {
            Visitor::Shared => {
                headers.insert("edge-shared", HeaderValue::from_static("1"));
                return call;
            }
            Visitor::User(user) => {
                headers.extend(
                    HeaderValue::from_str(user.as_str()).map(|user| (HeaderName::from_static("edge-user"), user)),
                );
                "user"
            }
            Visitor::Guest => "guest",
            Visitor::None => "none",
            Visitor::Unknown => "unknown",
        };
        headers.insert("edge-session", HeaderValue::from_static(session));
        headers.insert("x-forwarded-for", VISITOR_ADDRESS);
        headers.insert("x-real-ip", VISITOR_ADDRESS);
        call
    }

    /// The address of a path at the origin: below the path of its own address.
    pub fn address(&self, path: &str) -> Result<Url, Failure> {
        let address = format!("{}{path}", self.url.as_str().trim_end_matches('/'));
        Url::parse(&address).map_err(|error| Failure::new(format!("{address}: {error}"), "check the path"))
    }
}

/// Host and port of an address.
pub fn host(url: &Url) -> &str {
    &url[url::Position::BeforeHost..url::Position::AfterPort]
}

impl Call<'_> {
    /// Sets a header, or removes it.
    pub fn header(mut self, name: &str, value: Option<&str>) -> Self {
        let Ok(name) = HeaderName::try_from(name) else { return self };
        self.headers.remove(&name);
        self.headers.extend(value.and_then(|value| HeaderValue::from_str(value).ok()).map(|value| (name, value)));
        self
    }

    /// `name` if the request has this header, else its spelling with a hyphen.
    pub fn spelling(&self, name: &'static str) -> String {
        if self.headers.contains_key(name) { name.to_owned() } else { name.replace('_', "-") }
    }

    pub fn cookies(mut self, cookies: &Cookies) -> Self {
        self.headers.remove(header::COOKIE);
        self.headers.extend(cookies.header().map(|value| (header::COOKIE, value.clone())));
        self
    }

    /// A form as a page of the shop sends it.
    pub fn form(mut self, fields: &[(String, String)]) -> Self {
        self.body = Some(url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish());
        let origin = self.origin.public.origin().ascii_serialization();
        self.header("content-type", Some("application/x-www-form-urlencoded"))
            .header("referer", Some(&format!("{origin}/")))
            .header("origin", Some(&origin))
            .header("sec-fetch-site", Some("same-origin"))
    }

    pub async fn send(self) -> Result<Answer, Failure> {
        let url = self.origin.address(&self.path)?;
        let request = self.origin.client.request(self.method, url.clone()).headers(self.headers);
        let request = match self.body {
            Some(body) => request.body(body),
            None => request,
        };
        let unreachable = |error: reqwest::Error| {
            let cause = root_cause(&error);
            Failure::new(format!("{url} does not answer: {cause}"), "check the address, and that the shop runs")
        };
        let mut response = request.send().await.map_err(unreachable)?;
        let mut body = Vec::new();
        while body.len() <= MAX_BODY
            && let Some(chunk) = response.chunk().await.map_err(unreachable)?
        {
            body.extend_from_slice(&chunk);
        }
        let headers = std::mem::take(response.headers_mut());
        Ok(Answer { status: response.status(), headers, body: String::from_utf8_lossy(&body).into_owned() })
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns whether a text is in the body.
    pub fn shows(&self, text: &str) -> bool {
        self.body.contains(text)
    }

    /// Returns whether a text is in the body or in a header.
    pub fn mentions(&self, text: &str) -> bool {
        self.shows(text) || self.headers.values().any(|value| String::from_utf8_lossy(value.as_bytes()).contains(text))
    }

    pub fn is_declared_shared(&self) -> bool {
        CacheControl::of_response(&self.headers).is_declared_shared()
    }

    /// The headers that make a response personal.
    pub fn personal_directive(&self) -> Option<&'static str> {
        ["edge-login", "edge-logout", "edge-cart", "edge-order"]
            .into_iter()
            .find(|name| self.headers.contains_key(*name))
    }

    /// The names of the cookies that the response sets.
    pub fn cookie_names(&self) -> Vec<String> {
        self.headers.get_all(header::SET_COOKIE).iter().map(cookie_name).collect()
    }

    /// Returns whether the origin refused the request itself: a status 4xx.
    pub fn is_refused(&self) -> bool {
        self.status.is_client_error()
    }
}
