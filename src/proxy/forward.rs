//! Forwards a visitor's own request to the origin and obeys the origin's directives.

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::{
    directives::OriginDirectives,
    esi::Processed,
    failure::failure,
    fragments::{expanded, is_compressed},
    obey::{Obeyed, check_limit, log_out_again, obey, obey_with_order},
    origin::fetch_personal,
    visit::{RequestHead, Visit},
    visitor::VisitorContext,
};
use crate::{
    ports::{
        answer::Answer,
        error::Error,
        fetch::{Request, Response},
        header_names::{make_private, make_unstorable},
    },
    schema::ids::UserId,
};

/// A function that sees the origin's response. A trait object, because a generic parameter would compile [`forward`]
/// once for each caller.
pub type Observer<'a> = &'a mut dyn FnMut(&mut Response, &OriginDirectives);

/// The head of a response of the origin that a failure has replaced: a directive in it could not be executed, but the origin
/// has executed the request.
#[derive(Clone)]
pub struct Replaced {
    pub status: StatusCode,
    pub headers: HeaderMap,
}

/// Forwards the request. `observe` sees the origin's response with its ESI expanded, or the failure in its place,
/// before anything else happens to it.
pub async fn forward(visit: &Visit, visitor: VisitorContext, request: Request, observe: Observer<'_>) -> Answer {
    let head = RequestHead::of(&request);
    let mut fetched = fetch_personal(&visit.app, request, &visitor, visit.now).await;
    if let Ok((response, directives)) = &fetched
        && directives.has_esi
        && head.method == Method::GET
        && (is_compressed(response.headers()) || response.status() == StatusCode::PARTIAL_CONTENT)
    {
        // Neither a compressed page nor a range of a page can be scanned for fragments.
        fetched = Box::pin(fetch_personal(&visit.app, head.for_scan(), &visitor, visit.now)).await;
    }
    match fetched {
        Ok((response, directives)) => {
            let mut response = expanded(visit, &head, response, &directives).await;
            observe(&mut response, &directives);
            finish(visit, &head, visitor.user.as_ref(), response, directives).await
        }
        Err(error) => {
            let mut response = failure(&visit.app, &error, &head.headers);
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
    let is_expanded = response.extensions().get() == Some(&Processed::Expanded);
    let headers = response.headers_mut();
    if is_expanded {
        // The origin's directives are those of the page without the visitor's fragments.
        make_private(headers);
    }
    // Default if the origin sets no `Cache-Control`. The response may be personal, so no cache between edgefront and
    // the browser may keep it.
    let default = if headers.contains_key(header::EXPIRES) { "private" } else { "private, no-cache" };
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static(default));
    let item = directives.item.take();
    if visit.may_lack_session_cookie && directives.user.is_none() && directives.cart.take().is_some() {
        // The cookie of a new session would replace that of the visitor's session.
        log::warn!(
            "Edge-Cart was not executed: another site sent the request, so it lacks the visitor's session cookie"
        );
    }
    let mut background = Vec::new();
    let (cookie, failed) = if let Some(order) = directives.order.take() {
        // The order is accepted, so no limit and no failure of the other directives may replace the response.
        let (cookie, task) = Box::pin(obey_with_order(visit, *order, directives, user, &head.headers)).await;
        background.push(task);
        (cookie, None)
    } else if let Err(error) = check_limit(visit, &directives).await {
        (None, Some(error))
    } else {
        let Obeyed { cookie, result, .. } = obey(visit, &mut directives, user, &head.headers, None).await;
        if let (Err(Error::Redis(_)), Some(named)) = (&result, directives.named_logout()) {
            background.push(log_out_again(visit, named.clone()));
        }
        (cookie, result.err())
    };
    if let Some(error) = &failed {
        // The origin's page would report a change that did not happen.
        let (origin, _) = std::mem::replace(&mut response, failure(&visit.app, error, &head.headers)).into_parts();
        let extensions = response.extensions_mut();
        // Also of a response whose ESI is refused, the origin's success must void pages.
        if let Some(processed) = origin.extensions.get::<Processed>() {
            extensions.insert(*processed);
        }
        extensions.insert(Replaced { status: origin.status, headers: origin.headers });
    }
    if let Some(cookie) = cookie {
        let headers = response.headers_mut();
        headers.append(header::SET_COOKIE, cookie);
        make_unstorable(headers);
    }
    if failed.is_some() {
        return Answer { response, background };
    }
    visit.record(&head.method, &head.headers, status, item.as_ref());
    Answer { response, background }
}
