//! Who was here and what was viewed, written behind the answers.
//!
//! All that concurrent requests leave goes into one pipeline: the first of them sends it, and whatever comes while it is on its way waits
//! for the next, which the same request sends. So a quiet shop writes at once, and a busy one ten views with one request.
//!
//! An isolate that is evicted loses what waits at that moment: what came while one pipeline was on its way, some milliseconds of views.
//! A pipeline that fails is not repeated, since nobody knows whether it was executed: its views are lost, and so is nothing else.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    hash::BuildHasher,
    rc::Rc,
    time::Duration,
};

use crate::{
    app::{App, Later},
    error::Error,
    ids::{ItemId, Token},
    ranking,
    session::{self, Noted, Sight, TOUCH_EVERY},
    time::Timestamp,
    upstash::{FromReply, Redis},
};

/// How we know of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum View {
    /// We served the item's page, with status 200: it exists.
    Served,
    /// Somebody says that another cache served it. It counts only if the item ranks already: made-up names can not push real items out
    /// of the ranking.
    Reported,
}

/// What a pipeline may take; nobody waits for it.
const DEADLINE: Duration = Duration::from_secs(5);
/// How long one request goes on sending what others leave; a Worker has 30 s after its answer.
const LONGEST_TURN: Duration = Duration::from_secs(15);
/// Sights in one call of the script, and counts in one pipeline.
const MOST_AT_ONCE: usize = 200;
/// Sights, and counts, that wait at the most: more can only be where Redis is silent.
const MOST_WAITING: usize = 10_000;
/// Visits that are remembered, at 24 bytes each, in each of two generations: the last [`TOUCH_EVERY`], or as many of them as fit.
const MOST_RECENT: usize = 20_000;

/// What waits to be written, of one isolate.
#[derive(Default)]
pub struct Seen {
    sights: RefCell<Vec<Waiting>>,
    counts: RefCell<HashMap<(ItemId, View), u32>>,
    /// Reported views of nobody's, each with its idempotency key.
    once: RefCell<Vec<(ItemId, String)>>,
    recent: RefCell<Recent>,
    /// Until when the request that sends is trusted to be alive.
    turn: Cell<Option<Timestamp>>,
}

impl Seen {
    /// Notes a visit, and the view of `item`. What the same session did a moment ago changes nothing and is left out; a view of nobody's
    /// always counts.
    pub fn note(&self, token: Option<&Token>, item: Option<&ItemId>, now: Timestamp) {
        let Some(token) = token else { return item.into_iter().for_each(|item| self.count(item, View::Served, 1)) };
        if self.recent.borrow_mut().is_repeated(token, item, now) {
            return;
        }
        self.push(Sight { token: token.clone(), item: item.cloned(), at: now }, View::Served, None);
    }

    /// Notes a view that somebody reports; `key` makes it count once, where no session does.
    pub fn note_reported(&self, token: Option<&Token>, item: &ItemId, key: Option<&str>, now: Timestamp) {
        let key = key.map(str::to_owned);
        match token {
            Some(token) => {
                self.push(Sight { token: token.clone(), item: Some(item.clone()), at: now }, View::Reported, key);
            }
            None => self.count_reported(item, key),
        }
    }

    /// Whether something waits, and no other request is at it.
    fn take_turn(&self, now: Timestamp) -> bool {
        let is_free = !self.is_empty() && self.turn.get().is_none_or(|until| until <= now);
        if is_free {
            self.turn.set(Some(now + DEADLINE * 2));
        }
        is_free
    }

    fn push(&self, sight: Sight, view: View, key: Option<String>) {
        let mut sights = self.sights.borrow_mut();
        if sights.len() < MOST_WAITING {
            sights.push((sight, view, key));
        }
    }

    fn count(&self, item: &ItemId, view: View, number: u32) {
        let mut counts = self.counts.borrow_mut();
        if counts.len() < MOST_WAITING {
            *counts.entry((item.clone(), view)).or_default() += number;
        }
    }

    fn count_reported(&self, item: &ItemId, key: Option<String>) {
        match key {
            Some(key) if self.once.borrow().len() < MOST_WAITING => self.once.borrow_mut().push((item.clone(), key)),
            Some(_) => {}
            None => self.count(item, View::Reported, 1),
        }
    }

    /// Redis knows of the session.
    fn noted(&self, (sight, view, key): &Waiting, noted: Noted) {
        let Some(item) = &sight.item else { return };
        match (noted, view) {
            (Noted::Seen, _) => {}
            (Noted::Counts, _) | (Noted::Ended, View::Served) => self.count(item, *view, 1),
            // A session that has ended is a visitor without one.
            (Noted::Ended, View::Reported) => self.count_reported(item, key.clone()),
        }
    }

