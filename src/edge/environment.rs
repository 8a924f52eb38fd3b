//! Variables, secrets and bindings. The runtime offers them when the isolate starts. So they are read once, and a wrong
//! variable is reported before the first request.

use std::rc::Rc;

use js_sys::Reflect;
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};

use super::{clock::PlatformClock, database::D1, fetch::PlatformFetch, html, rate_limit};
use crate::{
    App,
    config::{Config, ConfigError, ConfigErrors, variables::HOLES},
};

#[wasm_bindgen(module = "cloudflare:workers")]
extern "C" {
    /// Variables, secrets and bindings by name.
    #[wasm_bindgen(thread_local_v2, js_name = env)]
    static ENV: JsValue;
}

#[wasm_bindgen(module = "/src/edge/refuse.js")]
extern "C" {
    /// Ends the start of the isolate; the runtime shows `problem`.
    pub fn refuse(problem: &str);
}

/// The D1 database's name in `wrangler.toml`.
const DATABASE: &str = "DB";

/// Builds the app with the platform's parts.
///
/// # Errors
/// [`ConfigErrors`] with every variable that is missing or wrong.
pub fn app() -> Result<Rc<App>, ConfigErrors> {
    ENV.with(|env| {
        let config = Config::from_lookup(|name| Reflect::get(env, &name.into()).ok()?.as_string())?;
        if let Err(problem) = html::check(config.page.holes.selectors()) {
            let problem = format!("has a selector that HTMLRewriter does not know: {problem}");
            return Err(ConfigErrors(vec![ConfigError { variable: HOLES.name, problem }]));
        }
        let database = Reflect::get(env, &DATABASE.into()).ok().filter(JsValue::is_object);
        let database = database.map(|database| Rc::new(D1(database)) as _);
        let app = App::new(config, Rc::new(PlatformFetch), Rc::new(PlatformClock), Rc::new(html::Rewriter), database);
        Ok(Rc::new(App { limits: rate_limit::of(env), ..app }))
    })
}
