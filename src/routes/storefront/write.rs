//! A request that changes something: it passes, and what it changed is void (RFC 9111 §4.4).

use http::{Method, header};
use percent_encoding::percent_decode_str;
use url::Url;

use super::{Visit, failure, log_failure};
use crate::{
    config::item_routes::ItemRoutes,
    page_cache::{self, CacheStatus, Page, Pass},
    ports::{
        answer::Answer,
        fetch::{Request, Response},
    },
};

impl Visit {
    /// A request that is no read. What it changed is void (RFC 9111 §4.4): the page under its URL, and those that the answer names. In
    /// this isolate at once, everywhere as soon as Redis has it; that is on its way when the visitor gets the answer.
    pub(super) async fn write(self, request: Request) -> Answer {
        let (app, now) = (self.app.clone(), self.now);
        let config = &app.config.origin;
        let is_safe = [Method::OPTIONS, Method::TRACE].contains(request.method());
        if !is_safe && config.login_routes.iter().any(|route| is_at(route, request.uri().path())) {
            let checked = app.limits.logins.check("login", self.network).await;
            if let Err(error) = checked {
                let mut response = failure(error, request.headers());
                CacheStatus::pass(Pass::Method).append_to(&mut response);
                return response.into();
            }
        }
        let url = request.uri().to_string();
        let mut answer = self.pass(Pass::Method, request).await;
        let status = answer.response.status();
        if !is_safe && (status.is_success() || status.is_redirection()) {
            let pages = changed(&url, &answer.response, &app.config.page.item_routes);
            for page in &pages {
                app.pages.forget(page.hash());
                app.pages.note_unstorable(page.hash(), "invalidated", now);
            }
            answer.background.push(Box::pin(async move {
                log_failure(page_cache::invalidate(&app.redis, &pages).await);
                for page in &pages {
                    app.pages.forget(page.hash());
                }
            }));
        }
        answer
    }
}

/// Whether a path is `route`, or below it, in any spelling that some origin may take for it: no other one is a way around the limit.
fn is_at(route: &str, path: &str) -> bool {
    let (route, path) = (names(route), names(path));
    path.starts_with(&route) || resolved(path).starts_with(&route)
}

/// The names in a path, without what some origins overlook.
fn names(path: &str) -> Vec<String> {
    let path = percent_decode_str(path).decode_utf8_lossy().to_ascii_lowercase();
    let names = path.split(['/', '\\']).map(|name| name.split(';').next().unwrap_or_default().to_owned());
    names.filter(|name| !matches!(name.as_str(), "" | ".")).collect()
}

/// The same for an origin that goes up by `..` after it has decoded `%2f`, which the platform leaves as it is.
fn resolved(names: Vec<String>) -> Vec<String> {
    names.into_iter().fold(Vec::new(), |mut names, name| {
        if name == ".." {
            names.pop();
        } else {
            names.push(name);
        }
        names
    })
}

/// The pages under the request's URL and under those of its `Location` and `Content-Location` that are of the same origin.
fn changed(url: &str, response: &Response, routes: &ItemRoutes) -> Vec<Page> {
    let Ok(target) = Url::parse(url) else { return Vec::new() };
    let named = [header::LOCATION, header::CONTENT_LOCATION].into_iter().filter_map(|name| {
        let text = response.headers().get(name)?.to_str().ok()?;
        target.join(text).ok().filter(|named| named.origin() == target.origin())
    });
    let urls: Vec<_> = std::iter::once(target.clone()).chain(named).collect();
    let mut pages: Vec<_> = urls.iter().filter_map(|url| Page::of_url(url.as_str(), routes).ok()).collect();
    pages.dedup();
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_spelling_of_a_path_is_a_way_around_its_limit() {
        for path in [
            "/login",
            "/login/",
            "//login",
            "/Login",
            "/%6cogin",
            "/login;a=b",
            "/login%2f",
            "/login/again",
            "/a/..%2flogin",
            "/a%5c..%5clogin",
            "/.%2flogin",
            "/login/..%2fa",
        ] {
            assert!(is_at("/login", path), "{path}");
        }
        for path in ["/", "/logins", "/a/login", "/a%2f..", "/a/..%2fb/login"] {
            assert!(!is_at("/login", path), "{path}");
        }
        assert!(is_at("/", "/anything"));
    }
}
