//! The API under `/_edge/v1`: one table of routes, and what all of them have in common. A handler is parse → one domain
//! call → respond.
//!
//! - [`access`]: who may ask.
//! - [`call`], [`body`]: what a handler reads.
//! - [`reply`]: what it answers.
//! - the rest: the handlers, a file for each resource.

use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use http::{HeaderValue, Method, header, request::Parts};
use percent_encoding::percent_decode;

use self::{
    access::Access,
    call::{Call, Names},
};
use crate::{
    App,
    metrics::traffic::Metric,
    ports::{
        answer::Answer,
        fetch::{Body, Collected, Request, content_length},
        network::ClientNetwork,
        time::Timestamp,
    },
    routes::{counted, problem::Problem},
};

mod access;
mod body;
mod call;
mod reply;

mod abandoned;
mod cart;
mod devices;
mod flash;
mod health;
mod insights;
mod jobs;
mod orders;
mod pages;
mod ranking;
mod rows;
mod session;
mod stats;
mod traffic;

const PREFIX: &str = "/_edge/v1";

/// The longest body, in bytes: a purge of 200 URLs fits; whatever is longer is not one of our calls.
const BODY_LIMIT: usize = 16 * 1024;

type Handler = for<'a> fn(Call<'a>) -> LocalBoxFuture<'a, Result<Answer, Problem>>;

struct Route {
    access: Access,
    method: Method,
    /// The path behind [`PREFIX`]. A segment in braces stands for any one segment.
    path: &'static str,
    handler: Handler,
}

macro_rules! routes {
    ($($access:ident $method:ident $path:literal $handler:path;)*) => {
        &[$(Route {
            access: Access::$access,
            method: Method::$method,
            path: $path,
            handler: |call| Box::pin($handler(call)),
        }),*]
    };
}

#[rustfmt::skip]
static ROUTES: &[Route] = routes! {
    Open    GET    "/healthz"                 health::alive;
    Open    GET    "/readyz"                  health::ready;

    Visitor GET    "/session"                 session::show;
    Visitor DELETE "/session"                 session::end;
    Visitor GET    "/sessions"                devices::list;
    Visitor DELETE "/sessions"                devices::end_all;
    Visitor DELETE "/sessions/{device}"       devices::end;
    Visitor GET    "/recent"                  session::recent;

    Visitor GET    "/cart"                    cart::show;
    Visitor DELETE "/cart"                    cart::clear;
    Visitor POST   "/cart/items"              cart::add;
    Visitor PUT    "/cart/items/{item}"       cart::set;
    Visitor DELETE "/cart/items/{item}"       cart::remove;

    Visitor GET    "/flash/{sale}"            flash::show;
    Visitor POST   "/flash/{sale}/reservations"      flash::reserve;
    Visitor DELETE "/flash/{sale}/reservations/{id}" flash::cancel;

    Visitor POST   "/views"                   ranking::view;
    Visitor GET    "/popular"                 ranking::popular;
    Visitor GET    "/items/{item}/related"    insights::related;
    Visitor GET    "/items/{item}/stats"      insights::stats;
    Visitor GET    "/rows"                    rows::list;
    Visitor GET    "/rows/{row}"              rows::show;

    Service POST   "/sessions"                session::begin;
    Service DELETE "/users/{user}/sessions"   devices::end_user;
    Service POST   "/orders"                  orders::report;
    Service GET    "/abandoned"               abandoned::list;
    Service GET    "/rows/{row}/schedule"     rows::schedule;
    Service PUT    "/rows/{row}/schedule"     rows::set_schedule;
    Service POST   "/purge"                   pages::purge;
    Service GET    "/cache"                   pages::explain;
    Service GET    "/jobs"                    jobs::list;
    Service POST   "/jobs/{job}"              jobs::run;
    Service GET    "/stats"                   stats::show;
    Service GET    "/traffic"                 traffic::show;
    Service GET    "/ranking"                 ranking::movement;
    Service GET    "/schedule"                rows::late;
};

/// Answers a request whose path begins with `/_edge`.
pub async fn handle(app: &Rc<App>, request: Request, now: Timestamp) -> Answer {
    let (head, body) = request.into_parts();
    let (route, names) = match find(&head) {
        Ok(found) => found,
        Err(problem) => return problem.respond(PREFIX).into(),
    };
    let answer = async {
        match call(app, now, &head, body, route, names).await {
            Ok(answer) => answer,
            Err(problem) => problem.respond(format_args!("{PREFIX}{}", route.path)).into(),
        }
    };
    match route.access {
        Access::Visitor => counted(app, Metric::of_call, Box::pin(answer)).await,
        // Neither a probe nor who watches is traffic.
        Access::Open | Access::Service => answer.await,
    }
}

/// Checks what is the same for all routes, cheapest first, and hands over to the route's handler.
async fn call(
    app: &Rc<App>,
    now: Timestamp,
    head: &Parts,
    body: Body,
    route: &Route,
    names: Names,
) -> Result<Answer, Problem> {
    let_in(app, now, head, route).await?;
    let too_large = Problem::TooLarge { limit: BODY_LIMIT };
    // A length that is told saves reading what would be refused.
    if content_length::<u64>(&head.headers).is_some_and(|length| length > BODY_LIMIT as u64) {
        return Err(too_large);
    }
    let body = match body.collect(BODY_LIMIT).await {
        Ok(Collected::Whole(body)) => body,
        Ok(Collected::TooLarge(_)) => return Err(too_large),
        Err(broken) => return Err(Problem::Malformed(broken.to_string())),
    };
    (route.handler)(Call::new(app, now, head, names, body)).await
}

