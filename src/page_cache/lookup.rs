//! The lookup of a page in Redis. One script returns rank, purges, page and lease, so that they describe the same
//! moment.

use std::time::Duration;

use bytes::Bytes;

use super::{
    hit_for_miss,
    key::PageKey,
    policy::{Reason, VaryFields},
    selecting::SelectingHeaders,
    stored_page::StoredPage,
};
use crate::{
    ports::{error::Error, random, time::Timestamp},
    schema::{hex, ids::ItemId, keys::Keys, redis::Redis, scripts::PAGE, token::Token},
};
use upstash_rest::{Command, FromReply, Reply};

/// The exclusive right to render and store a page, until it expires.
#[derive(Debug, Clone)]
pub struct Lease {
    pub(super) key: PageKey,
    /// Random, so that two leases never share an id.
    pub(super) id: String,
    stamp: u64,
    pub(super) duration: Duration,
    /// The stored page has variants.
    pub(super) has_variants: bool,
}

impl Lease {
    /// The page that may be rendered.
    #[must_use]
    pub const fn key(&self) -> &PageKey {
        &self.key
    }

    /// Random, and unique to this lease.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The latest purge when the lease was granted: its mark (Unix microseconds), 0 before the first one. The render starts
    /// afterwards, so a later purge wins.
    #[must_use]
    pub const fn stamp(&self) -> u64 {
        self.stamp
    }
}

/// The reply to the lookup of a page.
#[derive(Debug)]
pub struct LookupResult {
    /// The rank of the item that the stored page names, else of the key's item; None without an item or views, and for a
    /// fresh page.
    pub rank: Option<u64>,
    /// The stored page, fresh or stale.
    pub page: Option<Box<StoredPage>>,
    /// The lease, granted to one caller at a time if the page is not fresh.
    pub lease: Option<Lease>,
    pub state: PageState,
    /// The part of the response that made the page unstorable, for operators; empty for a storable page.
    pub cause: String,
    /// The request headers that select the page, as far as known.
    pub vary: VaryFields,
    /// The values for [`from_check`](crate::sessions::from_check); None if the session was not read.
    pub session: Option<(Option<String>, Option<f64>)>,
}

impl LookupResult {
    /// Drops a page that is older than the caller's copy: the replica is behind.
    #[must_use]
    pub fn not_older_than(self, held: Option<&StoredPage>) -> Self {
        let is_older = |page: &StoredPage| held.is_some_and(|held| page.stored < held.stored);
        Self { page: self.page.filter(|page| !is_older(page)), ..self }
    }
}

/// Returns whether other requests can still be served if this one's render cannot be stored: if the page is fresh, or if
/// only other variants are stored. Then the render must not delete the page.
#[must_use]
pub fn others_have_page(stored: Option<&StoredPage>, has_variants: bool, now: Timestamp) -> bool {
    stored.map_or(has_variants, |page| page.is_fresh(now))
}

/// The state of a page in Redis, besides its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageState {
    /// Nothing.
    Unknown,
    /// The page was stored before: it is shared.
    Shared,
    /// Hit-for-miss: the page could not be stored a moment ago, for this reason.
    Unstorable(Reason),
    /// The page is older than an unsafe request that changed it. Redis does not know of this request yet.
    Outdated,
}

/// When a lookup requests the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseRequest {
    /// The page is not fresh.
    IfStale,
    /// The page is not fresh, and it was stored before or its item's rank is below this limit. For pages that state no
    /// freshness.
    IfPopular(u64),
    /// Always: the client reloads the page.
    Always,
}

/// The duration of a lease, and its condition.
#[derive(Debug, Clone, Copy)]
pub struct LeaseTerms {
    pub duration: Duration,
    pub request: LeaseRequest,
}

/// When a lookup reads the rank of the page's item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankRead {
    /// The page is not fresh: its render needs the rank.
    IfStale,
    /// Also for a fresh page, if the caller requests no lease and has no copy.
    EvenIfFresh,
}

/// The lease, the rank and the session that a lookup requests.
#[derive(Debug, Clone, Copy)]
pub struct LookupTerms<'a> {
    /// None: no lease is granted, so a read replica may answer.
    pub lease: Option<LeaseTerms>,
    pub rank: RankRead,
    /// In the book's layout only: otherwise, no script reaches both pages and sessions.
    pub session: Option<SessionRead<'a>>,
}

/// A session that the lookup reads, too.
#[derive(Debug, Clone, Copy)]
pub struct SessionRead<'a> {
    pub token: &'a Token,
    /// Skip the read if the page is fresh: commands are billed, and a shared page does not depend on its visitor.
    pub only_if_stale: bool,
    /// [`sessions::is_young`](crate::sessions::is_young): its last activity is not read.
    pub is_young: bool,
}

/// The page that a request selects, and the copy that the caller holds. Redis does not send the same page again.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    pub selecting: &'a SelectingHeaders,
    pub held: Option<&'a StoredPage>,
}

/// A lookup that is under way; it decodes the reply.
pub struct Lookup<'a> {
    key: &'a PageKey,
    wanted: Wanted<'a>,
    /// The requested lease.
    lease: Option<Lease>,
    now: Timestamp,
}

