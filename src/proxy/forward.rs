//! Forwards a visitor's own request to the origin and obeys the origin's directives.

use http::{HeaderValue, header};

use super::{
    directives::OriginDirectives,
    failure::failure,
    obey::{obey, settle},
    origin::fetch_personal,
    visit::{RequestHead, Visit},
    visitor::VisitorContext,
};
use crate::{
    ports::{
        answer::Answer,
        fetch::{Request, Response},
    },
    schema::ids::UserId,
};

/// A function that sees the origin's response. A trait object, because a generic parameter would compile [`forward`]
/// once for each caller.
pub type Observer<'a> = &'a mut dyn FnMut(&mut Response, &OriginDirectives);

/// Forwards the request. `observe` sees the origin's response, or the failure in its place, before anything else
/// happens to it.
pub async fn forward(visit: &Visit, visitor: VisitorContext, request: Request, observe: Observer<'_>) -> Answer {
    let head = RequestHead::of(&request);
    match fetch_personal(&visit.app, request, &visitor, visit.now).await {
        Ok((mut response, directives)) => {
            observe(&mut response, &directives);
            finish(visit, &head, visitor.user.as_ref(), response, directives).await
        }
        Err(error) => {
            let mut response = failure(&error, &head.headers);
            observe(&mut response, &OriginDirectives::default());
            response.into()
        }
    }
}

/// Completes a response of the origin: executes its directives (order, login, logout, cart change) and records the
/// view. `user` is the user in the request that the origin got.
pub async fn finish(
    visit: &Visit,
    head: &RequestHead,
    user: Option<&UserId>,
    mut response: Response,
    mut directives: OriginDirectives,
) -> Answer {
    let status = response.status();
    let headers = response.headers_mut();
    // Default if the origin sets no `Cache-Control`. The response may be personal, so no cache between edgefront and
    // the browser may keep it.
    let default = if headers.contains_key(header::EXPIRES) { "private" } else { "private, no-cache" };
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static(default));
    // The order comes first: a logout would record the bought cart as abandoned.
    let mut background = Vec::new();
    if let Some(order) = directives.order.take() {
        background.push(settle(visit, order, user.or(directives.user.as_ref())).await);
    }
    let item = directives.item.take();
    let cookie = match obey(visit, directives, user, &head.headers).await {
        Ok(cookie) => cookie,
        // The origin's page would report a change that did not happen.
        Err(error) => return Answer { response: failure(&error, &head.headers), background },
    };
    if let Some(cookie) = cookie {
        let headers = response.headers_mut();
        headers.append(header::SET_COOKIE, cookie);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    }
    visit.record(&head.method, &head.headers, status, item.as_ref());
    Answer { response, background }
}
