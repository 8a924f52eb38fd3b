//! Tokens of the visitor's session in unsafe requests.
//!
//! A stored page has placeholders instead of tokens. `assets/holes.js` replaces them in the browser. Some requests still
//! carry a placeholder: those of forms without JavaScript, of `form.submit()`, of scripts that read the token when the
//! page was loaded, and those with a token in their address. For such a request, edgefront requests the page for the
//! visitor, and replaces the placeholder with the visitor's token. The page also starts the session of a new visitor.
//!
//! The origin trusts a request with a token. So the browser must prove that a page of this origin sent the request, as
//! for `CSRF_COOKIE`: see [`is_from_own_page`](proxy::is_from_own_page).

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Uri, header, request::Parts};

use super::{bypass::bypass, fill::visitor_content_for_browser, render::acquire_memory};
use crate::{
    App,
    config::rules::{HoleRules, HoleSource},
    page_cache::{
        cache_status::CacheStatus,
        holes::{
            form_body::{FormBody, PlaceholderField},
            placeholder::{FormToken, Placeholder},
            visitor_content::{NotFilled, VisitorContent, key_in_form},
        },
        policy::Reason,
    },
    ports::{
        answer::Answer,
        fetch::{Body, FetchError, Request, content_length, is_whole},
        semaphore::{CollectOutcome, MemoryPermit},
        time::within,
    },
    proxy::{self, Visit, cookie_name, with_path},
};

/// Longest body that is searched, bytes. A form is short.
const MAX_BODY: usize = 64 << 10;

/// Forwards an unsafe request, with the visitor's tokens in place of placeholders. It waits at most `HOLES_WAIT_MS` for the body, and as
/// long for the tokens. Without them, the request stays as it is.
pub(super) async fn forward(visit: &Visit, request: Request) -> Answer {
    let app = &visit.app;
    let (mut head, body) = request.into_parts();
    let (mut body, mut permit) = match read(app, &head.headers, body).await {
        Ok(read) => read,
        Err(error) => {
            let mut response = proxy::failure(app, &error.into(), &head.headers);
            CacheStatus::bypass(Reason::Method).append_to(&mut response);
            return response.into();
        }
    };
    let rules = &app.config.page.holes;
    let mut cookies = Vec::new();
    if let Some(page) = first_page(&head, &body, rules)
        && let Some(uri) = with_path(&head.uri, &page)
    {
        let found = Box::pin(visitor_content_for_browser(app, &uri, &head.headers));
        match within(&*app.clock, app.config.page.holes_wait, found).await.unwrap_or(Err(NotFilled::Late)) {
            Ok((content, page_cookies)) => {
                VisitorTokens { rules, page, content }.replace_in(&mut head, &mut body);
                for line in &page_cookies {
                    proxy::apply_set_cookie(&mut head.headers, line);
                }
                cookies = page_cookies;
            }
            Err(problem) => log::warn!("tokens: {problem}"),
        }
    } else {
        permit = None;
    }
    let mut answer = bypass(visit, Reason::Method, Request::from_parts(head, body)).await;
    drop(permit);
    // The shop's response is newer than the page.
    let newer: Vec<_> = answer.response.headers().get_all(header::SET_COOKIE).iter().map(cookie_name).collect();
    for line in cookies {
        if !newer.contains(&cookie_name(&line)) {
            answer.response.headers_mut().append(header::SET_COOKIE, line);
        }
    }
    answer
}

/// Returns whether to search a request for placeholders.
pub(super) fn may_have_placeholders(app: &App, request: &Request) -> bool {
    !request.method().is_safe()
        && app.config.page.holes.has_tokens()
        // The home tier replaces them.
        && app.home.is_none()
        && proxy::is_from_own_page(request.uri(), request.headers())
}

/// Reads a body of at most [`MAX_BODY`] bytes. A longer or slow one, and one without a known length, stays a stream.
async fn read(app: &App, headers: &HeaderMap, body: Body) -> Result<(Body, Option<MemoryPermit>), FetchError> {
    let length = content_length(headers).filter(|length| *length <= MAX_BODY);
    let Some(mut permit) = length.and_then(|length| acquire_memory(app, Some(length))) else { return Ok((body, None)) };
    let patience = app.clock.sleep(app.config.page.holes_wait);
    match permit.collect(body, MAX_BODY, std::pin::pin!(patience)).await {
        Ok(CollectOutcome::Whole(bytes)) if is_whole(length, &bytes) => Ok((Body::Bytes(bytes), Some(permit))),
        Ok(CollectOutcome::Whole(_)) | Err(_) => Err(FetchError::Unreachable),
        Ok(CollectOutcome::TooLarge(body) | CollectOutcome::Slow(body) | CollectOutcome::NoPermit(body)) => {
            Ok((body, None))
        }
    }
}

