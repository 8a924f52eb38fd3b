//! A page: renders and isolate copies against purges and unsafe requests.
//!
//! Two isolates serve one page. A lookup, a store, a purge and an eviction are one script each; a reply arrives later
//! than its script runs. The content of the page is a number that grows with every change at the origin.
//!
//! Assumption: an eviction after an unsafe request takes less than a time step, which is half of `PAGE_MEMORY`.
//!
//! - `scripts`: the scripts, and the code around them; `steps`: the actions; `properties`: the properties.

mod properties;
mod scripts;
mod steps;

use crate::Protocol;

/// Time for which a copy answers without Redis after its confirmation, in time steps: `PAGE_MEMORY`.
pub const MEMORY: u8 = 2;
/// A hit confirms a copy of at least this age.
const CONFIRM: u8 = MEMORY / 2;
const ISOLATES: usize = 2;
/// Visits under way at the same time.
const VISITS: usize = 2;

/// A rendered page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Page {
    /// The origin's answer.
    pub content: u8,
    /// Redis' clock when the lease was granted. The real stamp is the latest purge until then: the same pages are void.
    stamp: u8,
}

/// The right to render and store the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lease {
    id: u8,
    stamp: u8,
}

/// The copy of an isolate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LocalCopy {
    pub page: Page,
    confirmed: u8,
    is_confirming: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Isolate {
    pub copy: Option<LocalCopy>,
    /// An unsafe request has changed the page; requests bypass the cache until Redis knows.
    pub is_noted: bool,
    /// The least content that a visit may get that begins now.
    least: u8,
}

/// A visit, or the work behind its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Visit {
    isolate: usize,
    /// The least content that it may get.
    least: u8,
    /// The isolate dropped its copies since the last request to Redis.
    is_void: bool,
    /// When the last request to Redis began.
    asked: u8,
    step: Step,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    /// The lookup ran, its reply is under way.
    Found { page: Option<Page>, lease: Option<Lease>, id: u8, has_waited: bool },
    /// Another request renders the page.
    Waiting { id: u8 },
    /// The origin gets the request.
    Rendering(Option<Lease>),
    /// The origin's response is under way.
    Rendered(u8, Option<Lease>),
    /// The visitor has the page. The store ran, its reply is under way.
    Stored { page: Page, is_stored: bool },
    /// The visitor has the copy. The lookup that confirms it ran, its reply is under way.
    Confirming { page: Option<Page> },
}

/// A purge, or an unsafe request, that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Change {
    isolate: usize,
    /// Everything older is void when the change is known.
    least: u8,
    step: ChangeStep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ChangeStep {
    PurgeBegun,
    PurgeExecuted,
    /// The origin has changed the page, its response is under way.
    Posted,
    /// The visitor has the response.
    Answered,
    Evicted,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    now: u8,
    /// The origin's answer.
    pub content: u8,
    /// Redis' clock.
    clock: u8,
    pub page: Option<Page>,
    pub lease: Option<u8>,
    purged: Option<u8>,
    pub isolates: [Isolate; ISOLATES],
    pub visits: [Option<Visit>; VISITS],
    change: Option<Change>,
    /// Redis knows that everything older is void.
    void: u8,
    /// No isolate serves anything older from this time on.
    void_everywhere: (u8, u8),
    ids: u8,
    /// Leases that ended before their render.
    ended_leases: u8,
    left: Bounds,
    wrong: Option<Wrong>,
}

/// The bounds of a run: the largest number of events of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bounds {
    visits: u8,
    purges: u8,
    posts: u8,
    lost_replies: u8,
    crashes: u8,
    /// Leases that expire during the render, and pages that expire.
    expiries: u8,
    steps: u8,
}

/// A transition that must not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Wrong {
    ServedVoid,
    WaitedForItself,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A visit of an isolate begins: the copy answers, or the lookup runs. With `is_reply_lost`, its first reply is
    /// lost and it runs twice.
    Visit {
        visit: usize,
        isolate: usize,
        is_reply_lost: bool,
    },
    /// The reply of the last request to Redis arrives.
    Reply(usize),
    /// The reply is lost: the isolate gives up the store or the confirmation.
    LoseReply(usize),
    /// A waiting visit looks again. If it still finds neither a page nor the lease, it renders the page for itself.
    LookAgain(usize),
    /// The origin renders the page.
    Render(usize),
    /// The origin's response arrives: the visitor gets it, and the store runs.
    Store(usize),
    /// The origin changes the page, and the shop purges it with a request to this isolate.
    Purge(usize),
    /// The script runs. With `is_reply_lost`, it runs twice.
    MarkPurge {
        is_reply_lost: bool,
    },
    /// An unsafe request through this isolate changes the page at the origin.
    Post(usize),
    /// The visitor gets the response to the unsafe request.
    AnswerPost,
    /// The script deletes the page.
    Evict,
    /// The reply of the purge or of the eviction arrives.
    EndChange,
    /// The platform ends an isolate and everything in it.
    Crash(usize),
    ExpireLease,
    ExpirePage,
    Wait,
}

