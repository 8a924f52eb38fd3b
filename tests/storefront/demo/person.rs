//! A visitor without JavaScript: keeps cookies, opens pages and submits forms.

use std::{cell::RefCell, collections::BTreeMap};

use http::{HeaderMap, Method, StatusCode};

use crate::support::{Shop, cookie_pairs, header};

pub struct Person<'a> {
    shop: &'a Shop,
    /// Name → value.
    cookies: RefCell<BTreeMap<String, String>>,
}

/// A response.
#[derive(Debug)]
pub struct Page {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl<'a> Person<'a> {
    pub fn at(shop: &'a Shop) -> Self {
        Self { shop, cookies: RefCell::default() }
    }

    pub fn with_cookie(shop: &'a Shop, cookie: &str) -> Self {
        let (name, value) = cookie.split_once('=').expect("a cookie");
        Self { shop, cookies: RefCell::new([(name.to_owned(), value.to_owned())].into()) }
    }

    pub async fn get(&self, path: &str) -> Page {
        self.send(self.shop.get(path)).await
    }

    /// Submits a form with these fields.
    pub async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Page {
        let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let request = self.shop.request(Method::POST, path).header("sec-fetch-site", "same-origin");
        self.send(request.header("content-type", "application/x-www-form-urlencoded").body(form)).await
    }

    /// Adds a product to the cart.
    pub async fn add(&self, id: &str, quantity: u32) {
        let added = self.post("/cart", &[("op", "add"), ("id", id), ("quantity", &quantity.to_string())]).await;
        let line = format!("/cart#line-{id}");
        assert_eq!((added.status, added.location()), (StatusCode::SEE_OTHER, &*line), "{}", added.text);
    }

    /// Creates an account, which also signs in.
    pub async fn sign_up(&self, email: &str) {
        let fields = [("name", "Ada Lovelace"), ("email", email), ("password", PASSWORD), ("next", "/account")];
        let answer = self.post("/signup", &fields).await;
        assert_eq!((answer.status, answer.location()), (StatusCode::SEE_OTHER, "/account"), "{}", answer.text);
    }

    pub fn cookie(&self, name: &str) -> String {
        self.cookies.borrow().get(name).expect("a cookie").clone()
    }

    pub fn set_cookie(&self, name: &str, value: &str) {
        self.cookies.borrow_mut().insert(name.to_owned(), value.to_owned());
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Page {
        let cookies: Vec<_> = self.cookies.borrow().iter().map(|(name, value)| format!("{name}={value}")).collect();
        let cookie = cookies.join("; ");
        let request = request.header("cookie", cookie).header("accept", "text/html,*/*;q=0.8");
        let answer = request.send().await.expect("an answer");
        let (status, headers) = (answer.status(), answer.headers().clone());
        for (name, value) in cookie_pairs(&headers).into_iter().filter_map(|pair| pair.split_once('=')) {
            self.cookies.borrow_mut().insert(name.to_owned(), value.to_owned());
        }
        Page { status, headers, text: answer.text().await.expect("text") }
    }
}

/// The password of every account in the tests.
pub const PASSWORD: &str = "four unrelated words";

impl Page {
    pub fn location(&self) -> &str {
        header(&self.headers, "location")
    }

    /// The value of a form field; panics if the page has no such field.
    pub fn field(&self, name: &str) -> String {
        let field = self.text.split_once(&format!("name=\"{name}\"")).and_then(|(_, rest)| rest.split_once('>'));
        let value = field.and_then(|(field, _)| field.split_once(" value=\"")?.1.split_once('"'));
        value.unwrap_or_else(|| panic!("no field {name}: {}", self.text)).0.to_owned()
    }

    /// A field's error message; empty without one.
    pub fn problem(&self, name: &str) -> &str {
        let rest = self.text.split_once(&format!("id=\"{name}-problem\">"));
        rest.and_then(|(_, rest)| rest.split_once('<')).map_or("", |(problem, _)| problem)
    }

    pub fn says(&self, text: &str) -> bool {
        self.text.contains(text)
    }
}
