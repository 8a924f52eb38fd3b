//! A visitor of a storefront: an HTTP client that reads pages as a browser does, and checks each of them.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use reqwest::{Client, RequestBuilder, cookie::Jar};
use url::{Url, form_urlencoded::Serializer};
use xtask::failure::Failure;

use super::{kind::Kind, shops::Shop, stack::Stack, tally::Violation};

const ANALYTICS_COOKIES: &str =
    "_ga=GA1.1.1234567890.1700000000; _ga_ABCDEF=GS1.1.1; _fbp=fb.1.1; cookieconsent_status=allow";
/// One page in this many is not a product page.
const OTHER_PAGE: usize = 5;

/// A visitor and what its pages must show.
pub struct Visitor {
    /// Unique in a run, from 1.
    pub number: u32,
    pub kind: Kind,
    /// The email address of the visitor's account. Each run has new accounts, because storefronts keep the baskets of
    /// old ones.
    pub email: String,
    pub is_signed_in: bool,
    pub has_basket: bool,
    shop: Shop,
    http: Client,
    url: String,
    products: Vec<String>,
    /// The number of pages read so far.
    pages_read: usize,
}

/// A page as it arrived.
pub struct Page {
    /// The path that was requested, with its query and fragment.
    pub path: String,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

/// The facts about a page that the tally needs.
pub struct Answer {
    pub kind: Kind,
    pub path: String,
    pub is_product: bool,
    pub is_hit: bool,
    /// The reason why the page did not come from the store, in the words of `Cache-Status`.
    pub miss_reason: Option<String>,
    pub violation: Option<Violation>,
}

impl Visitor {
    /// A visitor without any cookies but those of its kind.
    ///
    /// # Errors
    /// When the HTTP client cannot be built.
    pub fn new(number: u32, kind: Kind, stack: &Stack) -> Result<Self, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(header::USER_AGENT, HeaderValue::from_static("Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"));
        headers.insert(header::ACCEPT_LANGUAGE, HeaderValue::from_static("en"));
        headers.insert("sec-fetch-site", HeaderValue::from_static("same-origin"));
        // Cloudflare's edge sets this. Storefronts limit actions by address.
        let address = HeaderValue::try_from(format!("192.0.2.{number}"));
        headers.extend(address.ok().map(|address| (header::HeaderName::from_static("cf-connecting-ip"), address)));
        if let Ok(origin) = HeaderValue::try_from(&stack.url) {
            headers.insert(header::ORIGIN, origin);
        }
        let mut client = Client::builder().default_headers(headers);
        if kind.keeps_cookies() {
            client = client.cookie_provider(Arc::new(jar(kind, &stack.url)?));
        }
        let http = client.build();
        let http = http.map_err(|cause| Failure::new(format!("no HTTP client: {cause}"), ""))?;
        Ok(Self {
            number,
            kind,
            email: format!("visitor-{number}-{}@shop.test", stack.started),
            is_signed_in: false,
            has_basket: false,
            shop: stack.shop,
            http,
            url: stack.url.clone(),
            products: stack.shop.products(),
            pages_read: 0,
        })
    }

    /// Signs in and fills the basket, as the kind requires.
    ///
    /// # Errors
    /// When the storefront refuses an action.
    pub async fn prepare(&mut self) -> Result<(), Failure> {
        if self.kind == Kind::SignedIn {
            self.sign_in().await?;
        }
        if matches!(self.kind, Kind::SignedIn | Kind::Basket) {
            self.shop.fill_basket(self).await?;
            self.has_basket = true;
        }
        Ok(())
    }

    /// Reads `count` pages one after the other, most of them product pages.
    ///
    /// # Errors
    /// When the Worker does not answer, or the storefront refuses an action.
    pub async fn read_pages(&mut self, count: u32) -> Result<Vec<Answer>, Failure> {
        let mut answers = Vec::new();
        if self.kind == Kind::SignedOut {
            self.sign_in().await?;
            answers.push(self.read_next_page().await?);
            self.shop.sign_out(self).await?;
            self.is_signed_in = false;
        }
        for _ in 0..count {
            answers.push(self.read_next_page().await?);
        }
        Ok(answers)
    }

    async fn sign_in(&mut self) -> Result<(), Failure> {
        self.shop.sign_in(self).await?;
        self.is_signed_in = true;
        Ok(())
    }

