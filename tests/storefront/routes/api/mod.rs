//! The API under `/_edge/v1`; the modules mirror its paths. Each scenario runs natively and in workerd.

use http::{HeaderMap, Method};
use serde_json::{Value, json};

use self::contract::Sent;
use crate::support::{SERVICE_KEY, Shop, cookie_pair, header, token_of};

/// `/abandoned`.
mod abandoned;
/// `/cart`.
mod cart;
/// `docs/openapi.json`, which every response matches.
mod contract;
/// The requests to Redis of services.
mod cost;
/// `/sessions` of the visitor, and `/users/{user}/sessions`.
mod devices;
/// The `curl` lines of `docs/api.md`.
mod examples;
/// `/flash`.
mod flash;
/// `/healthz`, `/readyz`, `/stats`.
mod health;
/// Invalid requests, on any route.
mod input;
/// `/items/{item}/related` and `/items/{item}/stats`.
mod insights;
/// `/jobs`.
mod jobs;
/// `/orders`.
mod orders;
/// `/purge` and `/cache`.
mod pages;
/// `/popular`, `/ranking` and `/views`.
mod ranking;
/// `/rows` and `/schedule`.
mod rows;
/// `/session` and `/recent`, and `POST /sessions` of a service.
mod session;
/// `/users/{user}/sessions` of a service.
mod users;

/// A response of the API.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    /// Null without a body.
    pub json: Value,
}

impl Answer {
    /// Sends a request and reads the response. Panics if a response of the API does not match `docs/openapi.json`.
    pub async fn to(request: reqwest::RequestBuilder) -> Self {
        Self::try_to(request).await.expect("an answer")
    }

    /// As [`Answer::to`]. None if there is no whole response.
    pub async fn try_to(request: reqwest::RequestBuilder) -> Option<Self> {
        let (client, request) = request.build_split();
        let request = request.expect("a request");
        let (method, path) = (request.method().clone(), request.url().path().to_owned());
        let body = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
        let sent = Sent { method, path, json: serde_json::from_slice(body).ok() };
        let response = client.execute(request).await.ok()?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.bytes().await.ok()?;
        let json = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).expect("JSON") };
        let answer = Self { status, headers, json };
        contract::check(&sent, &answer);
        Some(answer)
    }

    /// A header's value, or "" without one.
    pub fn header(&self, name: &str) -> &str {
        header(&self.headers, name)
    }

    /// The cookie of `Set-Cookie`, as a browser sends it back.
    pub fn cookie(&self) -> Option<String> {
        cookie_pair(&self.headers).map(str::to_owned)
    }
}

/// A browser on a page of the shop. It keeps its cookie.
pub struct Visitor<'a> {
    shop: &'a Shop,
    pub cookie: Option<String>,
}

impl<'a> Visitor<'a> {
    pub fn new(shop: &'a Shop) -> Self {
        Self { shop, cookie: None }
    }

    pub fn with_cookie(shop: &'a Shop, cookie: impl Into<String>) -> Self {
        Self { shop, cookie: Some(cookie.into()) }
    }

    /// The token of the cookie.
    pub fn token(&self) -> String {
        token_of(self.cookie.as_deref().expect("a cookie")).to_owned()
    }

    /// A request as a page of the shop sends it.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.shop.request(method, &format!("/_edge/v1{path}")).header("sec-fetch-site", "same-origin");
        match &self.cookie {
            Some(cookie) => request.header("cookie", cookie),
            None => request,
        }
    }

    pub async fn get(&mut self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    pub async fn delete(&mut self, path: &str) -> Answer {
        self.send(self.request(Method::DELETE, path)).await
    }

    pub async fn put(&mut self, path: &str, body: &Value) -> Answer {
        self.send(with_json(self.request(Method::PUT, path), body)).await
    }

    pub async fn post(&mut self, path: &str, body: &Value) -> Answer {
        self.send(with_json(self.request(Method::POST, path), body)).await
    }

    /// Sends a request and keeps the cookie of the response; an empty cookie clears it.
    pub async fn send(&mut self, request: reqwest::RequestBuilder) -> Answer {
        let answer = Answer::to(request).await;
        if let Some(cookie) = answer.cookie() {
            self.cookie = Some(cookie).filter(|cookie| !cookie.ends_with('='));
        }
        answer
    }
}

/// A request of a service, with the service key.
pub async fn service(shop: &Shop, method: Method, path: &str, body: Option<&Value>) -> Answer {
    let mut request = shop.request(method, &format!("/_edge/v1{path}")).bearer_auth(SERVICE_KEY);
    if let Some(body) = body {
        request = with_json(request, body);
    }
    Answer::to(request).await
}

/// A browser whose user a service has logged in.
pub async fn log_in<'a>(shop: &'a Shop, user: &str) -> Visitor<'a> {
    let answer = service(shop, Method::POST, "/sessions", Some(&json!({"user": user}))).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    Visitor::with_cookie(shop, answer.cookie().expect("a cookie"))
}

pub fn with_json(request: reqwest::RequestBuilder, body: &Value) -> reqwest::RequestBuilder {
    request.header("content-type", "application/json").body(body.to_string())
}
