//! `Vary` (RFC 9110 §12.5.5): the request headers that select one of several responses under a URL.

use http::{HeaderMap, HeaderName, header};

/// Headers that select no page: the URL determines their value, or every shared render sends the same one. The platform
/// compresses for the visitor, so the origin always gets `identity`.
const SAME_FOR_A_URL: [&str; 4] = ["accept-encoding", "host", "x-forwarded-host", "x-forwarded-proto"];

/// Header names from `Vary`: lower case, sorted, unique, without [`SAME_FOR_A_URL`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VaryFields(Vec<String>);

impl VaryFields {
    /// Reads `Vary`. None for `*` or an invalid name: no other request may get the response.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut fields = Self::default();
        for line in headers.get_all(header::VARY) {
            for field in line.to_str().ok()?.split(',').map(str::trim).filter(|field| !field.is_empty()) {
                HeaderName::try_from(field).ok().filter(|_| field != "*")?;
                fields.insert(field.to_ascii_lowercase());
            }
        }
        Some(fields)
    }

    /// Adds a name in lower case.
    pub fn insert(&mut self, field: String) {
        if !SAME_FOR_A_URL.contains(&field.as_str())
            && let Err(index) = self.0.binary_search(&field)
        {
            self.0.insert(index, field);
        }
    }

    /// Reads the output of [`VaryFields::to_text`].
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self(text.split(',').filter(|field| !field.is_empty()).map(str::to_owned).collect())
    }

    /// `accept,accept-language`: the form in Redis.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.0.join(",")
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|field| field == name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn vary(lines: &[&'static str]) -> Option<String> {
        let headers = lines.iter().map(|line| (header::VARY, HeaderValue::from_static(line))).collect();
        VaryFields::of(&headers).map(|fields| fields.to_text())
    }

    #[test]
    fn names_are_lower_case_sorted_and_unique() {
        assert_eq!(vary(&["Foo, Accept-Encoding", "accept,FOO"]).as_deref(), Some("accept,foo"));
        assert_eq!(vary(&["X-Forwarded-Proto, host"]).as_deref(), Some(""), "the URL says it");
        assert_eq!(vary(&[]).as_deref(), Some(""));
        assert_eq!(vary(&["accept, *"]), None);
        assert_eq!(vary(&["not a name"]), None);
        assert_eq!(VaryFields::from_text("accept,foo").to_text(), "accept,foo");
    }
}
