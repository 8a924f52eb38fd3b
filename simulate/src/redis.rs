//! The model of Redis: the effects of edgefront's scripts and their cost. It also renders pages for the traffic that is
//! not simulated request by request: for each page, those visitors are a Poisson process.

use std::{
    collections::{HashMap, VecDeque},
    rc::Rc,
    time::Duration,
};

use edgefront::{
    page_cache::{LeaseRequest, PageState, StoredPage},
    ports::time::Timestamp,
    sessions::TOUCH_EVERY,
};
use rustc_hash::FxHashMap;

use crate::{
    catalogue::Item,
    costs,
    ranking::Ranking,
    usage::{On, Usage},
};

/// Memory of a page besides its value (`account.lua`).
const OVERHEAD: usize = 512;
/// The largest number of pages that one eviction deletes.
const MAX_EVICTED: usize = 256;

/// See the [module](self).
pub struct RedisModel {
    pages: FxHashMap<Item, Rc<StoredPage>>,
    renders: FxHashMap<Item, Render>,
    /// The pages in the order of their storage; later entries of a page replace earlier ones.
    order: VecDeque<(Timestamp, Item)>,
    bytes: usize,
    total_bytes: usize,
    /// The latest purge of each page.
    pub purged: FxHashMap<Item, Timestamp>,
    pub ranking: Ranking,
    sessions: HashMap<String, SessionModel>,
    pub usage: Usage,
    /// Events for the simulation, each with its time.
    pub due: Vec<(Timestamp, Due)>,
    load: Load,
}

/// An event of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Its render ends.
    Stored(Item),
    /// A visitor who is not simulated may request the page from now on.
    Wanted(Item),
}

/// A render under way.
struct Render {
    began: Timestamp,
    ends: Timestamp,
    page: Rc<StoredPage>,
    /// The isolate; None: it is not simulated.
    holder: Option<usize>,
}

struct SessionModel {
    began: Timestamp,
    viewed: FxHashMap<Item, Timestamp>,
    is_guest: bool,
}

/// Work that Redis has not done yet.
struct Load {
    /// Commands that Redis executes in a second.
    limit: f64,
    /// Commands at the last measurement.
    measured: (Timestamp, f64),
    /// Seconds of work.
    backlog: f64,
    /// Most commands in a second.
    peak: f64,
}

/// A lookup.
#[derive(Debug, Clone, Copy)]
pub struct Ask {
    pub item: Item,
    /// None: only look.
    pub lease: Option<LeaseRequest>,
    /// The render of the caller's copy; 0 without one.
    pub held: u64,
    pub has_session: bool,
    /// The isolate that asks.
    pub holder: usize,
    pub weight: f64,
}

/// The reply to a lookup.
pub struct Found {
    pub rank: Option<u64>,
    pub page: Option<Rc<StoredPage>>,
    pub has_lease: bool,
    pub state: PageState,
    /// The caller renders the page already.
    pub is_own_render: bool,
}

impl RedisModel {
    /// `limit` is the number of commands that Redis executes in a second.
    #[must_use]
    pub fn new(ranking: Ranking, total_bytes: u64, limit: f64, now: Timestamp) -> Self {
        let total_bytes = usize::try_from(total_bytes).unwrap_or(usize::MAX);
        Self {
            pages: FxHashMap::default(),
            renders: FxHashMap::default(),
            order: VecDeque::new(),
            bytes: 0,
            total_bytes,
            purged: FxHashMap::default(),
            ranking,
            sessions: HashMap::new(),
            usage: Usage::default(),
            due: Vec::new(),
            load: Load { limit, measured: (now, 0.0), backlog: 0.0, peak: 0.0 },
        }
    }

