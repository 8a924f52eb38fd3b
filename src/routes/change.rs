//! An unsafe request in front of pages with holes: the visitor's next pages show what the visitor changed. So does the page
//! after a redirect, which may show a message.

use http::{StatusCode, header};

use crate::{
    App,
    page_cache::{VisitorKey, policy::CacheControl},
    ports::{
        fetch::{Request, Response},
        time::Timestamp,
    },
    schema::token::Token,
    sessions::cookie,
};

/// A change by a visitor. This isolate forgets the visitor's content before the change and after it, because a page may
/// fill holes meanwhile. For other isolates, the response carries [`cookie::changed`].
pub struct Change {
    /// The session whose facts fill holes.
    token: Option<Token>,
    /// The visitor whose content fills holes; None without cookies.
    visitor: Option<VisitorKey>,
}

impl Change {
    /// None if the request is safe, or if no hole shows a change.
    pub fn begin(app: &App, request: &Request, now: Timestamp) -> Option<Self> {
        let (rules, headers) = (&app.config.page.holes, request.headers());
        if request.method().is_safe() || !rules.are_of_visitors() {
            return None;
        }
        let token = rules.has_facts().then(|| app.keyring.read(headers, now)).flatten();
        let has_cookies = headers.contains_key(header::COOKIE);
        let change = Self { token, visitor: has_cookies.then(|| VisitorKey::of(headers, &app.config.page.headers)) };
        change.forget(app);
        Some(change)
    }

    /// Lets the visitor's next pages show the change.
    pub fn end(self, app: &App, response: &mut Response) {
        self.forget(app);
        if self.visitor.is_some() || response.headers().contains_key(header::SET_COOKIE) {
            response.headers_mut().append(header::SET_COOKIE, cookie::changed());
        }
    }

    fn forget(&self, app: &App) {
        if let Some(token) = &self.token {
            app.pages.facts.forget(token);
        }
        if let Some(visitor) = &self.visitor {
            app.pages.visitor_contents.forget(visitor);
        }
    }
}

/// Returns whether the visitor makes a choice that the shop's session keeps.
pub fn is_choice(app: &App, request: &Request) -> bool {
    app.config.page.urls.choices.contains(request.uri().path(), request.uri().query())
}

/// After a choice, the visitor gets pages of their own: they show the choice outside of the holes.
pub fn show_choice(response: &mut Response) {
    if response.status().is_success() || response.status().is_redirection() {
        response.headers_mut().append(header::SET_COOKIE, cookie::chosen());
    }
}

/// After a redirect, the shop sends the next page of a visitor with cookies: a message such as "Your cart is empty" stands
/// outside of the holes. Any visitor may get a redirect that the shop declares shared.
pub fn show_message(app: &App, has_cookies: bool, response: &mut Response) {
    let headers = response.headers();
    if matches!(response.status(), StatusCode::FOUND | StatusCode::SEE_OTHER | StatusCode::TEMPORARY_REDIRECT)
        && app.config.page.holes.are_of_visitors()
        && (has_cookies || headers.contains_key(header::SET_COOKIE))
        && !CacheControl::of_response(headers).is_declared_shared()
    {
        response.headers_mut().append(header::SET_COOKIE, cookie::changed());
    }
}
