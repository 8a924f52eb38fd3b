//! Fills the holes of a page for one visitor.
//!
//! The visitor's session fills some holes, and one page of the origin fills the others: one request, with the visitor's
//! own cookies and identity. What arrives reaches this visitor only, and no store.

use std::rc::Rc;

use futures_util::future::{Either, select};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};

use crate::{
    App, carts,
    page_cache::{
        assembled::{AssembledBody, Contents, Source},
        cache_status::CacheStatus,
        holes::{Hole, HoleContent, is_html, script_tag},
        memory::{Role, SessionFacts},
        own_content::{self, NotFilled, OwnContent},
        stored_page::StoredPage,
        visitor_cookies::VisitorCookies,
    },
    ports::fetch::{Collected, Request, Response},
    proxy::{self, Visit, VisitorContext},
    sessions::cookie,
};

use super::WAIT_PAUSES;

/// Returns whether the holes of a page must be filled for a visitor: the visitor has cookies that change them, or a
/// session.
pub fn is_due(page: &StoredPage, cookies: &VisitorCookies, visit: &Visit) -> bool {
    !page.holes.is_empty() && (cookies.in_holes || visit.token.is_some())
}

/// The response for one visitor: the stored page with its holes filled. It ignores conditions and ranges, because it
/// has no validator.
pub fn respond(page: &StoredPage, visit: &Visit, request: &Request, status: CacheStatus) -> Response {
    let mut response = Response::default();
    *response.status_mut() = page.status;
    *response.headers_mut() = page.visible_headers();
    for name in [header::ETAG, header::LAST_MODIFIED, header::ACCEPT_RANGES] {
        response.headers_mut().remove(name);
    }
    status.append_to(&mut response);
    if *request.method() == Method::GET {
        let body = AssembledBody::new(page, facts(visit, request, page), elements(visit, request, page));
        *response.body_mut() = body.into();
    }
    response
}

/// User and cart of the visitor's session.
fn facts(visit: &Visit, request: &Request, page: &StoredPage) -> Source {
    let is_fact = |content: &HoleContent| matches!(content, HoleContent::User | HoleContent::Cart);
    let Some(token) = visit.token.clone().filter(|_| page.holes.iter().any(|hole| is_fact(&hole.content))) else {
        return Source::Ready(Contents::new());
    };
    let (app, now) = (visit.app.clone(), visit.now);
    let kept = app.pages.facts.get(&token, now);
    if let Some(kept) = kept.filter(|_| !cookie::has_changed(request.headers())) {
        return Source::Ready(of_facts(&page.holes, &kept));
    }
    let holes = page.holes.clone();
    Source::Pending(Box::pin(async move {
        match carts::read(&app.redis, &token, now, &app.config.session).await {
            Ok(found) => {
                let facts =
                    found.map(|(session, cart)| SessionFacts { user: session.user, pieces: cart.total_quantity() });
                let facts = Rc::new(facts.unwrap_or_default());
                app.pages.facts.keep(&token, facts.clone(), now);
                of_facts(&holes, &facts)
            }
            Err(error) => {
                log::warn!("holes: {error}");
                Contents::new()
            }
        }
    }))
}

/// The contents of holes for these facts. A guest, and an empty cart, leave the shared content.
fn of_facts(holes: &[Hole], facts: &SessionFacts) -> Contents {
    let text = |content: &HoleContent| match content {
        // No id has a character that HTML gives a meaning.
        HoleContent::User => facts.user.as_ref().map(|user| user.as_str().to_owned()),
        HoleContent::Cart => (facts.pieces > 0).then(|| facts.pieces.to_string()),
        HoleContent::Element { .. } => None,
    };
    holes.iter().enumerate().filter_map(|(index, hole)| Some((index, text(&hole.content)?.into()))).collect()
}