    /// The script `page`.
    pub fn look_up(&mut self, ask: Ask, now: Timestamp) -> Found {
        let Ask { item, weight, .. } = ask;
        let page = self.page(item, now);
        let fresh = page.as_ref().is_some_and(|page| page.is_fresh(now));
        self.usage.read(costs::LOOKUP / 2.0, On::Page(item), weight);
        self.usage.read(costs::LOOKUP / 2.0, On::Key("purged:latest"), weight);
        let is_same = ask.held != 0 && page.as_ref().is_some_and(|page| page.render_number() == ask.held);
        let sent = page.as_ref().filter(|_| !is_same).map_or(0, |page| page.body.len());
        let body = f64::from(u32::try_from(sent).unwrap_or(u32::MAX)) * costs::BASE64;
        self.usage.request(costs::REQUEST_BYTES + costs::RESPONSE_BYTES + body, weight);
        let state = if page.is_some() { PageState::Shared } else { PageState::Unknown };
        if fresh {
            return Found { rank: None, page, has_lease: false, state, is_own_render: false };
        }
        self.usage.read(costs::RANK, On::Key("viewed:"), weight);
        if ask.has_session {
            self.usage.read(costs::SESSION, On::Key("login:"), weight);
        }
        let rank = self.ranking.rank(item, now);
        let render = self.renders.get(&item).filter(|render| now < render.ends);
        let is_wanted = match ask.lease {
            None => false,
            Some(LeaseRequest::IfPopular(limit)) => page.is_some() || rank.is_some_and(|rank| rank < limit),
            Some(_) => true,
        };
        let is_own_render = render.is_some_and(|render| render.holder == Some(ask.holder));
        let has_lease = is_wanted && render.is_none();
        Found { rank, page, has_lease, state, is_own_render }
    }

    /// The stored page, or the one whose render ends by then.
    fn page(&self, item: Item, now: Timestamp) -> Option<Rc<StoredPage>> {
        let render = self.renders.get(&item).filter(|render| render.ends <= now && !self.is_void(item, render));
        let page = render.map(|render| &render.page).or_else(|| self.pages.get(&item));
        page.filter(|page| now < page.dies).cloned()
    }

    fn is_void(&self, item: Item, render: &Render) -> bool {
        self.purged.get(&item).is_some_and(|purged| *purged >= render.began)
    }

    /// The holder of the lease has asked the origin; the page is stored when its render ends.
    pub fn begin_render(
        &mut self,
        item: Item,
        page: Rc<StoredPage>,
        holder: Option<usize>,
        [began, ends]: [Timestamp; 2],
    ) {
        self.usage.write(costs::LEASE, On::Page(item), 1.0);
        self.renders.insert(item, Render { began, ends, page, holder });
        self.due.push((ends, Due::Stored(item)));
    }

    /// The script `store` without a page: the lease ends.
    pub fn release(&mut self, item: Item, weight: f64) {
        self.usage.request(costs::REQUEST_BYTES + costs::RESPONSE_BYTES, weight);
        self.usage.write(costs::LEASE + costs::RELEASE, On::Page(item), weight);
    }

    /// Returns whether the rest of the visitors must render the page.
    #[must_use]
    pub fn lacks(&self, item: Item, now: Timestamp) -> bool {
        !self.renders.contains_key(&item) && self.page(item, now).is_none_or(|page| !page.is_fresh(now))
    }

    #[must_use]
    pub fn stored_page(&self, item: Item, now: Timestamp) -> Option<Rc<StoredPage>> {
        self.page(item, now)
    }

    /// The moment at which a stored page is no longer fresh.
    #[must_use]
    pub fn fresh_until(&self, item: Item) -> Option<Timestamp> {
        Some(self.pages.get(&item)?.fresh_until)
    }

    /// The script `store`, with the account. All renders of the world are stored here, so each counts once. Returns who
    /// rendered, and the page if it is stored.
    pub fn end_render(&mut self, item: Item, now: Timestamp) -> Option<(Option<usize>, Rc<StoredPage>)> {
        let render = self.renders.remove(&item)?;
        let body = f64::from(u32::try_from(render.page.body.len()).unwrap_or(u32::MAX));
        self.usage.request(body + costs::REQUEST_BYTES + costs::RESPONSE_BYTES, 1.0);
        self.usage.write(costs::STORE, On::Page(item), 1.0);
        if self.is_void(item, &render) {
            self.due.push((now, Due::Wanted(item)));
            return None;
        }
        self.insert(item, render.page.clone(), now);
        self.usage.write(costs::ACCOUNT, On::Key("stored:"), 1.0);
        if self.bytes >= self.total_bytes - self.total_bytes / 16 {
            self.evict(now);
        }
        Some((render.holder, render.page))
    }

    pub fn insert(&mut self, item: Item, page: Rc<StoredPage>, now: Timestamp) {
        let size = size(&page);
        self.due.push((page.fresh_until, Due::Wanted(item)));
        if let Some(before) = self.pages.insert(item, page) {
            self.bytes -= self::size(&before);
        }
        self.bytes += size;
        self.order.push_back((now, item));
    }

