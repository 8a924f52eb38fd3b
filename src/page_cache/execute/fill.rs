//! Fills the holes of a page for one visitor.
//!
//! The visitor's session fills some holes, one page of the origin fills others, and a fragment of the origin fills each
//! hole of an include. The requests have the visitor's own cookies and identity. Their responses go to this visitor
//! only and are never stored.

use std::{cell::LazyCell, rc::Rc};

use futures_util::future::{Either, select};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};

use super::render::acquire_memory;
use crate::{
    App, carts,
    page_cache::{
        cache_status::CacheStatus,
        content_type::is_html,
        decide::{FIRST_PAUSE, next_pause},
        holes::{
            Hole, HoleContent, IncludedHole,
            assembled::{AssembledBody, Contents, Source},
            script_tag,
            visitor_content::{self, NotFilled, VisitorContent, VisitorContentKey},
        },
        memory::{Role, SessionFacts},
        policy::CacheControl,
        stored_page::StoredPage,
        visitor_cookies::VisitorCookies,
    },
    ports::{
        fetch::{Request, Response, content_length},
        html::escaped,
        semaphore::CollectOutcome,
        time::within,
    },
    proxy::{self, RequestHead, Visit},
    sessions::cookie,
};

/// Returns whether the holes of a page must be filled for a visitor: the visitor has cookies that change them, or a
/// session. A fragment may depend on any cookie, and a private one on the visitor alone.
pub fn is_needed(page: &StoredPage, cookies: &VisitorCookies, visit: &Visit) -> bool {
    let mut includes = page.holes.iter().filter_map(Hole::include);
    let is_personal = cookies.in_holes || visit.token.is_some();
    // The browser requests tokens.
    let has_filled = page.holes.iter().any(|hole| hole.content != HoleContent::Token);
    has_filled && (is_personal || includes.any(|include| include.is_private || cookies.identify()))
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
    // The age of the stored page (RFC 9111 §4).
    response.headers_mut().insert(header::AGE, HeaderValue::from(page.age(visit.now)));
    status.append_to(&mut response);
    if *request.method() == Method::GET {
        let included = included(page);
        let mut sources = vec![facts(visit, request, page), elements(visit, request, page)];
        sources.extend(included.iter().map(|include| fragment(visit, request, page, include)));
        // The index in `sources`.
        let source_of = |content: &HoleContent| match content {
            HoleContent::User | HoleContent::Cart | HoleContent::Token => 0,
            HoleContent::Element { .. } => 1,
            HoleContent::Include(include) => 2 + included.iter().take_while(|other| **other != include).count(),
        };
        // The body is polled after this request's scope.
        if let Some(scope) = visit.app.redis.scope() {
            sources = sources.into_iter().map(|source| source.in_scope(&visit.app.redis, &scope)).collect();
        }
        *response.body_mut() = AssembledBody::new(page, sources, source_of).into();
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
    let sync = app.redis.scope().and_then(|scope| scope.token());
    let kept = app.pages.facts.get(&token, sync.as_ref(), now);
    if let Some(kept) = kept.filter(|_| !cookie::has_changed(request.headers())) {
        return Source::Ready(of_facts(&page.holes, &kept));
    }
    if app.circuit.is_open() {
        return Source::Ready(Contents::new());
    }
    let holes = page.holes.clone();
    Source::Pending(Box::pin(async move {
        match carts::read(&app.redis, &token, now, &app.config.session).await {
            Ok(found) => {
                let facts =
                    found.map(|(session, cart)| SessionFacts { user: session.user, pieces: cart.total_quantity() });
                let facts = Rc::new(facts.unwrap_or_default());
                app.pages.facts.keep(&token, facts.clone(), sync, now);
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
        // The id of a user may contain `&` and `<`.
        HoleContent::User => facts.user.as_ref().map(|user| escaped(user.as_str())),
        HoleContent::Cart => (facts.pieces > 0).then(|| facts.pieces.to_string()),
        HoleContent::Element { .. } | HoleContent::Include(_) | HoleContent::Token => None,
    };
    holes.iter().enumerate().filter_map(|(index, hole)| Some((index, text(&hole.content)?.into()))).collect()
}

/// Elements of the origin's page, as the visitor sees them.
fn elements(visit: &Visit, request: &Request, page: &StoredPage) -> Source {
    let is_element = |content: &HoleContent| matches!(content, HoleContent::Element { .. });
    let has_elements = page.holes.iter().any(|hole| is_element(&hole.content));
    let part = || visitor_content::request(&visit.app.config.page, request.uri(), request.headers());
    let Some(part) = has_elements.then(part).flatten() else { return Source::Ready(Contents::new()) };
    let (app, holes, body) = (visit.app.clone(), page.holes.clone(), page.body.clone());
    Source::Pending(Box::pin(async move {
        let content = Box::pin(visitor_content(&app, part));
        let content = within(&*app.clock, app.config.page.holes_wait, content).await.unwrap_or(Err(NotFilled::Late));
        if let Err(problem) = &content {
            log::warn!("holes: {problem}");
        }
        let body = LazyCell::new(|| body.read());
        let fill = |hole: &Hole| {
            let HoleContent::Element { selector, index } = &hole.content else { return None };
            let element = |content: &VisitorContent| {
                let found = content.get(selector)?;
                // A page with fewer elements fills the other holes with the first one.
                found.get(*index).or_else(|| found.first()).cloned()
            };
            match &content {
                Ok(content) => element(content),
                Err(problem) if problem.is_open_to_browser() => {
                    let shown = problem.content().and_then(element);
                    let shown = shown.as_deref().or_else(|| body.get(hole.range.clone()))?;
                    Some([shown, script_tag(selector, *index, "").as_bytes()].concat().into())
                }
                Err(_) => None,
            }
        };
        holes.iter().enumerate().filter_map(|(index, hole)| Some((index, fill(hole)?))).collect()
    }))
}

/// The fragments of a page, each once.
fn included(page: &StoredPage) -> Vec<&IncludedHole> {
    let mut included: Vec<&IncludedHole> = Vec::new();
    for include in page.holes.iter().filter_map(Hole::include) {
        if !included.contains(&include) {
            included.push(include);
        }
    }
    included
}

/// A fragment, as the visitor gets it.
fn fragment(visit: &Visit, request: &Request, page: &StoredPage, include: &IncludedHole) -> Source {
    let has_fragment = |(_, hole): &(usize, &Hole)| hole.include() == Some(include);
    let holes: Vec<_> = page.holes.iter().enumerate().filter(has_fragment).map(|(index, _)| index).collect();
    let (app, include) = (visit.app.clone(), include.clone());
    let head = RequestHead::of(request);
    Source::Pending(Box::pin(async move {
        let IncludedHole { src, alt, .. } = &include;
        let fragment = Box::pin(proxy::fetch_fragment(&app, &head, src, alt.as_deref()));
        let fragment = match within(&*app.clock, app.config.page.holes_wait, fragment).await {
            Some(Ok(fragment)) => fragment,
            Some(Err(error)) => {
                log::warn!("holes: {error}");
                return Contents::new();
            }
            None => {
                log::warn!("holes: the include {src} did not arrive within HOLES_WAIT_MS");
                return Contents::new();
            }
        };
        let path = src.split('?').next().unwrap_or_default();
        if let Some(name) = visitor_content::new_cookie(&app.config.page, path, &head.headers, &fragment.cookies) {
            log::warn!("holes: the include {src} sets the cookie {name}, which is lost");
        }
        holes.into_iter().map(|index| (index, fragment.body.clone())).collect()
    }))
}

/// The visitor's content. Pages of the same visitor, concurrent or within two seconds, share one request to the
/// origin. After a change by the visitor, pages share nothing for two seconds, because another isolate may have seen
/// the change.
///
/// If the visitor leaves the page that sent the request, the platform may end it without dropping its guard. So a page
/// that has waited for a quarter of `HOLES_WAIT_MS` sends a request of its own, and takes the response that comes
/// first.
async fn visitor_content(app: &Rc<App>, part: Request) -> Result<Rc<VisitorContent>, NotFilled> {
    let alone = async |part| fetch(app, part).await?.without_cookie().map(|(content, _)| content);
    if cookie::has_changed(part.headers()) {
        return alone(part).await;
    }
    let now = app.clock.now();
    let until = now + app.config.page.holes_wait;
    match app.pages.visitor_contents.join(VisitorContentKey::of(&part), now, until) {
        Role::Send(guard) => match fetch(app, part).await.and_then(OriginPage::without_cookie) {
            Ok((content, true)) => {
                let content = Rc::new(visitor_content::detached(&content));
                guard.finish_and_keep(content.clone(), app.clock.now());
                Ok(content)
            }
            content => {
                let content = content.map(|(content, _)| content);
                guard.finish(content.clone());
                content
            }
        },
        Role::Join(request) => {
            let shared = Box::pin(async {
                let mut pause = FIRST_PAUSE;
                loop {
                    if let Some(content) = request.result() {
                        return Some(content);
                    }
                    if !request.is_valid(app.clock.now()) {
                        return None;
                    }
                    app.clock.sleep(pause).await;
                    pause = next_pause(pause);
                }
            });
            let patience = app.clock.sleep(app.config.page.holes_wait / 4);
            let shared = match select(shared, patience).await {
                Either::Left((Some(content), _)) => return content,
                Either::Left((None, _)) => return alone(part).await,
                Either::Right(((), shared)) => shared,
            };
            match select(shared, Box::pin(alone(part))).await {
                Either::Left((Some(content), _)) | Either::Right((content, _)) => content,
                Either::Left((None, alone)) => alone.await,
            }
        }
    }
}

/// The origin's page for holes, as a visitor sees it.
struct OriginPage {
    content: VisitorContent,
    /// The name of a cookie that the page sets, if the visitor does not have it yet.
    new_cookie: Option<String>,
    cookies: Vec<HeaderValue>,
    may_be_kept: bool,
}

impl OriginPage {
    /// The content that needs no cookie, and whether an isolate may keep it.
    fn without_cookie(self) -> Result<(Rc<VisitorContent>, bool), NotFilled> {
        let content = Rc::new(self.content);
        match self.new_cookie {
            Some(name) => Err(NotFilled::Cookie(name, content)),
            None => Ok((content, self.may_be_kept)),
        }
    }
}

async fn fetch(app: &Rc<App>, request: Request) -> Result<OriginPage, NotFilled> {
    let (path, sent) = (request.uri().path().to_owned(), request.headers().clone());
    let (head, body) = proxy::fetch_part(app, request).await.into_parts();
    if head.status != StatusCode::OK {
        return Err(NotFilled::Status(head.status));
    }
    if !is_html(&head.headers) {
        return Err(NotFilled::NotHtml);
    }
    let page = &app.config.page;
    let Some(mut permit) = acquire_memory(app, content_length(&head.headers)) else { return Err(NotFilled::Busy) };
    let body = match permit.collect(body, page.max_bytes, std::pin::pin!(std::future::pending())).await {
        Ok(CollectOutcome::Whole(body)) => body,
        Ok(CollectOutcome::NoPermit(_)) => return Err(NotFilled::Busy),
        _ => return Err(NotFilled::Body),
    };
    let lines = head.headers.get_all(header::SET_COOKIE).iter();
    let cookies: Vec<_> = lines.map(|line| proxy::at_path(line, &path)).collect();
    let content = visitor_content::read(&*app.html, &page.holes, &body).await?;
    Ok(OriginPage {
        new_cookie: visitor_content::new_cookie(page, &path, &sent, &cookies),
        cookies,
        // A page without any element may be a message that the shop shows instead.
        may_be_kept: !content.is_empty() && !CacheControl::of(&head.headers).has("no-store"),
        content,
    })
}

/// The visitor's content for the page at `uri`, with the cookies that come with it, for a browser that asks for it: see
/// `assets/holes.js`. Empty if no rule fills holes from a page.
///
/// # Errors
/// [`NotFilled`].
pub async fn visitor_content_for_browser(
    app: &Rc<App>,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(VisitorContent, Vec<HeaderValue>), NotFilled> {
    let Some(part) = visitor_content::request(&app.config.page, uri, headers) else {
        return Ok((VisitorContent::new(), Vec::new()));
    };
    let OriginPage { content, cookies, .. } = fetch(app, part).await?;
    Ok((content, cookies))
}