    fn is_empty(&self) -> bool {
        self.sights.borrow().is_empty() && self.counts.borrow().is_empty() && self.once.borrow().is_empty()
    }

    /// Takes what one pipeline carries.
    fn take(&self) -> Batch {
        let mut sights = self.sights.borrow_mut();
        let first = sights.len().min(MOST_AT_ONCE);
        let sights = sights.drain(..first).collect();
        let mut counts = self.counts.borrow_mut();
        let some: Vec<_> = counts.keys().take(MOST_AT_ONCE).cloned().collect();
        let counts = some.into_iter().filter_map(|what| counts.remove_entry(&what)).collect();
        let mut once = self.once.borrow_mut();
        let first = once.len().min(MOST_AT_ONCE);
        Batch { sights, counts, once: once.drain(..first).collect() }
    }
}

/// Who was here a moment ago and what they looked at, by a hash of both: two that share one leave out a touch, which nobody sees.
#[derive(Default)]
struct Recent {
    young: HashMap<u64, Timestamp>,
    old: HashMap<u64, Timestamp>,
}

impl Recent {
    /// Whether the same was noted within [`TOUCH_EVERY`]; if not, it is from now on.
    fn is_repeated(&mut self, token: &Token, item: Option<&ItemId>, now: Timestamp) -> bool {
        let is_recent = |last: &Timestamp| now.since(*last) < TOUCH_EVERY;
        let visit = self.young.hasher().hash_one((token, item));
        if [&self.young, &self.old].iter().any(|visits| visits.get(&visit).is_some_and(is_recent)) {
            return true;
        }
        if self.young.len() >= MOST_RECENT {
            let hasher = self.young.hasher().clone();
            self.old = std::mem::replace(&mut self.young, HashMap::with_hasher(hasher));
        }
        // Whoever looks at an item is here, too.
        let visits = [Some(visit), item.map(|_| self.young.hasher().hash_one((token, None::<&ItemId>)))];
        self.young.extend(visits.into_iter().flatten().map(|visit| (visit, now)));
        false
    }
}

/// A visit, how we know of it, and the idempotency key of who reported it.
type Waiting = (Sight, View, Option<String>);

struct Batch {
    sights: Vec<Waiting>,
    counts: Vec<((ItemId, View), u32)>,
    once: Vec<(ItemId, String)>,
}

/// The work that writes what waits; None if nothing does, or another request is at it.
#[must_use]
pub fn flush(app: &Rc<App>, now: Timestamp) -> Option<Later> {
    app.seen.take_turn(now).then(|| -> Later { Box::pin(write(app.clone())) })
}

async fn write(app: Rc<App>) {
    let redis = app.redis.with_deadline(DEADLINE);
    let end = app.clock.now() + LONGEST_TURN;
    while !app.seen.is_empty() {
        if let Err(error) = send(&app, &redis).await {
            log::warn!("views were not written: {error}");
        }
        let now = app.clock.now();
        if now >= end {
            // The next request goes on.
            break;
        }
        app.seen.turn.set(Some(now + DEADLINE * 2));
    }
    app.seen.turn.set(None);
}

/// Sends one pipeline. What counts as a view is known by its reply, and is written by the next one.
async fn send(app: &App, redis: &Redis) -> Result<(), Error> {
    let (keys, Batch { mut sights, counts, once }) = (redis.keys(), app.seen.take());
    // Each call of the script is for the sessions of one shard.
    sights.sort_by_key(|(sight, ..)| keys.shard_of(&sight.token));
    let shards: Vec<_> =
        sights.chunk_by(|(one, ..), (next, ..)| keys.shard_of(&one.token) == keys.shard_of(&next.token)).collect();
    let touches = shards.iter().filter_map(|sights| {
        let shard = keys.shard_of(&sights.first()?.0.token);
        let sights: Vec<_> = sights.iter().map(|(sight, ..)| sight).collect();
        Some(session::touch_command(shard, &sights, &app.config.session))
    });
    let counts = counts.iter().map(|((item, view), number)| match view {
        View::Served => ranking::count(keys, item, *number),
        View::Reported => ranking::count_if_ranked(keys, item, *number),
    });
    let once = once.iter().map(|(item, key)| ranking::count_once(keys, item, key));
    let commands: Vec<_> = touches.chain(counts).chain(once).collect();

    let mut replies = redis.pipeline(&commands).await?.into_iter();
    let mut result = Ok(());
    for (sights, reply) in shards.into_iter().zip(replies.by_ref()) {
        match reply.and_then(Vec::<Noted>::from_reply) {
            Ok(noted) => sights.iter().zip(noted).for_each(|(sight, noted)| app.seen.noted(sight, noted)),
            Err(error) => result = Err(error),
        }
    }
    Ok(replies.try_for_each(|reply| reply.map(drop)).and(result)?)
}
