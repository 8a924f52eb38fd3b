//! Pages that are visited in two isolates while the shop changes and purges them. After a purge, the isolate that did it
//! never serves an older response. The other isolate may serve one until its own copies have expired.

use std::{
    cell::RefCell,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use edgefront::{
    App,
    ports::{
        fetch::{Body, Collected, Request},
        time::{Clock, Timestamp},
    },
    routes,
};
use futures_util::future::join_all;
use http::Method;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    Actors, Place, explore,
    gate::{Actor, Gate},
};
use crate::support::{Reply, TestClock, request};

const ISOLATES: usize = 2;
const PAGES: usize = 2;
/// `PAGE_MEMORY`, by default.
const MEMORY: Duration = Duration::from_secs(5);

/// An action in an isolate. The first number is that of the isolate.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Action {
    Visit(usize, usize),
    PurgeAll(usize),
    PurgeUrl(usize, usize),
    /// All pages have it.
    PurgeTag(usize),
    /// An unsafe request changes the page.
    Post(usize, usize),
    Wait(u64),
}

type Case = Actors<Action>;

fn case() -> impl Strategy<Value = Case> {
    use Action::*;
    let (isolate, page) = (|| 0..ISOLATES, || prop_oneof![3 => Just(0), 1 => Just(1)]);
    let action = prop_oneof![
        10 => (isolate(), page()).prop_map(|(isolate, page)| Visit(isolate, page)),
        1 => isolate().prop_map(PurgeAll),
        2 => (isolate(), page()).prop_map(|(isolate, page)| PurgeUrl(isolate, page)),
        1 => isolate().prop_map(PurgeTag),
        3 => (isolate(), page()).prop_map(|(isolate, page)| Post(isolate, page)),
        2 => prop_oneof![Just(1), Just(3), Just(6), Just(25)].prop_map(Wait),
    ];
    let actors = prop::collection::vec(prop::collection::vec(action, 1..6), 2..=4);
    (actors, prop::collection::vec(0..12_u8, 0..100)).prop_map(|(actors, schedule)| Case { actors, schedule })
}

/// A limit: from then on, no older response is served.
#[derive(Clone, Copy)]
struct Void {
    page: usize,
    /// The origin's responses are numbered.
    below: u64,
    isolate: usize,
    /// When Redis knows it; None if it need not.
    known: Option<Timestamp>,
}

struct World {
    isolates: Vec<Rc<App>>,
    gate: Gate,
    clock: TestClock,
    /// The number of the origin's next response.
    next: Arc<AtomicU64>,
    voids: RefCell<Vec<Void>>,
}

impl World {
    async fn act(self: &Rc<Self>, action: Action) -> Result<(), String> {
        let below = self.next.load(Ordering::SeqCst);
        let void = |page, isolate, known| Void { page, below, isolate, known };
        match action {
            Action::Visit(isolate, page) => {
                let least = self.least(isolate, page);
                let body = self.ask(isolate, request(Method::GET, &format!("/page-{page}"), Body::Empty), None).await?;
                let number: u64 = body.parse().map_err(|_| format!("{action:?} was answered {body:?}"))?;
                if number < least {
                    return Err(format!("{action:?} was answered {number}, when all below {least} was void"));
                }
            }
            Action::PurgeAll(isolate) => self.purge(isolate, &json!({"all": true}), 0..PAGES, void).await?,
            Action::PurgeTag(isolate) => self.purge(isolate, &json!({"tags": ["page"]}), 0..PAGES, void).await?,
            Action::PurgeUrl(isolate, page) => {
                self.purge(isolate, &json!({"urls": [format!("/page-{page}")]}), page..page + 1, void).await?;
            }
            Action::Post(isolate, page) => {
                let known = void(page, isolate, None);
                self.ask(isolate, request(Method::POST, &format!("/page-{page}"), Body::Empty), Some(known)).await?;
                self.voids.borrow_mut().push(known);
            }
            Action::Wait(seconds) => self.clock.advance(Duration::from_secs(seconds)),
        }
        Ok(())
    }

