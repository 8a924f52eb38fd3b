//! A browser that visits the shop through any location.

use std::collections::BTreeMap;

use http::{Method, header};
use serde_json::{Value, json};

use crate::{
    routes::api::with_json,
    support::{SERVICE_KEY, Shop},
};

/// The beginning of the names of the cookies with sync tokens.
const SYNC: &str = "__Host-session-sync";

/// The `Set-Cookie`s of an answer.
#[derive(Debug, Clone)]
pub struct SetCookies(Vec<String>);

impl SetCookies {
    /// Number of cookies with a sync token that are set.
    pub fn sync_count(&self) -> usize {
        self.0.iter().filter(|line| line.starts_with(SYNC) && !line.contains("Max-Age=0")).count()
    }
}

/// An answer whose cookies the browser has not stored yet.
pub struct Answer {
    status: u16,
    pub cookies: SetCookies,
    pub text: String,
}

impl Answer {
    async fn to(request: reqwest::RequestBuilder) -> Self {
        let answer = request.send().await.expect("an answer");
        let lines = answer.headers().get_all(header::SET_COOKIE).iter();
        let lines = lines.map(|line| line.to_str().expect("ASCII").to_owned()).collect();
        let (status, cookies) = (answer.status().as_u16(), SetCookies(lines));
        Self { status, cookies, text: answer.text().await.expect("text") }
    }
}

/// A browser that keeps all cookies.
#[derive(Debug, Clone, Default)]
pub struct Browser {
    pub cookies: BTreeMap<String, String>,
}

impl Browser {
    /// Sends a request with the cookies of this moment. The answer's cookies are for [`Browser::store`].
    pub fn ask(&self, request: reqwest::RequestBuilder) -> impl Future<Output = Answer> + use<> {
        let cookies: Vec<_> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Answer::to(request.header("cookie", cookies.join("; ")).header("sec-fetch-site", "same-origin"))
    }

    /// Stores the cookies of an answer that has arrived.
    pub fn store(&mut self, SetCookies(lines): &SetCookies) {
        for line in lines {
            let (pair, attributes) = line.split_once(';').expect("attributes");
            let (name, value) = pair.split_once('=').expect("a pair");
            if attributes.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    pub async fn send(&mut self, request: reqwest::RequestBuilder) -> (u16, String) {
        let answer = self.ask(request).await;
        self.store(&answer.cookies);
        (answer.status, answer.text)
    }

    pub async fn api(&mut self, shop: &Shop, method: Method, path: &str, body: Option<Value>) -> Value {
        let request = shop.request(method, &format!("/_edge/v1{path}"));
        let request = body.into_iter().fold(request, |request, body| with_json(request, &body));
        let (status, text) = self.send(request).await;
        assert!(status < 300, "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    pub async fn log_in(&mut self, shop: &Shop, user: &str) {
        let request = shop.request(Method::POST, "/_edge/v1/sessions").bearer_auth(SERVICE_KEY);
        assert_eq!(self.send(with_json(request, &json!({"user": user}))).await.0, 201);
    }

    pub async fn log_out(&mut self, shop: &Shop) {
        let session = self.cookies["__Host-session"].clone();
        self.api(shop, Method::DELETE, "/session", None).await;
        // A copy of the cookie, as another tab has it.
        self.cookies.insert("__Host-session".to_owned(), session);
    }

    pub async fn put(&mut self, shop: &Shop, item: &str, quantity: u32) {
        let answer = self.ask(put(shop, item, quantity)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        self.store(&answer.cookies);
    }

    pub async fn user(&mut self, shop: &Shop) -> Value {
        self.api(shop, Method::GET, "/session", None).await["user"].take()
    }

    pub async fn quantity(&mut self, shop: &Shop) -> Value {
        self.api(shop, Method::GET, "/session", None).await["cart"]["quantity"].take()
    }

    /// The names of the cookies with sync tokens.
    pub fn sync_names(&self) -> Vec<&str> {
        self.cookies.keys().map(String::as_str).filter(|name| name.starts_with(SYNC)).collect()
    }

    /// The same visitor without the sync token, like any other reader.
    pub fn without_token(&self) -> Self {
        assert!(!self.sync_names().is_empty(), "a cookie with a sync token");
        let mut other = self.clone();
        other.cookies.retain(|name, _| !name.starts_with(SYNC));
        other
    }
}

/// A request that sets a quantity in the cart.
pub fn put(shop: &Shop, item: &str, quantity: u32) -> reqwest::RequestBuilder {
    with_json(shop.request(Method::PUT, &format!("/_edge/v1/cart/items/{item}")), &json!({"quantity": quantity}))
}
