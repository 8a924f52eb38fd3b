//! Pages: see `models/src/pages.rs`. The requests of two isolates, to Redis and to the origin, are held at a gate, and
//! each action of the model lets one of them go.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use edgefront::{
    App,
    page_cache::{PageKey, SelectingHeaders, look_up, visitor_cookies::VisitorCookies},
    ports::{
        fetch::{Body, Collected, Request},
        time::Clock,
    },
    routes,
};
use edgefront_gateway::{Fault, FaultScope};
use edgefront_models::{
    of_pages,
    pages::{Action, Pages, State},
};
use futures_util::{future::join_all, stream::FuturesUnordered};
use http::{HeaderMap, Method};
use serde_json::json;

use super::{Real, Step, equal, replay, replay_all};
use crate::{
    support::{Reply, Store, TestOrigin, request},
    system::races::{
        gate::{Actor, Gate, advance},
        ready,
    },
};

/// A time step of the model: a copy is confirmed after one, and expires after two.
const STEP: Duration = Duration::from_secs(3);
const URL: &str = "https://shop.example/page";

/// The parts of the protocol that have requests of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Visit(usize),
    Change,
}

struct Isolate {
    app: Rc<App>,
    running: FuturesUnordered<Actor>,
}

struct World {
    origin: TestOrigin,
    content: Arc<AtomicU8>,
    gate: Gate,
    isolates: Vec<Isolate>,
    /// The isolate of each part, and its request that is held.
    parts: BTreeMap<Part, (usize, u64)>,
    /// The visit of this step begins to wait for a render.
    is_waiting: bool,
    /// The visitors' responses, and the end of a purge or an unsafe request.
    answers: Rc<RefCell<Vec<String>>>,
}

impl World {
    fn isolate(store: &Store, gate: &Gate, origin: &TestOrigin, number: usize) -> Isolate {
        let variables = [("ORIGIN_URL", origin.url()), ("TRAFFIC_INTERVAL", "3600".to_owned())];
        let wait = [("PAGE_WAIT_MS", "1".to_owned())];
        let variables: Vec<_> = variables.iter().chain(&wait).map(|(name, value)| (*name, value.as_str())).collect();
        let app = Rc::into_inner(store.app(&variables)).expect("nobody else has it");
        let door = Rc::new(gate.door(number));
        let redis = door.redis(&app.config.redis);
        let app = Rc::new(App { redis: redis.into(), fetch: door.clone(), clock: door, ..app });
        Isolate { app, running: FuturesUnordered::new() }
    }

    /// Lets `isolate` go on, and notes the request that `part` holds then.
    async fn go_on(&mut self, isolate: usize, part: Part) -> Result<(), String> {
        let known: Vec<u64> = self.parts.values().map(|(_, number)| *number).collect();
        let is_pause = |number: &u64| self.gate.label(*number).is_empty();
        loop {
            advance(&mut self.isolates[isolate].running)?;
            // The traffic counters and the account of page sizes are not part of the protocol.
            let is_foreign = |number: &u64| {
                let label = self.gate.label(*number);
                label.contains("traffic") || label.contains("account")
            };
            let foreign = self.gate.held_by(isolate).into_iter().find(is_foreign);
            let due = self.gate.due(isolate).into_iter().find(|number| !known.contains(number));
            let Some(number) = due.or(foreign) else { break };
            self.gate.step(number).await;
        }
        let is_new = |number: &u64| !known.contains(number) && (self.is_waiting || !is_pause(number));
        let new: Vec<u64> = self.gate.held_by(isolate).into_iter().filter(is_new).collect();
        match new[..] {
            [] => drop(self.parts.remove(&part)),
            // Its own pause is the youngest.
            [.., number] if self.is_waiting => drop(self.parts.insert(part, (isolate, number))),
            [number] => drop(self.parts.insert(part, (isolate, number))),
            _ => {
                let labels: Vec<_> = new.iter().map(|number| self.gate.label(*number)).collect();
                return Err(format!("{part:?} holds {labels:?}"));
            }
        }
        Ok(())
    }

    async fn begin(&mut self, isolate: usize, part: Part, request: Request) -> Result<(), String> {
        let (app, answers) = (self.isolates[isolate].app.clone(), self.answers.clone());
        self.isolates[isolate].running.push(Box::pin(async move {
            let answer = routes::handle(&app, request).await;
            let status = answer.response.status();
            let text = match answer.response.into_body().collect(1 << 20).await {
                Ok(Collected::Whole(body)) if status.is_success() => String::from_utf8_lossy(&body).into_owned(),
                _ => status.to_string(),
            };
            answers.borrow_mut().push(text);
            join_all(answer.background).await;
            Ok(())
        }));
        self.go_on(isolate, part).await
    }

