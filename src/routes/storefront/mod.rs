//! The storefront: every request outside `/_edge/`. Parse, ask the page cache, answer.

use std::rc::Rc;

use http::{HeaderValue, Method};

use crate::{
    App,
    page_cache::{self, CacheStatus, Reason},
    ports::{answer::Answer, fetch::Request, time::Timestamp},
    proxy::{self, Visit, home::FromEdge},
    routes::problem::Problem,
};

/// The methods that a storefront needs. edgefront forwards no other method: the response to a TRACE quotes the request,
/// and the origin's request contains `Edge-Key` (RFC 9110 §9.3.8).
const METHODS: [Method; 7] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];
/// [`METHODS`] as the value of `Allow`.
const ALLOW: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");

/// Answers a request for the storefront. It waits for at most one request to Redis before the response, and for one more
/// if a form lacks its token; views and pages are written afterwards.
pub async fn serve(app: &Rc<App>, request: Request, now: Timestamp) -> Answer {
    if !METHODS.contains(request.method()) {
        let mut response = Problem::WrongMethod { allow: ALLOW }.respond("storefront");
        CacheStatus::bypass(Reason::Method).append_to(&mut response);
        return response.into();
    }
    let visit = Visit::of(app, &request, now);
    match page_cache::admit(&request, &app.config.page.urls, &app.pages.keys) {
        Ok((key, _)) if visit.sends_cart => {
            let reason = key.by_popularity().err().unwrap_or(Reason::Personal);
            page_cache::bypass(&visit, reason, request).await
        }
        Ok((key, directives)) => page_cache::answer(visit, key, directives, request).await,
        Err(Reason::Method) => forward_unsafe(visit, request).await,
        Err(reason) => page_cache::bypass(&visit, reason, request).await,
    }
}

/// Forwards a request with another method than GET and HEAD, within the rate limit of `LOGIN_ROUTES`.
async fn forward_unsafe(visit: Visit, request: Request) -> Answer {
    let app = &visit.app;
    if !request.method().is_safe()
        && request.extensions().get::<FromEdge>().is_none()
        && app.config.origin.login_routes.contains(request.uri().path())
        && let Err(error) = app.limits.logins.check("login", visit.network).await
    {
        let mut response = proxy::failure(app, &error, request.headers());
        CacheStatus::bypass(Reason::Method).append_to(&mut response);
        return response.into();
    }
    page_cache::forward_unsafe(visit, request).await
}
