//! Compares the simulation (`simulate/`) with the product: a real server gets the simulated requests. The test moves the
//! clock, so the speed of the machine does not matter.

use std::{
    collections::HashMap,
    time::{Duration, UNIX_EPOCH},
};

use edgefront::{
    App,
    ports::{
        fetch::{Body, Collected},
        time::Clock,
    },
    routes,
    schema::ids::UserId,
};
use edgefront_simulate::{
    catalogue,
    scenario::Scenario,
    shared::START,
    summary::Summary,
    visitor::{self, Action, TraceEntry},
    world::World,
};
use http::{Method, header};

use super::commands::Counted;
use crate::{
    schema::document,
    support::{Reply, Store, TestOrigin, cookie_pair},
};

/// The variables of both. The ranking matters for some items, and nothing depends on the time of the half-life.
const VARIABLES: [(&str, &str); 3] =
    [("PAGE_RANK_LIMIT", "100"), ("RANKING_HALF_LIFE", "100000000"), ("TRAFFIC_INTERVAL", "0")];
/// The allowed difference, relative.
const TOLERANCE: f64 = 0.1;

/// The visitors' requests, sent to an edgefront.
struct Replay {
    app: std::rc::Rc<App>,
    store: Store,
    cookies: HashMap<usize, String>,
    pages: u32,
    hits: u32,
}

impl Replay {
    async fn sign_in(&mut self, trace: &[TraceEntry]) {
        for entry in trace.iter().filter(|entry| entry.is_signed_in) {
            if !self.cookies.contains_key(&entry.visitor) {
                let user = UserId::parse(&format!("user-{}", entry.visitor)).unwrap();
                let now = self.app.clock.now();
                let token = crate::support::log_in(&self.store.redis, None, &user, now, &self.app.config.session).await;
                self.cookies.insert(entry.visitor, self.app.keyring.pair(&token.unwrap()).unwrap());
            }
        }
    }

    async fn send(&mut self, entry: &TraceEntry) {
        let (method, path, body) = match entry.action {
            Action::View(item) => (Method::GET, catalogue::path(item), Body::Empty),
            Action::Add(item) => (Method::PUT, catalogue::cart_path(item), Body::from(r#"{"quantity":1}"#.to_owned())),
            _ => (Method::GET, "/_edge/v1/session".to_owned(), Body::Empty),
        };
        let cookie = self.cookies.get(&entry.visitor).map_or("", String::as_str);
        let request = http::Request::builder()
            .method(method)
            .uri(format!("https://shop.example{path}"))
            .header(header::COOKIE, cookie)
            .header(header::CONTENT_TYPE, "application/json")
            .header("sec-fetch-site", "same-origin")
            .header("cf-connecting-ip", visitor::address(entry.visitor));
        let answer = routes::handle(&self.app, request.body(body).unwrap()).await;
        let (head, body) = answer.response.into_parts();
        assert!(head.status.is_success(), "{entry:?}: {}", head.status);
        if let Some(cookie) = cookie_pair(&head.headers) {
            self.cookies.entry(entry.visitor).or_insert_with(|| cookie.to_owned());
        }
        if matches!(entry.action, Action::View(_)) {
            self.pages += 1;
            let status = head.headers["cache-status"].to_str().unwrap();
            self.hits += u32::from(status.contains("; hit"));
        }
        assert!(matches!(body.collect(1 << 20).await, Ok(Collected::Whole(_))));
        for task in answer.background {
            task.await;
        }
    }
}

#[tokio::test]
async fn the_simulation_counts_what_a_real_server_counts() {
    let scenario = Scenario::local(2.0, Duration::from_mins(6), &VARIABLES);
    let Summary { tally, usage, trace, .. } = World::new(scenario).unwrap().run();
    assert!(trace.len() > 500, "{}", trace.len());

    let (mut counted, store) = Counted::store().await;
    let origin = TestOrigin::start();
    // Without a date by the test's clock, pages would arrive older and older.
    let clock = store.clock.clone();
    origin.answer_with(move |asked| {
        let date = UNIX_EPOCH + Duration::from_millis(clock.now().as_millis());
        Reply::html(format!("<h1>{}</h1>", asked.path)).header("date", httpdate::fmt_http_date(date))
    });
    let url = origin.url();
    let variables: Vec<_> = VARIABLES.into_iter().chain([("ORIGIN_URL", url.as_str())]).collect();
    let app = store.app(&variables);
    let mut replay = Replay { app, store, cookies: HashMap::new(), pages: 0, hits: 0 };
    replay.sign_in(&trace).await;
    counted.begin(&replay.store).await;
    let begin = replay.app.clock.now();
    for entry in &trace {
        let target = begin + entry.at.since(START);
        replay.store.clock.advance(target.since(replay.app.clock.now()));
        replay.send(entry).await;
    }
    let commands = counted.assert_at_most(&replay.store, "the replayed visits", 1, f64::INFINITY).await;
    let hits = f64::from(replay.hits) / f64::from(replay.pages);
    let figures = [("commands", usage.commands, commands), ("hit ratio, %", tally.hit_ratio() * 100.0, hits * 100.0)];
    let rows = figures.map(|(what, simulated, real)| {
        println!("{what}: {simulated:.3} simulated, {real:.3} real");
        assert!((simulated / real - 1.0).abs() <= TOLERANCE, "{what}: {simulated} simulated, {real} real");
        let digits = usize::from(real < 100.0);
        [what.to_owned(), format!("{simulated:.digits$}"), format!("{real:.digits$}")]
    });
    // Chance decides which views trim a list.
    document::hold_near("docs/simulation.md", "validation", &document::table(["", "simulated", "real"], rows), 0.01);
}

#[test]
fn a_run_repeats_with_its_seed() {
    let run = |seed| {
        let scenario = Scenario { seed, ..Scenario::local(5.0, Duration::from_mins(1), &VARIABLES) };
        let summary = World::new(scenario).unwrap().run();
        (summary.trace, summary.usage.commands, summary.tally.hit_ratio())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
}