/// Lets a request in that is its caller's to make, and is not one of too many.
async fn let_in(app: &App, now: Timestamp, head: &Parts, route: &Route) -> Result<(), Problem> {
    let network = ClientNetwork::of(&head.headers);
    if route.access == Access::Service {
        app.limits.check_barred(network, now)?;
    }
    let access = route.access.check(&head.method, &head.uri, &head.headers, app.config.service_key.as_deref());
    // Who sends none does not guess.
    if matches!(access, Err(Problem::NotTheService)) && head.headers.contains_key(header::AUTHORIZATION) {
        app.limits.check_guess(network, now).await?;
    }
    access?;
    if route.access == Access::Visitor && !head.method.is_safe() {
        app.limits.writes.check(route.path, network).await?;
    }
    Ok(())
}

/// The route of a request, and what stands at its `{…}`. HEAD is GET without the body.
fn find(head: &Parts) -> Result<(&'static Route, Names), Problem> {
    let path = head.uri.path().strip_prefix(PREFIX).ok_or(Problem::NoSuchPath)?;
    let method = if head.method == Method::HEAD { &Method::GET } else { &head.method };
    let mut allow = String::new();
    for route in ROUTES {
        let Some(names) = capture(route.path, path) else { continue };
        if route.method == *method {
            return Ok((route, names));
        }
        let separator = if allow.is_empty() { "" } else { ", " };
        let methods = if route.method == Method::GET { "GET, HEAD" } else { route.method.as_str() };
        allow.extend([separator, methods]);
    }
    match HeaderValue::try_from(allow) {
        Ok(allow) if !allow.is_empty() => Err(Problem::WrongMethod { allow }),
        _ => Err(Problem::NoSuchPath),
    }
}

/// What stands in `path` at each `{…}` of `pattern`. None if the path is another one.
fn capture(pattern: &str, path: &str) -> Option<Names> {
    let (mut pattern, mut path) = (pattern.as_bytes(), path.as_bytes());
    let mut names = Names::default();
    let mut places = names.iter_mut();
    loop {
        match (pattern, path) {
            ([], []) => return Some(names),
            ([b'{', ..], _) => {
                let name = segment(path);
                *places.next()? = percent_decode(name).decode_utf8_lossy().into_owned();
                (pattern, path) = (pattern.strip_prefix(segment(pattern))?, path.strip_prefix(name)?);
            }
            ([one, behind @ ..], [other, rest @ ..]) if one == other => (pattern, path) = (behind, rest),
            _ => return None,
        }
    }
}

/// What stands before the next slash.
fn segment(path: &[u8]) -> &[u8] {
    path.split(|byte| *byte == b'/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_in(method: Method, uri: &str) -> Result<(&'static str, Names), Problem> {
        let head = http::Request::builder().method(method).uri(uri).body(()).unwrap().into_parts().0;
        find(&head).map(|(route, names)| (route.path, names))
    }

    #[test]
    fn a_path_finds_its_route_and_what_it_names() {
        for (method, path, route, names) in [
            (Method::GET, "/cart", "/cart", ["", ""]),
            (Method::HEAD, "/cart?x=/y", "/cart", ["", ""]),
            (Method::PUT, "/cart/items/mug", "/cart/items/{item}", ["mug", ""]),
            (Method::PUT, "/cart/items/", "/cart/items/{item}", ["", ""]),
            (Method::PUT, "/cart/items/a%2Fb%3A", "/cart/items/{item}", ["a/b:", ""]),
            (Method::GET, "/rows/7/schedule", "/rows/{row}/schedule", ["7", ""]),
            (Method::DELETE, "/flash/mug/reservations/1.a%5F", "/flash/{sale}/reservations/{id}", ["mug", "1.a_"]),
            (Method::PUT, "/cart/items/%ff", "/cart/items/{item}", ["\u{fffd}", ""]),
        ] {
            let found = find_in(method, &format!("https://shop.example/_edge/v1{path}")).unwrap();
            assert_eq!(found, (route, names.map(str::to_owned)), "{path}");
        }
    }

    #[test]
    fn another_path_is_not_found_and_another_method_is_told_which() {
        for path in
            ["/_edge", "/_edge/", "/_edge/v2/cart", "/_edge/v1", "/_edge/v1/", "/_edge/v1/cart/", "/_edge/v1//cart"]
        {
            assert!(matches!(find_in(Method::GET, path), Err(Problem::NoSuchPath)), "{path}");
        }
        for (method, path, allowed) in [
            (Method::POST, "/_edge/v1/cart", "GET, HEAD, DELETE"),
            (Method::OPTIONS, "/_edge/v1/cart/items/mug", "PUT, DELETE"),
            (Method::PUT, "/_edge/v1/sessions", "GET, HEAD, DELETE, POST"),
        ] {
            match find_in(method, path) {
                Err(Problem::WrongMethod { allow }) => assert_eq!(allow, allowed),
                other => panic!("{path}: {other:?}"),
            }
        }
    }
}
