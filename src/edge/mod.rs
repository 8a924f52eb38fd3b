//! The Worker's events. Nothing else of edgefront names the platform, and nothing here knows a shop: each file turns one
//! thing of the platform into what the rest is written against.
//!
//! - [`environment`]: variables, secrets and bindings; read before the first request.
//! - [`request`], [`response`]: an event's request and its answer.
//! - [`headers`], [`body`]: what both have.
//! - [`fetch`]: requests of ours.
//! - [`glue`]: the few calls that cross the border; `entry.js` is where an event comes in.
//! - [`clock`], [`console`], [`database`], [`limits`]: time, the log, D1, rate limits.

mod body;
mod clock;
mod console;
mod database;
mod environment;
mod fetch;
mod glue;
mod headers;
mod limits;
mod request;
mod response;

use std::{
    cell::OnceCell,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use futures_util::future::LocalBoxFuture;
use http::StatusCode;
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;
use worker::{console_error, event};

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

/// A request's answer, or the promise of one. What needs nobody else's word, as a page that this isolate holds, is answered at once:
/// a promise costs as much as the rest of such an answer.
#[wasm_bindgen]
pub fn fetch(request: glue::Message, context: glue::Context) -> JsValue {
    let request = request::read(request);
    let mut answer: LocalBoxFuture<'static, Result<JsValue, JsValue>> = Box::pin(async move {
        let (Some(app), Some(request)) = (app(), request) else { return response::bare(StatusCode::BAD_REQUEST) };
        let answer = routes::handle(&app, request).await;
        for work in answer.later {
            context.wait_until(&future_to_promise(async move {
                work.await;
                Ok(JsValue::UNDEFINED)
            }));
        }
        response::write(answer.response).or_else(|refused| {
            console_error!("an answer was refused: {refused:?}");
            response::bare(StatusCode::INTERNAL_SERVER_ERROR)
        })
    });
    match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        // Its error can not be: a bare answer is never refused.
        Poll::Ready(answer) => answer.unwrap_or_else(|error| error),
        Poll::Pending => future_to_promise(answer).into(),
    }
}

/// A cron trigger's run, to its end.
#[wasm_bindgen]
pub async fn scheduled(trigger: glue::Trigger) {
    if let Some(app) = app() {
        maintenance::run_cron(&app, &trigger.cron(), app.clock.now()).await;
    }
}
