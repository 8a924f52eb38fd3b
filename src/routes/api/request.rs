//! A checked request, as a handler reads it.

use std::{borrow::Cow, fmt::Display, rc::Rc, str::FromStr};

use bytes::Bytes;
use http::{HeaderMap, Uri, header, request::Parts};
use url::form_urlencoded;

use super::body::JsonFields;
use crate::{
    App,
    ports::{error::Error, time::Timestamp},
    routes::problem::Problem,
    schema::token::Token,
};

/// The path's values at the first and the second `{…}` of its route, percent-decoded; empty where the route has none.
pub type PathParameters = [String; 2];

/// A request that has a route, is authorized, and has a whole body within the limit.
pub struct ApiRequest<'a> {
    pub app: &'a Rc<App>,
    pub now: Timestamp,
    head: &'a Parts,
    /// The path's value at the first `{…}` of the route, percent-decoded; empty if the route has none. Bytes that are
    /// not UTF-8 become U+FFFD, which no id may hold.
    pub id: String,
    /// The same at the second `{…}`.
    pub second_id: String,
    body: Bytes,
}

impl<'a> ApiRequest<'a> {
    pub fn new(app: &'a Rc<App>, now: Timestamp, head: &'a Parts, parameters: PathParameters, body: Bytes) -> Self {
        let [id, second_id] = parameters;
        Self { app, now, head, id, second_id, body }
    }

    pub fn uri(&self) -> &Uri {
        &self.head.uri
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// The scheme and host of the request's URL, without a trailing slash.
    pub fn origin(&self) -> String {
        let uri = &self.head.uri;
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        format!("{}://{authority}", uri.scheme_str().unwrap_or("https"))
    }

    /// The token of the visitor's cookie. None without a cookie, and for a cookie that is forged or too old: that
    /// visitor is anonymous and costs no Redis command.
    pub fn session_token(&self) -> Option<Token> {
        self.app.keyring.read(self.headers(), self.now)
    }

    /// The fields of the body.
    ///
    /// # Errors
    /// [`Problem::NotJson`] for another media type, and [`Problem::MalformedJson`].
    pub fn json_fields(&self) -> Result<JsonFields, Problem> {
        let media_type = self.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = media_type.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            return Err(Problem::NotJson);
        }
        JsonFields::parse(&self.body)
    }

    /// The query parameter `name`. None if it is missing. Unknown parameters are ignored.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is given twice.
    pub fn query_parameter(&self, name: &'static str) -> Result<Option<Cow<'a, str>>, Error> {
        let query = self.head.uri.query().unwrap_or_default();
        let mut values = form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == name);
        let value = values.next().map(|(_, value)| value);
        match values.next() {
            None => Ok(value),
            Some(_) => Err(Error::invalid(name, "is given twice")),
        }
    }

    /// The query parameter `name`, a whole number from 1 to `max`. `default` if it is missing.
    ///
    /// # Errors
    /// [`Error::Invalid`] for anything else.
    pub fn query_number<T: FromStr + PartialOrd + Display + Copy + From<u8>>(
        &self,
        name: &'static str,
        default: T,
        max: T,
    ) -> Result<T, Error> {
        let Some(text) = self.query_parameter(name)? else { return Ok(default) };
        let number = text.parse().ok().filter(|number| *number >= T::from(1) && *number <= max);
        number.ok_or_else(|| Error::invalid(name, format!("must be a whole number from 1 to {max}")))
    }

    /// The `Idempotency-Key`. None if it is missing.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is not 1 to 255 visible ASCII characters, or given twice.
    pub fn idempotency_key(&self) -> Result<Option<&'a str>, Error> {
        let mut keys = self.head.headers.get_all("idempotency-key").iter();
        let Some(key) = keys.next() else { return Ok(None) };
        let key = key.to_str().ok().filter(|key| (1..=255).contains(&key.len()));
        match key.filter(|key| key.bytes().all(|byte| byte.is_ascii_graphic())) {
            Some(key) if keys.next().is_none() => Ok(Some(key)),
            _ => Err(Error::invalid("Idempotency-Key", "must be 1 to 255 visible ASCII characters, once")),
        }
    }
}
