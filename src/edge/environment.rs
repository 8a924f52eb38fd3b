//! Variables, secrets and bindings. The runtime offers them when the isolate starts. So they are read once, and a wrong
//! variable is reported before the first request.

use std::rc::Rc;

use js_sys::{JSON, Reflect};
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};

use super::{
    clock::PlatformClock,
    database::D1,
    fetch::{HomeBinding, PlatformFetch},
    html,
    location_cache::CacheApi,
    rate_limit,
};
use crate::{
    App,
    config::{Config, ConfigError, ConfigErrors, variables::HOLES},
    page_cache::LocationPages,
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
/// The name of the service binding to the home tier. A Worker that has it is the edge tier.
const HOME: &str = "HOME";
/// The start of the secrets of Redis, and the value that stands for them in the edge tier.
const REDIS: &str = "UPSTASH_REDIS_REST_";
const NO_REDIS: &str = "http://home.invalid";

/// Builds the app with the platform's parts.
///
/// # Errors
/// [`ConfigErrors`] with every variable that is missing or wrong.
pub fn app() -> Result<Rc<App>, ConfigErrors> {
    ENV.with(|env| {
        let binding = |name: &str| Reflect::get(env, &name.into()).ok().filter(JsValue::is_object);
        let home = binding(HOME);
        // The edge tier has no access to Redis.
        let no_redis = |name: &str| home.as_ref().filter(|_| name.starts_with(REDIS)).map(|_| NO_REDIS.to_owned());
        let config =
            Config::from_lookup(|name| no_redis(name).or_else(|| text(&Reflect::get(env, &name.into()).ok()?)))?;
        if let Err(problem) = html::check(config.page.holes.selectors()) {
            let problem = format!("has a selector that HTMLRewriter does not know: {problem}");
            return Err(ConfigErrors(vec![ConfigError { variable: HOLES.name, problem }]));
        }
        let database = binding(DATABASE).map(|database| Rc::new(D1(database)) as _);
        let app = App::new(config, Rc::new(PlatformFetch), Rc::new(PlatformClock), Rc::new(html::Rewriter), database);
        let wait = app.config.page.location;
        let location = LocationPages::new(Some(Rc::new(CacheApi)), wait, app.traffic.clone(), app.fetch.clone());
        Ok(Rc::new(App {
            limits: rate_limit::of(env),
            location,
            home: home.map(|home| Rc::new(HomeBinding(home)) as _),
            ..app
        }))
    })
}

/// The text of a variable. A number is its digits. An object becomes JSON, which the rules of the variable refuse.
fn text(value: &JsValue) -> Option<String> {
    value.as_string().or_else(|| JSON::stringify(value).ok()?.as_string())
}
