//! The API under `/_edge/v1`: one table of routes, and the steps that all routes share. A handler parses, makes one
//! domain call and responds.
//!
//! - [`route`]: finds the route of a request.
//! - [`access`]: authorizes the request.
//! - [`request`], [`body`]: the input of a handler.
//! - [`respond`]: JSON responses.
//! - The other modules hold the handlers, one module for each resource.
//!
//! `docs/api.md` is the reference of the API for people, `docs/openapi.json` for programs.

use std::rc::Rc;

use bytes::Bytes;
use http::{HeaderMap, Method, header, request::Parts};

use self::{
    access::Access,
    request::{ApiRequest, PathParameters},
    route::{ApiRoute, find_route},
};
use crate::{
    App,
    ports::{
        answer::Answer,
        fetch::{Body, Collected, Request, content_length},
        network::ClientNetwork,
        time::Timestamp,
    },
    proxy::home::{self, FromEdge},
    routes::{
        counted::{Area, count_error, counted},
        problem::Problem,
    },
};

mod access;
mod body;
mod request;
mod respond;
mod route;

mod abandoned;
mod cart;
mod devices;
mod flash;
mod health;
mod holes;
mod insights;
mod jobs;
mod orders;
mod pages;
mod prometheus;
mod ranking;
mod rows;
mod session;
mod stats;
mod traffic;
mod users;

#[cfg(test)]
mod openapi;
#[cfg(test)]
mod reference;

const PREFIX: &str = "/_edge/v1";

/// The longest body, in bytes: enough for an order of 500 items with ids of 64 characters.
const BODY_LIMIT: usize = 64 * 1024;

macro_rules! routes {
    ($($access:ident $method:ident $path:literal $handler:path, $summary:literal;)*) => {
        &[$(ApiRoute {
            access: Access::$access,
            method: Method::$method,
            path: $path,
            handler: |request| Box::pin($handler(request)),
            #[cfg(test)]
            summary: $summary,
        }),*]
    };
}

/// The routes. A test writes them into `docs/api.md`.
#[rustfmt::skip]
static ROUTES: &[ApiRoute] = routes! {
    Open    GET    "/healthz"                        health::alive,         "Liveness: the Worker runs";
    Open    GET    "/readyz"                         health::ready,         "Readiness of Redis, crons, rows, origin";

    Visitor GET    "/session"                        session::show,         "The user, and the size of the cart";
    Visitor DELETE "/session"                        session::end,          "Log this session out";
    Visitor GET    "/sessions"                       devices::list,         "The devices that are logged in";
    Visitor DELETE "/sessions"                       devices::end_all,      "Log out all devices, or all other devices";
    Visitor DELETE "/sessions/{device}"              devices::end,          "Log out one device";
    Visitor GET    "/recent"                         session::recent,       "The items that the session viewed last";

    Visitor GET    "/cart"                           cart::show,            "The cart";
    Visitor DELETE "/cart"                           cart::clear,           "Empty the cart";
    Visitor POST   "/cart/items"                     cart::add,             "Add a quantity of an item";
    Visitor PUT    "/cart/items/{item}"              cart::set,             "Set the quantity of an item";
    Visitor DELETE "/cart/items/{item}"              cart::remove,          "Remove an item";

    Visitor GET    "/flash/{sale}"                   flash::show,           "A sale, and the visitor's reservation";
    Visitor POST   "/flash/{sale}/reservations"      flash::reserve,        "Reserve a piece";
    Visitor DELETE "/flash/{sale}/reservations/{id}" flash::cancel,         "Cancel a reservation";

    Visitor GET    "/holes"                          holes::show,           "The visitor's own content of holes";

    Visitor POST   "/views"                          ranking::view,         "Report a view that edgefront did not see";
    Visitor GET    "/popular"                        ranking::popular,      "The most viewed items";
    Visitor GET    "/items/{item}/related"           insights::related,     "Items bought with an item";
    Visitor GET    "/items/{item}/stats"             insights::stats,       "Rank, views and orders of an item";
    Visitor GET    "/rows"                           rows::list,            "Several rows";
    Visitor GET    "/rows/{row}"                     rows::show,            "One row";

    Service POST   "/sessions"                       session::begin,        "Log a user in";
    Service DELETE "/users/{user}/sessions"          devices::end_user,     "Log a user out of all devices";
    Service GET    "/users/{user}/sessions"          users::list,           "The sessions of a user";
    Service GET    "/users/{user}/sessions/{device}" users::show,           "A session with its cart and viewed items";
    Service DELETE "/users/{user}/sessions/{device}" users::end,            "End one session of a user";
    Service POST   "/orders"                         orders::report,        "Report an order";
    Service GET    "/abandoned"                      abandoned::list,       "Carts that ended with their session";
    Service GET    "/flash/{sale}/holds"             flash::holds,          "A sale with its reservations";
    Service PUT    "/flash/{sale}/pieces"            flash::set_pieces,     "Change the number of pieces of a sale";
    Service GET    "/rows/{row}/schedule"            rows::schedule,        "The schedule of a row";
    Service PUT    "/rows/{row}/schedule"            rows::set_schedule,    "Schedule a row, or stop refreshing it";
    Service POST   "/purge"                          pages::purge,          "Purge stored pages";
    Service GET    "/cache"                          pages::explain,        "Explain the caching of a URL";
    Service GET    "/jobs"                           jobs::list,            "The last and next runs of the jobs";
    Service POST   "/jobs/{job}"                     jobs::run,             "Run a job now";
    Service GET    "/stats"                          stats::show,           "Counts and sizes of the data in Redis";
    Service GET    "/traffic"                        traffic::show,         "Traffic counters of the last minutes";
    Service GET    "/metrics"                        prometheus::show,      "All measurements, for Prometheus";
    Service GET    "/ranking"                        ranking::movement,     "The most viewed items, and their movement";
    Service GET    "/schedule"                       rows::most_overdue,    "The most overdue rows";
};