/// The rules of the protocol. Each can be switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// `page` returns no page that was purged after its stamp.
    LookupChecksPurge,
    /// `page` grants one lease at a time.
    LookupGrantsOneLease,
    /// `page` grants the lease again to the request that has it: its first reply was lost.
    LookupFindsOwnLease,
    /// A lease expires.
    LeaseExpires,
    /// A page's stamp is the time of its lease, before the render.
    StampBeforeRender,
    /// `store` stores nothing that was purged after its stamp.
    StoreChecksPurge,
    /// `store` stores nothing without the lease.
    StoreChecksLease,
    /// The isolate keeps only what Redis has stored.
    KeepOnlyStored,
    /// The isolate keeps no page that it dropped while the request to Redis was under way.
    KeepChecksEpoch,
    /// The isolate keeps no page while an unsafe request waits for its eviction.
    KeepChecksNote,
    /// A copy answers for a limited time after its confirmation.
    CopyExpires,
    /// A confirmation counts from its beginning.
    ConfirmedAtStart,
    /// A purge marks the page in Redis.
    PurgeMarks,
    /// A purge drops the copies again when Redis knows it.
    PurgeDropsCopies,
    /// An unsafe request drops the copies before its response.
    PostDropsCopies,
    /// After an unsafe request, the isolate bypasses the cache until Redis knows it.
    PostNotes,
    /// `evict` deletes the page.
    EvictDeletesPage,
    /// `evict` deletes the lease, so that a render under way is not stored.
    EvictDeletesLease,
}

/// The model: the bounds of a run, and the rule that is off.
#[derive(Debug, Clone)]
pub struct Pages {
    bounds: Bounds,
    off: Option<Rule>,
}

impl Pages {
    /// A purge.
    #[must_use]
    pub const fn purge() -> Self {
        let bounds = Bounds { visits: 3, purges: 1, posts: 0, lost_replies: 0, crashes: 0, expiries: 0, steps: 2 };
        Self { bounds, off: None }
    }

    /// An unsafe request.
    #[must_use]
    pub const fn post() -> Self {
        let bounds = Bounds { visits: 3, purges: 0, posts: 1, lost_replies: 0, crashes: 0, expiries: 0, steps: 1 };
        Self { bounds, off: None }
    }

    /// An isolate ends at any moment.
    #[must_use]
    pub const fn crash() -> Self {
        let bounds = Bounds { visits: 2, purges: 1, posts: 0, lost_replies: 1, crashes: 1, expiries: 0, steps: 1 };
        Self { bounds, off: None }
    }

    /// Leases and pages expire.
    #[must_use]
    pub const fn expiry() -> Self {
        let bounds = Bounds { visits: 3, purges: 0, posts: 1, lost_replies: 0, crashes: 0, expiries: 1, steps: 0 };
        Self { bounds, off: None }
    }

    fn has(&self, rule: Rule) -> bool {
        self.off != Some(rule)
    }
}

impl Protocol for Pages {
    type Rule = Rule;
    const RULES: &'static [Rule] = &[
        Rule::LookupChecksPurge,
        Rule::LookupGrantsOneLease,
        Rule::LookupFindsOwnLease,
        Rule::LeaseExpires,
        Rule::StampBeforeRender,
        Rule::StoreChecksPurge,
        Rule::StoreChecksLease,
        Rule::KeepOnlyStored,
        Rule::KeepChecksEpoch,
        Rule::KeepChecksNote,
        Rule::CopyExpires,
        Rule::ConfirmedAtStart,
        Rule::PurgeMarks,
        Rule::PurgeDropsCopies,
        Rule::PostDropsCopies,
        Rule::PostNotes,
        Rule::EvictDeletesPage,
        Rule::EvictDeletesLease,
    ];

    fn all_bounds() -> Vec<Self> {
        vec![Self::post(), Self::expiry(), Self::crash(), Self::purge()]
    }

    fn without(self, rule: Rule) -> Self {
        Self { off: Some(rule), ..self }
    }
}
