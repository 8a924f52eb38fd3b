//! Rows that are scheduled, un-scheduled, read and refreshed by overlapping crons, while the shop changes them and
//! fails. At any time there is no copy without a schedule, no schedule without a period, and no copy that is older than
//! the copy that it replaced. In the end, each row is refreshed within its period again.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use edgefront::{
    App,
    ports::{
        budget::Budget,
        error::Error,
        time::{Clock, Timestamp},
    },
    row_cache,
};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    Actors, Place, explore,
    gate::{Actor, Gate},
    state::all_keys,
};
use crate::support::{Reply, Store, TestClock, row};

const ROWS: [&str; 3] = ["mug", "cup", "pan"];
/// Longer than a lease, and longer than the wait of a row after a failure.
const LEASE: Duration = Duration::from_secs(30);
/// Largest lateness of a refresh.
const TICK: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Action {
    Schedule(usize, u64),
    Unschedule(usize),
    /// The shop's database has another row of that name.
    Put(usize),
    Delete(usize),
    Fail,
    Work,
    Read(usize),
    /// A run of the cron, with this time in seconds.
    Refresh(u64),
    Wait(u64),
}

type Case = Actors<Action>;

fn case() -> impl Strategy<Value = Case> {
    use Action::*;
    let row = || prop_oneof![4 => Just(0), 1 => Just(1), 1 => Just(2)];
    let shop = prop_oneof![
        5 => (row(), prop_oneof![Just(5), Just(20)]).prop_map(|(row, every)| Schedule(row, every)),
        2 => row().prop_map(Unschedule),
        2 => row().prop_map(Put),
        1 => row().prop_map(Delete),
        1 => Just(Fail),
        1 => Just(Work),
        3 => row().prop_map(Read),
        2 => prop_oneof![Just(1), Just(5), Just(31)].prop_map(Wait),
    ];
    let cron = prop_oneof![3 => Just(Refresh(0)), 1 => Just(Refresh(12))];
    let shops = prop::collection::vec(prop::collection::vec(shop, 1..6), 1..=3);
    let crons = prop::collection::vec(prop::collection::vec(cron, 1..3), 2..=4);
    (shops, crons, prop::collection::vec(0..12_u8, 0..100))
        .prop_map(|(shops, crons, schedule)| Case { actors: shops.into_iter().chain(crons).collect(), schedule })
}

/// The shop's database.
#[derive(Default)]
struct Table {
    /// Row → the number of its changes.
    rows: BTreeMap<&'static str, u64>,
    /// Number of times that the source was asked.
    read: u64,
    fails: bool,
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

struct World {
    app: App,
    clock: TestClock,
    table: Arc<Mutex<Table>>,
}

impl World {
    async fn act(&self, action: Action) -> Result<(), Error> {
        let (redis, clock) = (&self.app.redis, &self.app.clock);
        let source = self.app.row_source().expect("ROWS_URL is set");
        match action {
            Action::Schedule(number, every) => {
                // A test of whole seconds.
                #[expect(clippy::cast_precision_loss, reason = "small")]
                row_cache::schedule(redis, &row(ROWS[number]), every as f64, clock.now()).await?;
            }
            Action::Unschedule(number) => row_cache::unschedule(redis, &row(ROWS[number])).await?,
            Action::Put(number) => *lock(&self.table).rows.entry(ROWS[number]).or_default() += 1,
            Action::Delete(number) => drop(lock(&self.table).rows.remove(ROWS[number])),
            Action::Fail => lock(&self.table).fails = true,
            Action::Work => lock(&self.table).fails = false,
            Action::Read(number) => {
                match row_cache::read(redis, Some(&source), &row(ROWS[number]), clock.now()).await {
                    Ok(_) | Err(Error::NotYet) => {}
                    Err(error) => return Err(error),
                }
            }
            Action::Refresh(seconds) => {
                let time = Duration::from_secs(seconds);
                let budget = Budget::new(clock.clone(), time + Duration::from_mins(1), 1_000);
                row_cache::refresh_due(redis, &source, &budget, clock.now() + time).await?;
            }
            Action::Wait(seconds) => self.clock.advance(Duration::from_secs(seconds)),
        }
        Ok(())
    }
}

/// The rows as Redis has them.
#[derive(Debug, Default)]
struct Rows {
    schedule: BTreeMap<String, Timestamp>,
    delay: BTreeMap<String, f64>,
    copies: BTreeMap<String, Value>,
}

impl Rows {
    async fn read(store: &Store) -> Self {
        let mut rows = Self::default();
        for (key, words) in all_keys(&store.aside).await {
            let number = |pair: &[String]| pair[1].parse::<f64>().expect("a score");
            match key.split_once(':') {
                Some(("schedule", _)) => rows
                    .schedule
                    .extend(words.chunks(2).map(|pair| (pair[0].clone(), Timestamp::from_score(number(pair))))),
                Some(("delay", _)) => rows.delay.extend(words.chunks(2).map(|pair| (pair[0].clone(), number(pair)))),
                Some(("inv", row)) => {
                    rows.copies.insert(row.to_owned(), serde_json::from_str(&words[0]).expect("a row"));
                }
                _ => {}
            }
        }
        rows
    }