/// Answers a request whose path begins with `/_edge`.
pub async fn handle(app: &Rc<App>, request: Request, now: Timestamp) -> Answer {
    let (head, body) = request.into_parts();
    let (route, parameters) = match find_route(&head) {
        Ok(found) => found,
        Err(problem) => return problem.respond(PREFIX).into(),
    };
    if app.home.is_some() {
        let answer = pass(app, route, Request::from_parts(head, body), now).await;
        count_error(app, &answer.response, now);
        return answer;
    }
    let answer = async {
        match answer(app, &head, body, (route, parameters), now).await {
            Ok(answer) => answer,
            Err(problem) => problem.respond(format_args!("{PREFIX}{}", route.path)).into(),
        }
    };
    match route.access {
        Access::Visitor => counted(app, Area::Api, now, Box::pin(answer)).await,
        // Probes and operators are not traffic, but a service must learn that its calls fail.
        Access::Service => {
            let answer = answer.await;
            count_error(app, &answer.response, now);
            answer
        }
        Access::Open => answer.await,
    }
}

/// Passes a request to the home tier, which checks it. The edge tier refuses what exceeds a rate limit of visitors.
async fn pass(app: &App, route: &ApiRoute, request: Request, now: Timestamp) -> Answer {
    let pattern = format_args!("{PREFIX}{}", route.path);
    if route.access == Access::Visitor {
        let (head, body) = request.into_parts();
        if let Err(problem) = authorize(app, &head, route, now).await {
            return problem.respond(pattern).into();
        }
        return send(app, pattern, Request::from_parts(head, body)).await;
    }
    let purges = route.path == "/purge";
    let answer = send(app, pattern, request).await;
    if purges && answer.response.status().is_success() {
        app.pages.forget_all(now);
    }
    answer
}

async fn send(app: &App, pattern: std::fmt::Arguments<'_>, request: Request) -> Answer {
    match home::send(app, request, None).await {
        Ok(response) => response.into(),
        Err(error) => Problem::from(error).respond(pattern).into(),
    }
}

/// Runs the checks that all routes share, cheapest first, and the route's handler.
async fn answer(
    app: &Rc<App>,
    head: &Parts,
    body: Body,
    (route, parameters): (&ApiRoute, PathParameters),
    now: Timestamp,
) -> Result<Answer, Problem> {
    authorize(app, head, route, now).await?;
    let body = collect(app, &head.headers, body).await?;
    (route.handler)(ApiRequest::new(app, now, head, parameters, body)).await
}

/// Refuses a request without the right to call the route, and a request over the rate limit.
async fn authorize(app: &App, head: &Parts, route: &ApiRoute, now: Timestamp) -> Result<(), Problem> {
    let network = ClientNetwork::of(&head.headers);
    if route.access == Access::Service {
        app.limits.check_barred(network, now)?;
    }
    let access = route.access.check(&head.method, &head.uri, &head.headers, app.config.service_key.as_deref());
    // Only requests with a key count as guesses.
    if matches!(access, Err(Problem::WrongServiceKey)) && head.headers.contains_key(header::AUTHORIZATION) {
        app.limits.check_guess(network, now).await?;
    }
    access?;
    let is_counted = head.extensions.get::<FromEdge>().is_some();
    if route.access == Access::Visitor && !head.method.is_safe() && !is_counted {
        app.limits.writes.check(route.path, network).await?;
    }
    Ok(())
}

/// Reads the body up to [`BODY_LIMIT`], within `ORIGIN_TIMEOUT`: a request in progress takes memory. Refuses a larger
/// `Content-Length` without reading.
async fn collect(app: &App, headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    let too_large = Problem::BodyTooLarge { limit: BODY_LIMIT };
    if content_length::<u64>(headers).is_some_and(|length| length > BODY_LIMIT as u64) {
        return Err(too_large);
    }
    // A timer starts only for a body that is not there yet.
    let patience = async { app.clock.sleep(app.config.origin.timeout).await };
    match body.collect_within(BODY_LIMIT, std::pin::pin!(patience)).await {
        Ok(Collected::Whole(body)) => Ok(body),
        Ok(Collected::TooLarge(_)) => Err(too_large),
        Ok(Collected::Slow(_)) => Err(Problem::MalformedJson("it did not arrive in time".to_owned())),
        Err(broken) => Err(Problem::MalformedJson(broken.to_string())),
    }
}