impl<'a> Lookup<'a> {
    /// The lookup and the script's call, alone or in a pipeline.
    ///
    /// # Errors
    /// [`Error::Platform`] if there are no random bits for the lease.
    pub fn new(
        keys: Keys,
        key: &'a PageKey,
        wanted: Wanted<'a>,
        now: Timestamp,
        terms: LookupTerms<'_>,
    ) -> Result<(Self, Command), Error> {
        let requested = |LeaseTerms { duration, .. }| -> Result<Lease, Error> {
            let id = hex(&random::bytes::<8>()?);
            Ok(Lease { key: key.clone(), id, stamp: 0, duration, has_variants: false })
        };
        let lookup = Self { key, wanted, lease: terms.lease.map(requested).transpose()?, now };
        let command = lookup.command(keys, terms);
        Ok((lookup, command))
    }

    /// The script's call. A repeated call finds the lease of the first one.
    fn command(&self, keys: Keys, LookupTerms { lease, rank, session }: LookupTerms<'_>) -> Command {
        let request = lease.map(|lease| lease.request);
        let below = if let Some(LeaseRequest::IfPopular(limit)) = request { limit.to_string() } else { String::new() };
        // Without a lease and a copy, the script reads the rank of a fresh page. `-` names no render, and the script skips that read.
        let no_copy = if lease.is_none() && rank == RankRead::IfStale { "-" } else { "" };
        let hash = self.key.hash();
        let of_page = [keys.page(hash), keys.variants(hash), keys.render(hash)];
        let of_session = session.into_iter().flat_map(|SessionRead { token, is_young, .. }| {
            let shard = keys.shard_of(token);
            [Some(shard.login()), (!is_young).then(|| shard.recent())].into_iter().flatten()
        });
        let all = [keys.ranking()].into_iter().chain(of_page).chain([keys.purged(), keys.latest_purge()]);
        Command::script(&PAGE, all.chain(of_session))
            .arg(self.key.item().map_or("", ItemId::as_str))
            .arg(self.key.item_of_url().map_or("", ItemId::as_str))
            .arg(hash)
            .num(self.now.as_millis())
            .arg(self.lease.as_ref().map_or("", Lease::id))
            .num(lease.map_or(0, |lease| lease.duration.as_millis()))
            .num(u8::from(request == Some(LeaseRequest::Always)))
            .arg(below)
            .arg(self.wanted.held.map_or(no_copy, |page| &page.render))
            .arg(session.map_or("", |session| session.token.as_str()))
            .num(u8::from(session.is_some_and(|session| session.only_if_stale)))
            .args(self.wanted.selecting.pairs())
            .repeatable()
    }

    /// The lease that Redis grants if it executes the script. None if the lookup requests none.
    #[must_use]
    pub fn lease(&self) -> Option<Lease> {
        self.lease.clone()
    }

    /// Decodes the script's reply.
    ///
    /// # Errors
    /// [`upstash_rest::Error::UnexpectedType`].
    pub fn read(self, reply: Reply) -> Result<LookupResult, upstash_rest::Error> {
        type Session = Option<(Option<String>, Option<f64>)>;
        type Parts = (Option<u64>, Option<Bytes>, Option<u64>, String, Option<u64>, (String, Session));
        let (rank, page, stamp, state, soft, (vary, session)) = Parts::from_reply(reply)?;
        let mut page = match page {
            Some(value) if value.is_empty() => self.wanted.held.cloned(),
            value => value.and_then(|value| StoredPage::decode(&value, self.key, self.wanted.selecting)),
        };
        if let (Some(page), Some(micros)) = (&mut page, soft) {
            // The clock of Redis may be ahead of this one.
            page.expire(Timestamp::from_millis(micros / 1000).min(self.now));
        }
        let note = hit_for_miss::decode(&state);
        let (state, cause) = match (note, state.as_str()) {
            (Some((reason, cause)), _) => (PageState::Unstorable(reason), cause.to_owned()),
            (None, "known") => (PageState::Shared, String::new()),
            (None, _) => (PageState::Unknown, String::new()),
        };
        let vary = page.as_ref().map_or_else(|| VaryFields::from_text(&vary), |page| page.vary.clone());
        let has_variants = !vary.is_empty();
        let lease = self.lease.zip(stamp).map(|(lease, stamp)| Lease { stamp, has_variants, ..lease });
        Ok(LookupResult { rank, page: page.map(Box::new), lease, state, cause, vary, session })
    }
}

/// Takes the lease to render a page that is not fresh. None if the page is fresh, or another request renders it.
///
/// # Errors
/// [`Error::Redis`].
pub async fn take_lease(
    redis: &Redis,
    key: &PageKey,
    wanted: Wanted<'_>,
    duration: Duration,
    now: Timestamp,
) -> Result<Option<Lease>, Error> {
    let lease = LeaseTerms { duration, request: LeaseRequest::IfStale };
    let terms = LookupTerms { lease: Some(lease), rank: RankRead::IfStale, session: None };
    let (lookup, command) = Lookup::new(redis.keys(), key, wanted, now, terms)?;
    Ok(lookup.read(redis.run(command).await?)?.lease)
}

/// Looks a page up without a lease, in the nearest read region. If Redis still has the page `held`, it does not send the
/// page again.
///
/// # Errors
/// [`Error::Redis`].
pub async fn look_up(
    redis: &Redis,
    key: &PageKey,
    selecting: &SelectingHeaders,
    held: Option<&StoredPage>,
    now: Timestamp,
) -> Result<LookupResult, Error> {
    let terms = LookupTerms { lease: None, rank: RankRead::EvenIfFresh, session: None };
    let (lookup, command) = Lookup::new(redis.keys(), key, Wanted { selecting, held }, now, terms)?;
    let found = lookup.read(redis.run(redis.near(command)).await?)?;
    Ok(if redis.has_read_regions() { found.not_older_than(held) } else { found })
}