    fn hold(&self) -> Result<(), String> {
        let is_scheduled = self.copies.keys().all(|row| self.schedule.contains_key(row));
        let holds = self.schedule.keys().eq(self.delay.keys()) && is_scheduled;
        if holds { Ok(()) } else { Err(format!("a copy without a schedule, or a half of one: {self:?}")) }
    }

    /// Asserts that no copy is older than the copy that it replaces.
    fn follow(&self, before: &Self) -> Result<(), String> {
        let read = |copy: &Value| copy["read"].as_u64();
        let is_newer = |(row, copy)| before.copies.get(row).is_none_or(|old| read(old) <= read(copy));
        if self.copies.iter().all(is_newer) { Ok(()) } else { Err(format!("{before:?}\ngoes back to {self:?}")) }
    }

    /// Asserts that each copy was read within its period and one tick, and equals the table's row.
    fn are_fresh(&self, table: &Table, now: Timestamp) -> Result<(), String> {
        let scheduled: BTreeSet<_> = self.schedule.keys().map(String::as_str).collect();
        let there = scheduled.iter().all(|row| self.copies.contains_key(*row) && table.rows.contains_key(row));
        let is_old = |(row, copy): (&String, &Value)| {
            let at = Timestamp::from_millis(copy["at"].as_u64().unwrap_or_default());
            now.since(at) > Duration::from_secs_f64(self.delay[row]) + TICK
        };
        let old: Vec<_> = self.copies.iter().filter(|copy| is_old(*copy)).collect();
        if there && old.is_empty() { Ok(()) } else { Err(format!("at {now}: old {old:?} of {self:?}")) }
    }
}

async fn play(place: &Place, case: &Case) -> Result<(), String> {
    let Place { store, origin } = place;
    store.raw(&["FLUSHDB"]).await;
    let (clock, gate) = (store.clock.clone(), Gate::new(&store.clock));
    let table = Arc::new(Mutex::new(Table { rows: ROWS.map(|row| (row, 0)).into(), ..Table::default() }));
    let (of_server, time) = (table.clone(), clock.clone());
    origin.answer_with(move |asked| {
        let (mut table, ids) = (lock(&of_server), asked.path.strip_prefix("/rows?ids=").expect("the rows' address"));
        table.read += 1;
        let row = |id: &str| {
            let version = *table.rows.get(id)?;
            Some(json!({"id": id, "version": version, "read": table.read, "at": time.now().as_millis()}))
        };
        let reply = Reply::html(json!(ids.split(',').filter_map(row).collect::<Vec<_>>()).to_string());
        if table.fails { Reply::status(502) } else { reply }
    });
    let world = |door: usize| {
        let app = store.app(&[("ROWS_URL", &format!("{}/rows", origin.url()))]);
        let app = Rc::into_inner(app).expect("nobody else has it");
        let door = Rc::new(gate.door(door));
        let redis = door.redis(&app.config.redis);
        World {
            app: App { redis: redis.into(), fetch: door.clone(), clock: door, ..app },
            clock: clock.clone(),
            table: table.clone(),
        }
    };
    let actor = |(door, actions): (usize, &[Action])| -> Actor {
        let (world, actions) = (world(door), actions.to_vec());
        Box::pin(async move {
            for action in actions {
                world.act(action).await.map_err(|error| format!("{action:?}: {error}"))?;
            }
            Ok(())
        })
    };
    let outcome = async {
        let all = (0..ROWS.len()).map(|row| Action::Schedule(row, 5)).collect::<Vec<_>>();
        gate.play(vec![actor((0, &all))], &[], async |_| Ok(())).await?;
        let actors = (0..).zip(&case.actors).map(|(door, actions)| actor((door, actions))).collect();
        let mut before = Rows::default();
        let executed = async |_| {
            let rows = Rows::read(store).await;
            rows.hold()?;
            rows.follow(&before)?;
            before = rows;
            Ok(())
        };
        gate.play(actors, &case.schedule, executed).await?;

        // Now the shop works, and so does the cron, twice at once.
        lock(&table).fails = false;
        clock.advance(LEASE);
        let begin = clock.now();
        let crons = (0..2).map(|door| actor((door, &[Action::Refresh(25)]))).collect();
        let executed = async |_| {
            let rows = Rows::read(store).await;
            rows.hold()?;
            // Overdue rows catch up in the first round.
            let is_settled = clock.now() > begin + TICK;
            if is_settled { rows.are_fresh(&lock(&table), clock.now()) } else { Ok(()) }
        };
        gate.play(crons, &[], executed).await?;
        Ok(())
    };
    let outcome: Result<(), String> = outcome.await;
    outcome.map_err(|wrong| format!("{wrong}\nwhat was let go:\n{}", gate.trace()))
}

#[test]
fn rows_stay_scheduled_and_fresh_under_overlapping_refreshes() {
    explore(25, &case(), Place::new(), &play);
}