    /// Takes the next step of the part's request: it is sent, or its answer is delivered.
    async fn step(&mut self, part: Part) -> Result<(), String> {
        let (isolate, number) = *self.parts.get(&part).ok_or_else(|| format!("{part:?} holds nothing"))?;
        self.gate.step(number).await;
        if self.gate.held_by(isolate).contains(&number) {
            return Ok(());
        }
        self.parts.remove(&part);
        self.go_on(isolate, part).await
    }

    /// Sends the part's request. With `is_reply_lost`, the client repeats it.
    async fn send(&mut self, store: &Store, part: Part, is_reply_lost: bool) -> Result<(), String> {
        if is_reply_lost {
            store.gateway.set_fault_for(Fault::LoseReply, FaultScope::Next(1));
            self.step(part).await?;
            store.gateway.set_fault(None);
            self.step(part).await?;
        }
        self.step(part).await
    }

    /// Sends the part's request, whose reply the model loses later.
    async fn send_in_vain(&mut self, store: &Store, part: Part, is_in_vain: bool) -> Result<(), String> {
        if is_in_vain {
            store.gateway.set_fault_for(Fault::LoseReply, FaultScope::Next(1));
        }
        self.step(part).await?;
        store.gateway.set_fault(None);
        Ok(())
    }

    async fn act(&mut self, store: &Store, step: &Step<'_, Pages>) -> Result<(), String> {
        let ends = |action: &Action, visit| matches!(action, Action::Reply(of) | Action::LoseReply(of) if *of == visit);
        let is_in_vain = |visit: usize| {
            let end = step.rest.iter().find(|action| ends(action, visit));
            matches!(end, Some(Action::LoseReply(_)))
        };
        match *step.action {
            Action::Visit { visit, isolate, is_reply_lost } => {
                let part = Part::Visit(visit);
                self.begin(isolate, part, request(Method::GET, "/page", Body::Empty)).await?;
                if step.after.visits[visit].is_some() {
                    let is_confirming = step.before.served(step.model, *step.action).is_some();
                    if is_confirming {
                        self.send_in_vain(store, part, is_in_vain(visit)).await?;
                    } else {
                        self.send(store, part, is_reply_lost).await?;
                    }
                } else if step.before.isolates[isolate].is_noted && step.model.hit(step.before, isolate).is_none() {
                    // Bypasses the cache: the origin's request and its answer.
                    self.step(part).await?;
                    self.step(part).await?;
                }
            }
            Action::Reply(visit) | Action::Render(visit) => self.step(Part::Visit(visit)).await?,
            Action::LoseReply(visit) => {
                self.step(Part::Visit(visit)).await?;
                // A lookup is repeated once, a store is not.
                while self.parts.contains_key(&Part::Visit(visit)) {
                    store.gateway.set_fault_for(Fault::LoseReply, FaultScope::Next(1));
                    self.step(Part::Visit(visit)).await?;
                    store.gateway.set_fault(None);
                    self.step(Part::Visit(visit)).await?;
                }
            }
            Action::LookAgain(visit) => {
                // The pause ends, and a lookup follows.
                self.step(Part::Visit(visit)).await?;
                if !step.before.asks_no_redis(step.before.isolate_of(visit)) {
                    self.step(Part::Visit(visit)).await?;
                }
            }
            Action::Store(visit) => {
                self.step(Part::Visit(visit)).await?;
                if step.after.visits[visit].is_some() {
                    self.send_in_vain(store, Part::Visit(visit), is_in_vain(visit)).await?;
                }
            }
            Action::Purge(isolate) => {
                self.content.fetch_add(1, Ordering::SeqCst);
                let body = json!({"all": true}).to_string().into();
                self.begin(isolate, Part::Change, request(Method::POST, "/_edge/v1/purge", body)).await?;
            }
            Action::MarkPurge { is_reply_lost } => self.send(store, Part::Change, is_reply_lost).await?,
            Action::Post(isolate) => {
                self.begin(isolate, Part::Change, request(Method::POST, "/page", Body::Empty)).await?;
                self.step(Part::Change).await?;
            }
            Action::AnswerPost | Action::Evict | Action::EndChange => self.step(Part::Change).await?,
            Action::Crash(isolate) => {
                self.gate.forget(isolate);
                self.parts.retain(|_, (of, _)| *of != isolate);
                self.isolates[isolate] = Self::isolate(store, &self.gate, &self.origin, isolate);
            }
            Action::ExpireLease => delete(store, "render:*").await,
            Action::ExpirePage => {
                // A page outlives its own lease.
                if let Some(lease) = ended_lease(store).await {
                    store.raw(&["DEL", &lease]).await;
                }
                delete(store, "cache:*").await;
            }
            Action::Wait => store.clock.advance(STEP),
        }
        Ok(())
    }
}

