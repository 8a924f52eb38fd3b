//! Read regions: each visitor reads their own changes in every region. Redis' sync token of a visitor's last change
//! travels in a cookie, through all locations and tiers.

use std::rc::Rc;

use http::{HeaderValue, header};
use upstash_rest::SyncScope;

use crate::{
    App,
    ports::fetch::{Request, Response},
};

/// The scope of a request; None if Redis has no read regions, or in the edge tier, which sends nothing to Redis.
pub fn scope(app: &App, request: &Request) -> Option<Rc<SyncScope>> {
    let is_needed = app.config.redis.has_read_regions && app.home.is_none();
    is_needed.then(|| Rc::new(SyncScope::new(app.keyring.read_sync(request.headers()))))
}

/// Sets the cookie, if the request changed the visitor's session or cart.
pub fn end(app: &App, scope: &SyncScope, response: &mut Response) {
    let Some(token) = scope.written() else { return };
    match app.keyring.set_sync(&token) {
        Ok(cookie) => {
            let headers = response.headers_mut();
            headers.append(header::SET_COOKIE, cookie);
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
        }
        Err(error) => log::warn!("read regions: {error}"),
    }
}