    async fn purge(
        self: &Rc<Self>,
        isolate: usize,
        what: &serde_json::Value,
        pages: std::ops::Range<usize>,
        void: impl Fn(usize, usize, Option<Timestamp>) -> Void,
    ) -> Result<(), String> {
        self.ask(isolate, request(Method::POST, "/_edge/v1/purge", what.to_string().into()), None).await?;
        self.voids.borrow_mut().extend(pages.map(|page| void(page, isolate, Some(self.clock.now()))));
        Ok(())
    }

    /// The lowest number of a response that an isolate may serve now.
    fn least(&self, isolate: usize, page: usize) -> u64 {
        let holds = |void: &&Void| {
            let is_known = void.known.is_some_and(|known| self.clock.now() >= known + MEMORY);
            void.page == page && (void.isolate == isolate || is_known)
        };
        self.voids.borrow().iter().filter(holds).map(|void| void.below).max().unwrap_or_default()
    }

    /// An isolate's response. After its background work, Redis knows of `void`.
    async fn ask(self: &Rc<Self>, isolate: usize, request: Request, void: Option<Void>) -> Result<String, String> {
        let uri = request.uri().clone();
        let answer = routes::handle(&self.isolates[isolate], request).await;
        let world = self.clone();
        self.gate.spawn(Box::pin(async move {
            join_all(answer.background).await;
            let known = void.map(|void| Void { known: Some(world.clock.now()), ..void });
            world.voids.borrow_mut().extend(known);
            Ok(())
        }));
        let status = answer.response.status();
        match answer.response.into_body().collect(1 << 20).await {
            Ok(Collected::Whole(body)) if status.is_success() => Ok(String::from_utf8_lossy(&body).into_owned()),
            _ => Err(format!("{uri} was answered {status}")),
        }
    }
}

async fn play(place: &Place, case: &Case) -> Result<(), String> {
    let Place { store, origin } = place;
    store.raw(&["FLUSHDB"]).await;
    let (gate, next) = (Gate::new(&store.clock), Arc::<AtomicU64>::default());
    let (of_server, time) = (next.clone(), store.clock.clone());
    origin.answer_with(move |_| {
        let number = of_server.fetch_add(1, Ordering::SeqCst);
        let now = UNIX_EPOCH + Duration::from_millis(time.now().as_millis());
        let reply = Reply::html(number.to_string()).header("edge-tags", "page");
        reply
            .header("date", httpdate::fmt_http_date(now))
            .header("cache-control", "public, max-age=20, stale-while-revalidate=20")
    });
    let isolate = |door: usize| {
        let app = store.app(&[("ORIGIN_URL", &origin.url()), ("TRAFFIC_INTERVAL", "3600")]);
        let app = Rc::into_inner(app).expect("nobody else has it");
        let door = Rc::new(gate.door(door));
        let redis = door.redis(&app.config.redis);
        Rc::new(App { redis: redis.into(), fetch: door.clone(), clock: door, ..app })
    };
    let isolates = (0..ISOLATES).map(isolate).collect();
    let world =
        Rc::new(World { isolates, gate: gate.clone(), clock: store.clock.clone(), next, voids: RefCell::default() });
    let actor = |actions: &Vec<Action>| -> Actor {
        let (world, actions) = (world.clone(), actions.clone());
        Box::pin(async move {
            for action in actions {
                world.act(action).await?;
            }
            Ok(())
        })
    };
    let outcome = gate.play(case.actors.iter().map(actor).collect(), &case.schedule, async |_| Ok(())).await;
    outcome.map_err(|wrong| format!("{wrong}\nwhat was let go:\n{}", gate.trace()))
}

#[test]
fn a_purged_page_never_comes_back() {
    explore(60, &case(), Place::new(), &play);
}
