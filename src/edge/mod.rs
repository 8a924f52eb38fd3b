//! The Worker's events. Only this module names the platform, and it knows nothing about shops: each file implements a
//! port or converts a message.
//!
//! - [`environment`]: variables, secrets and bindings; read before the first request.
//! - [`request`], [`response`]: convert an event's request and its response.
//! - [`headers`], [`body`]: convert the parts of both.
//! - [`fetch`]: requests to the origin and to Redis; [`exchange`]: the responses of Redis.
//! - [`glue`]: the calls from wasm to JavaScript; `entry.js` receives the events.
//! - [`task`]: futures in wasm and promises in JavaScript; [`step_time`]: the time of a step.
//! - [`clock`], [`console`], [`database`], [`html`], [`location_cache`], [`rate_limit`]: time, the log, D1,
//!   `HTMLRewriter`, the Cache API, rate limits.

mod body;
mod clock;
mod console;
mod database;
mod environment;
mod exchange;
mod fetch;
mod glue;
mod headers;
mod html;
mod location_cache;
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
    /// The app of this isolate. It outlives requests, so it must not hold objects of a request.
    static APP: OnceCell<Rc<App>> = const { OnceCell::new() };
}

/// Runs when the isolate starts, before any request. A missing or wrong variable ends the start with a message that
/// names it. Then `wrangler dev` and `wrangler deploy` fail, so no visitor reaches a half-configured shop.
#[event(start)]
fn start() {
    console::install();
    task::listen();
    exchange::listen();
    match environment::app() {
        Ok(app) => APP.with(|cell| drop(cell.set(app))),
        Err(errors) => environment::refuse(&errors.to_string()),
    }
}

/// The isolate's app. Never None, because an isolate without an app does not start.
fn app() -> Option<Rc<App>> {
    APP.with(|cell| cell.get().cloned())
}

/// Answers a request with a response, or with a promise of one. A page that this isolate holds needs no promise: the
/// promise would cost as much as the rest of the answer.
#[wasm_bindgen]
pub fn fetch(request: glue::Message, context: glue::Context) -> JsValue {
    answer(request, context, false)
}

/// Answers a request of the edge tier. No visitor can reach this entry point.
#[wasm_bindgen]
pub fn home(request: glue::Message, context: glue::Context) -> JsValue {
    answer(request, context, true)
}

fn answer(request: glue::Message, context: glue::Context, is_from_edge: bool) -> JsValue {
    let request = request::read(request);
    let run = task::run(async move {
        let (Some(app), Some(request)) = (app(), request) else { return response::bare(StatusCode::BAD_REQUEST) };
        let Answer { response, background } = if is_from_edge {
            Box::pin(routes::handle_from_edge(&app, request)).await
        } else {
            routes::handle(&app, request).await
        };
        let response = response::write(response).unwrap_or_else(|refused| {
            console_error!("an answer was refused: {refused:?}");
            response::bare(StatusCode::INTERNAL_SERVER_ERROR)
        });
        for work in background {
            // Starts after the response is sent.
            let work = task::soon().then(|()| work).map(|()| JsValue::UNDEFINED);
            if let Run::Promised(end) = task::run(work) {
                context.wait_until(&end);
            }
        }
        response
    });
    // The task has taken the context: a copy would cost each hot page a call into JavaScript.
    if let Run::Promised(response) = &run {
        glue::outlive(response);
    }
    run.into()
}

/// Runs a cron trigger to its end.
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