    /// Deletes the pages that were stored longest ago, until a sixteenth of the limit is free.
    fn evict(&mut self, now: Timestamp) {
        self.usage.read(costs::ACCOUNT_FULL, On::Key("stored:"), 1.0);
        let mut evicted = 0;
        while evicted < MAX_EVICTED && self.bytes + self.total_bytes / 16 > self.total_bytes {
            let Some((stored, item)) = self.order.pop_front() else { break };
            // A page that was stored again since has a later entry.
            if self.pages.get(&item).is_some_and(|page| page.stored <= stored) {
                self.delete(item);
                self.due.push((now, Due::Wanted(item)));
                evicted += 1;
            }
        }
        self.usage.request(costs::REQUEST_BYTES + costs::RESPONSE_BYTES, 1.0);
        self.usage.write(costs::EVICT, On::Key("stored:"), 1.0);
    }

    fn delete(&mut self, item: Item) {
        if let Some(page) = self.pages.remove(&item) {
            self.bytes -= size(&page);
        }
    }

    /// The script `purge`, for one page.
    pub fn purge(&mut self, item: Item, now: Timestamp) {
        self.usage.write(costs::PURGE, On::Key("purged:"), 1.0);
        self.usage.request(costs::REQUEST_BYTES + costs::RESPONSE_BYTES, 1.0);
        self.purged.insert(item, now);
        self.delete(item);
        self.due.push((now, Due::Wanted(item)));
    }

    /// A session begins: a login, or a guest's first cart.
    pub fn begin_session(&mut self, token: &str, is_guest: bool, now: Timestamp) {
        self.sessions.insert(token.to_owned(), SessionModel { began: now, viewed: FxHashMap::default(), is_guest });
    }

    /// The simulation needs the session no longer.
    pub fn forget_session(&mut self, token: &str) {
        self.sessions.remove(token);
    }

    /// One session of the script `touch`. Returns its reply and its commands.
    /// `window` is `VIEW_WINDOW`.
    pub fn touch(&mut self, token: &str, item: Option<Item>, window: Duration, now: Timestamp) -> (u32, f64) {
        let Some(session) = self.sessions.get_mut(token) else { return (0, 0.0) };
        let Some(item) = item else { return (1, 0.0) };
        let last = session.viewed.insert(item, now);
        let counts = last.is_none_or(|last| now.since(last) >= window);
        let reply = if !counts {
            1
        } else if session.is_guest {
            3
        } else {
            2
        };
        (reply, if last.is_none() { costs::TOUCH_NEW_ITEM } else { costs::TOUCH_KNOWN_ITEM })
    }

    /// Returns whether the scripts record that a session was seen: from [`TOUCH_EVERY`] after its start, because all
    /// simulated sessions are young.
    #[must_use]
    pub fn is_seen(&self, token: &str, now: Timestamp) -> bool {
        self.sessions.get(token).is_some_and(|session| now.since(session.began) >= TOUCH_EVERY)
    }

    /// How long a request waits in Redis' queue.
    #[must_use]
    pub fn delay(&self) -> Duration {
        Duration::from_secs_f64((self.load.backlog).min(60.0))
    }

    /// Compares the commands of the last second with the limit.
    pub fn measure(&mut self, now: Timestamp) {
        let Load { limit, measured: (before, commands), .. } = self.load;
        let seconds = now.since(before).as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        let rate = (self.usage.commands - commands) / seconds;
        // A fluid queue.
        self.load.backlog = (self.load.backlog + (rate / limit - 1.0) * seconds).max(0.0);
        self.load.peak = self.load.peak.max(rate);
        self.load.measured = (now, self.usage.commands);
    }

    /// Most commands in one second since the last call.
    pub fn take_peak(&mut self) -> f64 {
        std::mem::take(&mut self.load.peak)
    }

    /// Forgets what was counted so far: the measurement begins.
    pub fn begin_measurement(&mut self, now: Timestamp) {
        self.usage = Usage::default();
        self.load.measured = (now, 0.0);
        self.load.peak = 0.0;
    }

    /// Pages and their bytes.
    #[must_use]
    pub fn stored(&self) -> (usize, usize) {
        (self.pages.len(), self.bytes)
    }
}

fn size(page: &StoredPage) -> usize {
    // The lines before the body.
    const HEAD: usize = 600;
    (page.body.len() + HEAD + OVERHEAD).next_multiple_of(64)
}