/// Elements of the origin's page, as the visitor sees them.
fn elements(visit: &Visit, request: &Request, page: &StoredPage) -> Source {
    let is_element = |content: &HoleContent| matches!(content, HoleContent::Element { .. });
    let rules = &visit.app.config.page.holes;
    let own = page.holes.iter().any(|hole| is_element(&hole.content));
    let own = own.then(|| own_content::request(rules, request.uri(), request.headers())).flatten();
    let Some(own) = own else { return Source::Ready(Contents::new()) };
    let (app, holes, body) = (visit.app.clone(), page.holes.clone(), page.body.clone());
    Source::Pending(Box::pin(async move {
        let late = app.clock.sleep(app.config.page.holes_wait);
        let content = match select(Box::pin(own_content(&app, own)), late).await {
            Either::Left((content, _)) => content,
            Either::Right(_) => Err(NotFilled::Late),
        };
        if let Err(problem) = &content {
            log::warn!("holes: {problem}");
        }
        let fill = |hole: &Hole| {
            let HoleContent::Element { selector, index } = &hole.content else { return None };
            match &content {
                Ok(content) => {
                    let found = content.get(selector)?;
                    // A page with fewer elements fills the other holes with the first one.
                    found.get(*index).or_else(|| found.first()).cloned()
                }
                Err(problem) if problem.is_open_to_browser() => {
                    Some([body.get(hole.range.clone())?, script_tag(selector, *index).as_bytes()].concat().into())
                }
                Err(_) => None,
            }
        };
        holes.iter().enumerate().filter_map(|(index, hole)| Some((index, fill(hole)?))).collect()
    }))
}

/// The visitor's own content. Concurrent pages of the same visitor share one request to the origin.
async fn own_content(app: &Rc<App>, own: Request) -> Result<Rc<OwnContent>, NotFilled> {
    let now = app.clock.now();
    let until = now + app.config.page.holes_wait;
    match app.pages.own_pages.join(own_content::identity(&own), now, until) {
        Role::Send(guard) => {
            let content = fetch(app, own).await;
            let content = match content {
                Ok(OwnPage { new_cookie: Some(name), .. }) => Err(NotFilled::Cookie(name)),
                Ok(OwnPage { content, .. }) => Ok(Rc::new(content)),
                Err(problem) => Err(problem),
            };
            guard.finish(content.clone());
            content
        }
        Role::Join(page) => {
            let [mut pause, longest_pause] = WAIT_PAUSES;
            while app.clock.now() < until {
                if let Some(content) = page.result() {
                    return content;
                }
                app.clock.sleep(pause).await;
                pause = (pause * 2).min(longest_pause);
            }
            Err(NotFilled::Late)
        }
    }
}

/// The origin's page for holes, as a visitor sees it.
struct OwnPage {
    content: OwnContent,
    /// The name of a cookie that the page sets, if the visitor does not have it yet.
    new_cookie: Option<String>,
    cookies: Vec<HeaderValue>,
}

async fn fetch(app: &Rc<App>, request: Request) -> Result<OwnPage, NotFilled> {
    let visit = Visit { is_part: true, ..Visit::of(app, &request, app.clock.now()) };
    let visitor = match VisitorContext::read(&visit).await {
        Ok(visitor) => visitor,
        Err(error) => {
            log::warn!("holes: {error}");
            VisitorContext::without_redis(&visit)
        }
    };
    let (path, sent) = (request.uri().path().to_owned(), request.headers().clone());
    let answer = proxy::forward(&visit, visitor, request, &mut |_, _| {}).await;
    for task in answer.background {
        task.await;
    }
    let (head, body) = answer.response.into_parts();
    if head.status != StatusCode::OK {
        return Err(NotFilled::Status(head.status));
    }
    if !is_html(&head.headers) {
        return Err(NotFilled::NotHtml);
    }
    let page = &app.config.page;
    let Ok(Collected::Whole(body)) = body.collect(page.max_bytes).await else { return Err(NotFilled::Body) };
    Ok(OwnPage {
        content: own_content::read(&*app.html, &page.holes, &body).await?,
        new_cookie: own_content::new_cookie(page, &path, &sent, &head.headers),
        cookies: head.headers.get_all(header::SET_COOKIE).iter().cloned().collect(),
    })
}

/// Own content for the page at `uri`, with the cookies that come with it, for a browser that asks for it: see
/// `assets/holes.js`. Empty if no rule fills holes from a page.
///
/// # Errors
/// [`NotFilled`].
pub async fn own_content_for_browser(
    app: &Rc<App>,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(OwnContent, Vec<HeaderValue>), NotFilled> {
    let Some(own) = own_content::request(&app.config.page.holes, uri, headers) else {
        return Ok((OwnContent::new(), Vec::new()));
    };
    let OwnPage { content, cookies, .. } = fetch(app, own).await?;
    Ok((content, cookies))
}
