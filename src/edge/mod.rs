//! The Worker's events. Only this module names the platform, and it knows nothing about shops: each file implements a port or
//! converts a message.
//!
//! - [`environment`]: variables, secrets and bindings; read before the first request.
//! - [`request`], [`response`]: an event's request and its answer.
//! - [`headers`], [`body`]: what both have.
//! - [`fetch`]: requests of ours.
//! - [`glue`]: the few calls that cross the border; `entry.js` is where an event comes in.
//! - [`task`]: futures in wasm and promises in JavaScript; [`step_time`]: the time of a step.
//! - [`clock`], [`console`], [`database`], [`rate_limit`]: time, the log, D1, rate limits.

mod body;
mod clock;
mod console;
mod database;
mod environment;
mod fetch;
mod glue;
mod headers;
mod rate_limit;
mod request;
mod response;
mod step_time;
mod task;

use std::{cell::OnceCell, rc::Rc};

use futures_util::FutureExt;
use http::StatusCode;
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};
use worker::{console_error, event};

use self::task::Run;
use crate::{App, jobs, ports::answer::Answer, routes};

thread_local! {
    /// The one app of this isolate. It survives requests; what it holds must not belong to one.
    static APP: OnceCell<Rc<App>> = const { OnceCell::new() };
}

/// Runs when the isolate starts, before any request. A variable that is missing or wrong ends it here, with its name: then
/// `wrangler dev` and `wrangler deploy` fail, and no visitor ever meets a half-configured shop.
#[event(start)]
fn start() {
    console::install();
    task::listen();
    match environment::app() {
        Ok(app) => APP.with(|cell| drop(cell.set(app))),
        Err(errors) => environment::refuse(&errors.to_string()),
    }
}

/// The isolate's app; None cannot be, since an isolate without one did not start.
fn app() -> Option<Rc<App>> {
    APP.with(|cell| cell.get().cloned())
}

/// A request's answer, or the promise of one. What needs nobody else's word, as a page that this isolate holds, is answered at once:
/// a promise costs as much as the rest of such an answer.
#[wasm_bindgen]
pub fn fetch(request: glue::Message, context: glue::Context) -> JsValue {
    let request = request::read(request);
    task::run(async move {
        let (Some(app), Some(request)) = (app(), request) else { return response::bare(StatusCode::BAD_REQUEST) };
        let Answer { response, background } = routes::handle(&app, request).await;
        let response = response::write(response).unwrap_or_else(|refused| {
            console_error!("an answer was refused: {refused:?}");
            response::bare(StatusCode::INTERNAL_SERVER_ERROR)
        });
        for work in background {
            // Not before the answer is on its way.
            let work = task::soon().then(|()| work).map(|()| JsValue::UNDEFINED);
            if let Run::Promised(end) = task::run(work) {
                context.wait_until(&end);
            }
        }
        response
    })
    .into()
}

/// A cron trigger's run, to its end.
#[wasm_bindgen]
pub fn scheduled(trigger: glue::Trigger) -> JsValue {
    task::run(async move {
        if let Some(app) = app() {
            jobs::run_cron(&app, &trigger.cron(), app.clock.now()).await;
        }
        JsValue::UNDEFINED
    })
    .into()
}
