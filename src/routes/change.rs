//! A visitor's next pages must show the visitor's change, although isolates keep the content of holes. A change is an
//! unsafe request, if holes show its effect; a redirect to a page that may show a message; or a choice (`CHOICES`).

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

/// A request that may change the visitor's next pages.
pub struct VisitorChange {
    /// For an unsafe request, if holes show its effect. This isolate forgets the visitor's content before the request and
    /// after it, because a page may fill holes meanwhile. For other isolates, the response carries [`cookie::changed`].
    content: Option<ContentKeys>,
    has_cookies: bool,
    /// The visitor makes a choice that the shop's session keeps.
    is_choice: bool,
}

/// The keys of the hole content that this isolate keeps for one visitor.
struct ContentKeys {
    /// The session whose facts fill holes.
    token: Option<Token>,
    /// The visitor whose content fills holes; None without cookies.
    visitor: Option<VisitorKey>,
}

impl VisitorChange {
    /// None in the edge tier: the home tier marks the changes of requests that go through the edge tier.
    pub fn begin(app: &App, request: &Request, now: Timestamp) -> Option<Self> {
        if app.home.is_some() {
            return None;
        }
        let (pages, headers, uri) = (&app.config.page, request.headers(), request.uri());
        let is_choice = pages.urls.choices.contains(uri.path(), uri.query());
        let has_cookies = headers.contains_key(header::COOKIE);
        let is_shown_in_holes = !request.method().is_safe() && pages.holes.are_of_visitors();
        let content = is_shown_in_holes.then(|| {
            let token = pages.holes.has_facts().then(|| app.keyring.read(headers, now)).flatten();
            let keys = ContentKeys { token, visitor: has_cookies.then(|| VisitorKey::of(headers, &pages.headers)) };
            keys.forget(app);
            keys
        });
        Some(Self { content, has_cookies, is_choice })
    }

    /// Lets the visitor's next pages show the change.
    pub fn end(self, app: &App, response: &mut Response) {
        let is_shown = match &self.content {
            Some(keys) => {
                keys.forget(app);
                self.has_cookies || response.headers().contains_key(header::SET_COOKIE)
            }
            None => may_show_message(app, self.has_cookies, response),
        };
        // A choice shows outside of holes. So a visitor who made one gets personal pages.
        let is_chosen = self.is_choice && (response.status().is_success() || response.status().is_redirection());
        let cookies = [is_shown.then(cookie::changed), is_chosen.then(cookie::chosen)];
        for cookie in cookies.into_iter().flatten() {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
    }
}

impl ContentKeys {
    fn forget(&self, app: &App) {
        if let Some(token) = &self.token {
            app.pages.facts.forget(token);
        }
        if let Some(visitor) = &self.visitor {
            app.pages.visitor_contents.forget(visitor);
        }
    }
}

/// Returns whether the page after a redirect may show a flash message outside of its holes, such as "Your cart is
/// empty". Then the shop renders the page for this visitor. Redirects that the shop declares shared are exempt.
fn may_show_message(app: &App, has_cookies: bool, response: &Response) -> bool {
    let headers = response.headers();
    matches!(response.status(), StatusCode::FOUND | StatusCode::SEE_OTHER | StatusCode::TEMPORARY_REDIRECT)
        && app.config.page.holes.are_of_visitors()
        && (has_cookies || headers.contains_key(header::SET_COOKIE))
        && !CacheControl::of_response(headers).is_declared_shared()
}