    async fn read_next_page(&mut self) -> Result<Answer, Failure> {
        self.pages_read += 1;
        let is_product = !self.pages_read.is_multiple_of(OTHER_PAGE);
        let other = self.shop.other_pages();
        // Each visitor begins elsewhere and walks through all products.
        let index = self.pages_read + 7 * self.number as usize;
        let path = match self.products.get(index % self.products.len()) {
            Some(product) if is_product => product.clone(),
            _ => other.get(index / OTHER_PAGE % other.len()).copied().unwrap_or("/").to_owned(),
        };
        let page = self.get(&path).await?;
        let is_hit = page.is_hit();
        let violation = if !page.status.is_success() {
            Some(Violation::Status(page.status.to_string()))
        } else if is_hit && page.headers.contains_key(header::SET_COOKIE) {
            Some(Violation::Leak(format!("a hit sets {:?}", page.headers.get(header::SET_COOKIE))))
        } else {
            self.shop.check(self, &page)
        };
        Ok(Answer { kind: self.kind, path, is_product, is_hit, miss_reason: page.miss_reason(), violation })
    }

    /// # Errors
    /// When the Worker does not answer.
    pub async fn get(&self, path: &str) -> Result<Page, Failure> {
        // Links may be absolute.
        let url = if path.starts_with("http") { path.to_owned() } else { format!("{}{path}", self.url) };
        let mut request = self.http.get(url);
        for (name, value) in self.shop.headers(path) {
            request = request.header(*name, *value);
        }
        if self.kind == Kind::Analytics {
            request = request.header(header::COOKIE, ANALYTICS_COOKIES);
        }
        self.send(path, request).await
    }

    /// Submits a form, and follows the redirect.
    ///
    /// # Errors
    /// When the Worker does not answer, or the answer is an error.
    pub async fn post_form(&self, path: &str, fields: &[(&str, &str)]) -> Result<Page, Failure> {
        let body = Serializer::new(String::new()).extend_pairs(fields).finish();
        self.post(path, "application/x-www-form-urlencoded", body).await
    }

    /// # Errors
    /// When the Worker does not answer, or the answer is an error.
    pub async fn post_json(&self, path: &str, body: &serde_json::Value) -> Result<Page, Failure> {
        self.post(path, "application/json", body.to_string()).await
    }

    /// # Errors
    /// When the Worker does not answer, or the answer is an error.
    pub async fn post(&self, path: &str, content_type: &str, body: String) -> Result<Page, Failure> {
        let request = self.http.post(format!("{}{path}", self.url)).header(header::CONTENT_TYPE, content_type);
        let page = self.send(path, request.body(body)).await?;
        if page.status.is_success() { Ok(page) } else { Err(refused(path, &page)) }
    }

    async fn send(&self, path: &str, request: RequestBuilder) -> Result<Page, Failure> {
        let failed = |cause: reqwest::Error| Failure::new(format!("{path}: {:?}", cause.without_url()), "");
        let response = request.send().await.map_err(failed)?;
        let (status, headers) = (response.status(), response.headers().clone());
        Ok(Page { path: path.to_owned(), status, headers, body: response.text().await.map_err(failed)? })
    }
}

/// The cookies of a browser. A browsing visitor begins with analytics cookies.
fn jar(kind: Kind, url: &str) -> Result<Jar, Failure> {
    let jar = Jar::default();
    if kind == Kind::Browsing {
        let url = Url::parse(url).map_err(|cause| Failure::new(format!("{url}: {cause}"), ""))?;
        ANALYTICS_COOKIES.split("; ").for_each(|cookie| jar.add_cookie_str(cookie, &url));
    }
    Ok(jar)
}

impl Page {
    /// Returns whether the page came from edgefront's store (RFC 9211, `hit`).
    fn is_hit(&self) -> bool {
        self.cache_status().any(|parameter| parameter == "hit")
    }

    /// The parameter `detail`, otherwise `fwd`.
    fn miss_reason(&self) -> Option<String> {
        let parameter = |name: &str| self.cache_status().find_map(|parameter| parameter.strip_prefix(name));
        parameter("detail=").or_else(|| parameter("fwd=")).map(str::to_owned)
    }

    fn cache_status(&self) -> impl Iterator<Item = &str> {
        let status = self.headers.get("cache-status").and_then(|value| value.to_str().ok());
        status.unwrap_or_default().split(';').map(str::trim)
    }

    /// The text between `before` and the next `after`, trimmed.
    pub fn between(&self, before: &str, after: &str) -> Option<&str> {
        let (_, rest) = self.body.split_once(before)?;
        rest.split_once(after).map(|(text, _)| text.trim())
    }
}

/// The storefront answered an action with an error, or with another page than expected.
pub fn refused(action: &str, page: &Page) -> Failure {
    let title = page.between("<title>", "</title>").unwrap_or_default();
    let cause = format!("the storefront refuses {action}: {} {title}", page.status);
    Failure::new(cause, "look at it with `cargo xtask storefront`")
}
