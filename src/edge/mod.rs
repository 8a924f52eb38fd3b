//! The Worker's events. Nothing else of edgefront names the platform, and nothing here knows a shop: each file turns one
//! thing of the platform into what the rest is written against.
//!
//! - [`environment`]: variables, secrets and bindings; read before the first request.
//! - [`request`], [`response`]: an event's request and its answer.
//! - [`headers`], [`body`]: what both have.
//! - [`fetch`]: requests of ours.
//! - [`clock`], [`console`], [`database`]: time, the log, D1.

mod body;
mod clock;
mod console;
mod database;
mod environment;
mod fetch;
mod headers;
mod request;
mod response;

use std::{cell::OnceCell, rc::Rc};

use worker::{Context, Env, ScheduleContext, ScheduledEvent, event, web_sys};

use crate::{app::App, maintenance, routes};

thread_local! {
    /// The one app of this isolate. It survives requests; what it holds must not belong to one.
    static APP: OnceCell<Rc<App>> = const { OnceCell::new() };
}

/// Runs when the isolate starts, before any request. A variable that is missing or wrong ends it here, with its name: then
/// `wrangler dev` and `wrangler deploy` fail, and no visitor ever meets a half-configured shop.
#[event(start)]
fn start() {
    console::install();
    match environment::app() {
        Ok(app) => APP.with(|cell| drop(cell.set(app))),
        Err(errors) => environment::refuse(&errors.to_string()),
    }
}

/// The isolate's app; None can not be, since an isolate without one did not start.
fn app() -> Option<Rc<App>> {
    APP.with(|cell| cell.get().cloned())
}

#[event(fetch)]
async fn fetch(request: web_sys::Request, _env: Env, context: Context) -> worker::Result<web_sys::Response> {
    let app = app().ok_or("not started")?;
    let Some(request) = request::read(&request) else { return response::bad_request() };
    let answer = routes::handle(&app, request).await;
    for work in answer.later {
        context.wait_until(work);
    }
    response::write(answer.response)
}

#[event(scheduled)]
async fn scheduled(event: ScheduledEvent, _env: Env, _context: ScheduleContext) {
    if let Some(app) = app() {
        maintenance::run_cron(&app, &event.cron(), app.clock.now()).await;
    }
}