/// Path and query of the page whose placeholder a request carries.
fn first_page(head: &Parts, body: &Body, rules: &HoleRules) -> Option<String> {
    let forms = form_of(&head.headers, body).into_iter().chain(query_of(&head.uri));
    let in_forms = forms.flat_map(|form| form.fields()).map(|field| field.placeholder);
    let in_headers = head.headers.values().filter_map(|value| Placeholder::decode(value.as_bytes()));
    Some(in_forms.chain(in_headers).find(|placeholder| is_token(rules, placeholder))?.page)
}

/// Returns whether a rule names the element of a placeholder.
fn is_token(rules: &HoleRules, Placeholder { page, selector, .. }: &Placeholder) -> bool {
    let path = page.split('?').next().unwrap_or_default();
    rules.of_path(path).any(|rule| rule.source == HoleSource::Token && rule.selector == *selector)
}

fn query_of(uri: &Uri) -> Option<FormBody<'_>> {
    uri.query().map(|query| FormBody::of_query(query.as_bytes()))
}

fn form_of<'a>(headers: &HeaderMap, body: &'a Body) -> Option<FormBody<'a>> {
    if let Body::Bytes(text) = body { FormBody::new(headers, text) } else { None }
}

/// Returns whether a field may get a token.
type IsFor = fn(&FormBody<'_>, &PlaceholderField<'_>, &FormToken) -> bool;

/// The tokens of a page, as a visitor gets it.
struct VisitorTokens<'a> {
    rules: &'a HoleRules,
    /// Path and query.
    page: String,
    content: VisitorContent,
}

impl VisitorTokens<'_> {
    fn replace_in(&self, head: &mut Parts, body: &mut Body) {
        let is_for_field = |form: &FormBody<'_>, field: &PlaceholderField<'_>, token: &FormToken| {
            form.is_for_token(field, token.field.as_deref())
        };
        let replaced = form_of(&head.headers, body).and_then(|form| self.replaced(&form, is_for_field));
        if let Some(replaced) = replaced {
            *body = Body::Bytes(replaced.into());
            head.headers.remove(header::CONTENT_LENGTH);
        }
        // Only the token's own parameter. A hostile link can put a placeholder into another parameter of the page's address, and a
        // form without `action` sends it.
        let is_own = |_: &FormBody<'_>, field: &PlaceholderField<'_>, token: &FormToken| {
            token.parameter.as_deref() == Some(field.name)
        };
        let replaced = query_of(&head.uri).and_then(|query| String::from_utf8(self.replaced(&query, is_own)?).ok());
        if let Some(uri) = replaced.and_then(|query| with_path(&head.uri, &format!("{}?{query}", head.uri.path()))) {
            head.uri = uri;
        }
        for value in head.headers.values_mut() {
            let token = Placeholder::decode(value.as_bytes()).and_then(|placeholder| self.of(&placeholder));
            if let Some(Ok(token)) = token.map(|token| HeaderValue::try_from(token.value)) {
                *value = token;
            }
        }
    }

    /// The text with tokens in place of its placeholders. None if no field gets a token.
    fn replaced(&self, form: &FormBody<'_>, is_for: IsFor) -> Option<Vec<u8>> {
        let mut result = Vec::new();
        let mut end = 0;
        for field in form.fields() {
            let token = self.of(&field.placeholder);
            if let Some(token) = token.filter(|token| is_for(form, &field, token)) {
                result.extend_from_slice(form.text().get(end..field.range.start)?);
                result.extend_from_slice(form.encode(&token.value).as_bytes());
                end = field.range.end;
            }
        }
        result.extend_from_slice(form.text().get(end..)?);
        (end > 0).then_some(result)
    }

    fn of(&self, placeholder: &Placeholder) -> Option<FormToken> {
        if self.page != placeholder.page || !is_token(self.rules, placeholder) {
            return None;
        }
        let Placeholder { selector, form, .. } = placeholder;
        let elements = self.content.get(&key_in_form(selector, form)).or_else(|| self.content.get(selector))?;
        // As in holes, a page with fewer elements fills the others with the first one. The visitor's page may have other scripts.
        let token = |element: &Bytes| FormToken::of_element(element);
        elements.get(placeholder.index).and_then(token).or_else(|| elements.iter().find_map(token))
    }
}
