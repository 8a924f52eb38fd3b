//! A call that has been let in: what its handler reads of the request.

use std::{borrow::Cow, fmt::Display, rc::Rc, str::FromStr};

use bytes::Bytes;
use http::{HeaderMap, header, request::Parts};
use url::form_urlencoded;

use crate::{
    App,
    ports::{error::Error, time::Timestamp},
    routes::{api::body::Fields, problem::Problem},
    schema::token::Token,
};

/// What stands in a path at the first and at the second `{…}` of its route; empty where there is none.
pub type Names = [String; 2];

/// A request whose route, caller and size are in order.
pub struct Call<'a> {
    pub app: &'a Rc<App>,
    pub now: Timestamp,
    head: &'a Parts,
    /// What stands in the path at the route's `{…}`, percent-decoded; bytes that are not UTF-8 are U+FFFD, which no
    /// id may hold. Empty for a route without.
    pub name: String,
    /// The same of the route's second `{…}`.
    pub second: String,
    body: Bytes,
}

impl<'a> Call<'a> {
    pub fn new(app: &'a Rc<App>, now: Timestamp, head: &'a Parts, names: Names, body: Bytes) -> Self {
        let [name, second] = names;
        Self { app, now, head, name, second, body }
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// Where the request was sent: scheme and host, without a slash at the end.
    pub fn origin(&self) -> String {
        let uri = &self.head.uri;
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        format!("{}://{authority}", uri.scheme_str().unwrap_or("https"))
    }

    /// The token of the visitor's cookie. None without one, and for one that we did not sign or that is too old: that
    /// visitor is nobody, and no Redis command is spent on them.
    pub fn token(&self) -> Option<Token> {
        self.app.keyring.read(self.headers(), self.now)
    }

    /// The body's fields.
    ///
    /// # Errors
    /// [`Problem::NotJson`] for another type, and [`Problem::Malformed`].
    pub fn fields(&self) -> Result<Fields, Problem> {
        let media_type = self.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = media_type.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            return Err(Problem::NotJson);
        }
        Fields::parse(&self.body)
    }

    /// The query's parameter `name`; None if it is not there. Parameters that nobody asks for do not matter.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is given twice.
    pub fn parameter(&self, name: &'static str) -> Result<Option<Cow<'a, str>>, Error> {
        let query = self.head.uri.query().unwrap_or_default();
        let mut values = form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == name);
        let value = values.next().map(|(_, value)| value);
        match values.next() {
            None => Ok(value),
            Some(_) => Err(Error::invalid(name, "is given twice")),
        }
    }

    /// The query's parameter `name`, a whole number from 1 to `most`; `default` if it is not there.
    ///
    /// # Errors
    /// [`Error::Invalid`] for anything else.
    pub fn number<T: FromStr + PartialOrd + Display + Copy + From<u8>>(
        &self,
        name: &'static str,
        default: T,
        most: T,
    ) -> Result<T, Error> {
        let Some(text) = self.parameter(name)? else { return Ok(default) };
        let number = text.parse().ok().filter(|number| *number >= T::from(1) && *number <= most);
        number.ok_or_else(|| Error::invalid(name, format!("must be a whole number from 1 to {most}")))
    }

    /// The `Idempotency-Key`; None without one.
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