impl Real<Pages> for World {
    async fn new(store: &Store, _: &Pages) -> Self {
        let (origin, content) = (TestOrigin::start(), Arc::<AtomicU8>::default());
        let (of_origin, clock) = (content.clone(), store.clock.clone());
        origin.answer_with(move |asked| {
            if asked.method == Method::POST {
                of_origin.fetch_add(1, Ordering::SeqCst);
            }
            let now = UNIX_EPOCH + Duration::from_millis(clock.now().as_millis());
            let reply = Reply::html(of_origin.load(Ordering::SeqCst).to_string());
            reply.header("date", httpdate::fmt_http_date(now)).header("cache-control", "public, max-age=3600")
        });
        let gate = Gate::new(&store.clock);
        let isolates = (0..2).map(|number| Self::isolate(store, &gate, &origin, number)).collect();
        let (parts, is_waiting, answers) = Default::default();
        Self { origin, content, gate, isolates, parts, is_waiting, answers }
    }

    async fn act(&mut self, store: &Store, step: &Step<'_, Pages>) -> Result<(), String> {
        self.answers.borrow_mut().clear();
        self.is_waiting = matches!(step.action, Action::Reply(visit) if step.after.is_waiting(*visit));
        World::act(self, store, step).await?;
        let visits = matches!(step.action, Action::Visit { .. } | Action::Reply(_) | Action::Store(_));
        let expected = step.before.served(step.model, *step.action).map(|content| content.to_string());
        let answers = self.answers.borrow().clone();
        if visits { equal("served", &answers, &expected.into_iter().collect()) } else { Ok(()) }
    }

    async fn compare(&self, store: &Store, model: &Pages, state: &State) -> Result<(), String> {
        let app = &self.isolates[0].app;
        let key = PageKey::of_url(URL, &app.config.page.urls).expect("a page");
        let selecting = SelectingHeaders::of(&HeaderMap::new(), &app.config.page.headers, &VisitorCookies::default());
        let found = look_up(&store.aside, &key, &selecting, None, store.clock.now()).await;
        let entry = found.map_err(|error| error.to_string())?.page;
        let content = |body: &[u8]| String::from_utf8_lossy(body).parse::<u8>().ok();
        let real = entry.and_then(|page| content(&page.body.read()));
        equal("page in Redis", &real, &model.valid_page(state).map(|page| page.content))?;
        let leases = store.raw(&["KEYS", "render:*"]).await.as_array().map_or(0, Vec::len);
        let leases = leases - usize::from(ended_lease(store).await.is_some());
        equal("leases", &leases, &usize::from(state.lease.is_some()))?;
        for (number, isolate) in self.isolates.iter().enumerate() {
            let copy = isolate.app.pages.fallback(key.hash(), &selecting, store.clock.now());
            let copy = copy.and_then(|page| content(&page.body.read()));
            let expected = state.isolates[number].copy.map(|copy| copy.page.content);
            equal(&format!("copy of isolate {number}"), &copy, &expected)?;
        }
        Ok(())
    }
}

/// The key of a lease that has ended, because the page names it.
async fn ended_lease(store: &Store) -> Option<String> {
    let keys = store.raw(&["KEYS", "render:*"]).await;
    let lease = keys.as_array()?.first()?.as_str()?.to_owned();
    let page = store.raw(&["GET", &lease.replacen("render:", "cache:", 1)]).await;
    let named = page.as_str()?.split(' ').nth(5)?.to_owned();
    (store.raw(&["GET", &lease]).await == named).then_some(lease)
}

async fn delete(store: &Store, pattern: &str) {
    for key in store.raw(&["KEYS", pattern]).await.as_array().into_iter().flatten() {
        store.raw(&["DEL", key.as_str().expect("a key")]).await;
    }
}

/// The store of visit 0 runs between the response to the unsafe request and the eviction.
#[tokio::test]
async fn a_page_from_before_an_unsafe_request_is_not_served_after_its_response() {
    let visit = |visit| Action::Visit { visit, isolate: 0, is_reply_lost: false };
    let (reply, render, store) = (Action::Reply(0), Action::Render(0), Action::Store(0));
    let actions = [visit(0), reply, render, Action::Post(0), Action::AnswerPost, store, reply, visit(0)];
    let database = ready(Store::book().await).await;
    replay::<Pages, World>(&database, &Pages::post(), &actions).await.unwrap_or_else(|wrong| panic!("{wrong}"));
}

#[tokio::test]
async fn the_real_pages_do_what_the_model_does() {
    replay_all::<Pages, World>(of_pages()).await;
}
