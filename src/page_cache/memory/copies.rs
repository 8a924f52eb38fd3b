//! Copies of pages in Redis. A copy answers without Redis for `PAGE_MEMORY` after its last confirmation. So a purge
//! reaches other isolates within this time. Afterwards the copy is a fallback while Redis is down.
//!
//! Eviction is an approximate LRU with two generations: a used copy moves to the young one, and a full young generation
//! replaces the old one. A hit costs one move instead of a list update.

use std::{
    cell::Cell,
    collections::{HashMap, hash_map::Entry as Slot},
    ops::Deref,
    rc::Rc,
    time::Duration,
};

use http::{HeaderValue, header};

use super::super::{
    selecting::{MAX_VARIANTS, SelectingHeaders},
    stored_page::StoredPage,
};
use crate::{
    ports::{fetch::PreparedBody, time::Timestamp},
    schema::redis::MAX_REPLICA_LAG,
};

/// Largest number of copies.
const MAX_COPIES: usize = 2_000;
/// Largest sum of their sizes, bytes. An isolate has 128 MB.
const MAX_BYTES: usize = 12 << 20;
/// Largest body of a copy, bytes.
const MAX_BODY: usize = 1 << 20;
/// Largest sum of the variants of one page, bytes. The oldest variant gives way.
const MAX_BYTES_OF_PAGE: usize = MAX_BYTES / 4;
/// A copy's key, headers and names, bytes.
const OVERHEAD: usize = 1 << 10;
/// Largest number of URLs with a remembered invalidation.
const MAX_VOIDED: usize = 1_000;

/// The copies of an isolate.
pub struct LocalCopies {
    /// `PAGE_MEMORY`.
    ttl: Duration,
    young: Generation,
    old: Generation,
    /// The number of invalidations: a logical clock.
    invalidations: u64,
    /// The last invalidation of each page, and of all pages.
    voided: HashMap<String, Voided>,
    all_voided: Voided,
}

/// An invalidation: the number of invalidations up to it, and its time.
#[derive(Clone, Copy)]
struct Voided {
    invalidations: u64,
    at: Timestamp,
}

/// Copies by the page's hash. One list holds the variants of a page.
#[derive(Default)]
struct Generation {
    pages: HashMap<String, Vec<Rc<LocalCopy>>>,
    count: usize,
    bytes: usize,
}

/// A page as Redis returned it.
pub struct LocalCopy {
    pub page: Rc<StoredPage>,
    prepared: Rc<PreparedBody>,
    /// The start of the last lookup that returned the page.
    confirmed: Cell<Timestamp>,
    /// A request confirms the copy now.
    confirming: Cell<bool>,
}

/// The start of a lookup. A page that is voided during the lookup must not be kept.
#[derive(Debug, Clone, Copy)]
pub struct LookupEpoch {
    at: Timestamp,
    invalidations: u64,
}

impl LookupEpoch {
    #[must_use]
    pub const fn began(self) -> Timestamp {
        self.at
    }

    /// The epoch of a page that Redis confirmed so long before the lookup.
    #[must_use]
    pub fn earlier(self, age: Duration) -> Self {
        Self { at: self.at - age, ..self }
    }
}

/// A copy that answers without Redis.
pub struct LocalHit {
    pub page: Rc<StoredPage>,
    /// Body and headers in the platform's form, for a complete response.
    pub prepared: Rc<PreparedBody>,
    /// When Redis confirmed the page.
    pub confirmed: Timestamp,
    /// The caller confirms the copy after its response, alone and before the copy expires, so that no visitor waits for
    /// it.
    pub confirm: bool,
}

impl LocalCopies {
    pub fn new(ttl: Duration) -> Self {
        let (young, old) = Default::default();
        let never = Voided { invalidations: 0, at: Timestamp::from_millis(0) };
        Self { ttl, young, old, invalidations: 0, voided: HashMap::new(), all_voided: never }
    }

    /// Starts a lookup.
    pub const fn epoch(&self, now: Timestamp) -> LookupEpoch {
        LookupEpoch { at: now, invalidations: self.invalidations }
    }

    /// The copy of a page for a request with the headers `selecting`.
    pub fn get(
        &mut self,
        hash: &str,
        selecting: &impl Deref<Target = SelectingHeaders>,
        now: Timestamp,
    ) -> Option<Rc<LocalCopy>> {
        if let Some(copies) = self.old.take(hash) {
            self.young.put(hash, copies);
            self.age();
        }
        let copies = self.young.pages.get(hash).or_else(|| self.old.pages.get(hash))?;
        // All copies of a page vary on the same headers.
        let vary = &copies.first()?.page.vary;
        let variant = if vary.is_empty() { Some(String::new()) } else { selecting.variant(vary) }?;
        copies.iter().find(|copy| copy.page.variant == variant && now < copy.page.dies).cloned()
    }

    /// As [`LocalCopies::get`], if the copy was confirmed within the TTL.
    pub fn hit(
        &mut self,
        hash: &str,
        selecting: &impl Deref<Target = SelectingHeaders>,
        now: Timestamp,
    ) -> Option<LocalHit> {
        let copy = self.get(hash, selecting, now)?;
        let confirmed = copy.confirmed.get();
        now.is_within(self.ttl, confirmed).then(|| {
            let confirm = now.since(confirmed) >= self.ttl / 2 && !copy.confirming.replace(true);
            LocalHit { page: copy.page.clone(), prepared: copy.prepared.clone(), confirmed, confirm }
        })
    }

    /// Keeps a page from Redis, unless it was voided after `epoch`.
    pub fn keep(&mut self, hash: &str, page: Rc<StoredPage>, epoch: LookupEpoch) {
        let is_later = |voided: &Voided| voided.invalidations > epoch.invalidations;
        let is_void = is_later(&self.all_voided) || self.voided.get(hash).is_some_and(is_later);
        if page.body.len() > MAX_BODY || is_void {
            return;
        }
        let mut copies = self.young.take(hash).or_else(|| self.old.take(hash)).unwrap_or_default();
        if let Some(copy) = copies.iter().find(|copy| copy.page == page) {
            // The prepared body is reused.
            copy.confirmed.set(epoch.at);
            copy.confirming.set(false);
        } else {
            copies.retain(|copy| {
                let other = &copy.page;
                other.variant != page.variant && other.vary == page.vary && epoch.at < other.dies
            });
            let mut headers = page.visible_headers();
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(page.body.len()));
            let prepared = Rc::new(PreparedBody::new(page.body.clone(), headers));
            copies.push(Rc::new(LocalCopy {
                page,
                prepared,
                confirmed: Cell::new(epoch.at),
                confirming: Cell::new(false),
            }));
            // The list moves between the generations as a whole, so one page with many variants would push out all others.
            let is_over = |copies: &[_]| copies.len() > MAX_VARIANTS || bytes(copies) > MAX_BYTES_OF_PAGE;
            while copies.len() > 1 && is_over(&copies) {
                copies.remove(0);
            }
        }
        self.young.put(hash, copies);
        self.age();
    }

    /// When the page was voided, if a replica may still have it.
    pub fn changed(&self, hash: &str, now: Timestamp) -> Option<Timestamp> {
        let all = self.all_voided.at;
        let last = self.voided.get(hash).map_or(all, |voided| voided.at.max(all));
        now.is_within(MAX_REPLICA_LAG, last).then_some(last)
    }

    /// Bytes of all copies: their bodies, and [`OVERHEAD`] for each copy.
    pub const fn bytes(&self) -> usize {
        self.young.bytes + self.old.bytes
    }

    /// Invalidates a page: drops its copies, and no lookup that is under way may keep one.
    pub fn forget(&mut self, hash: &str, now: Timestamp) {
        self.young.take(hash);
        self.old.take(hash);
        let voided = self.void(now);
        if self.voided.len() >= MAX_VOIDED {
            // No lookup that is under way may keep its page.
            self.voided.clear();
            self.all_voided = voided;
        }
        self.voided.insert(hash.to_owned(), voided);
    }

    /// As [`LocalCopies::forget`], for all pages.
    pub fn forget_all(&mut self, now: Timestamp) {
        (self.young, self.old) = Default::default();
        self.all_voided = self.void(now);
    }

    const fn void(&mut self, now: Timestamp) -> Voided {
        self.invalidations += 1;
        Voided { invalidations: self.invalidations, at: now }
    }

    fn age(&mut self) {
        if self.young.count > MAX_COPIES / 2 || self.young.bytes > MAX_BYTES / 2 {
            self.old = std::mem::take(&mut self.young);
        }
    }
}

impl Generation {
    fn take(&mut self, hash: &str) -> Option<Vec<Rc<LocalCopy>>> {
        let copies = self.pages.remove(hash)?;
        self.count -= copies.len();
        self.bytes -= bytes(&copies);
        Some(copies)
    }

    fn put(&mut self, hash: &str, copies: Vec<Rc<LocalCopy>>) {
        if let Slot::Vacant(slot) = self.pages.entry(hash.to_owned()) {
            self.count += copies.len();
            self.bytes += bytes(&copies);
            slot.insert(copies);
        }
    }
}

fn bytes(copies: &[Rc<LocalCopy>]) -> usize {
    copies.iter().map(|copy| size(copy.page.body.len())).sum()
}

const fn size(body: usize) -> usize {
    body + OVERHEAD
}

#[cfg(test)]
mod tests {
    use std::cell::LazyCell;

    use super::{super::super::stored_page::tests::entry, *};
    use crate::{config::Forward, page_cache::visitor_cookies::VisitorCookies};

    const START: Timestamp = Timestamp::from_millis(1_795_000_000_123);
    const TTL: Duration = Duration::from_secs(4);

    fn request(foo: &'static str) -> LazyCell<SelectingHeaders, impl FnOnce() -> SelectingHeaders> {
        LazyCell::new(move || {
            let headers = [("foo".parse().unwrap(), HeaderValue::from_static(foo))].into_iter().collect();
            SelectingHeaders::of(&headers, &Forward::All.into(), &VisitorCookies::default())
        })
    }

    fn keep(copies: &mut LocalCopies, hash: &str, body: Vec<u8>) {
        let epoch = copies.epoch(START);
        copies.keep(hash, Rc::new(entry(b"", body)), epoch);
    }

    #[test]
    fn a_request_gets_its_own_variant_until_the_page_dies() {
        let mut copies = LocalCopies::new(TTL);
        let mut other = entry(b"", vec![2; 10]);
        other.variant = "foo=2\n".to_owned();
        keep(&mut copies, "a", vec![1; 10]);
        let epoch = copies.epoch(START);
        copies.keep("a", Rc::new(other), epoch);
        assert_eq!(copies.get("a", &request("1"), START).unwrap().page.body.read()[0], 1);
        assert_eq!(copies.get("a", &request("2"), START).unwrap().page.body.read()[0], 2);
        assert!(copies.get("a", &request("3"), START).is_none());
        assert!(copies.get("a", &request("1"), START + Duration::from_mins(15)).is_none(), "deleted");
    }

    #[test]
    fn a_copy_answers_for_its_ttl_and_not_after_the_clock_was_set_back() {
        let mut copies = LocalCopies::new(TTL);
        keep(&mut copies, "a", Vec::new());
        let earlier = START - TTL;
        for (now, is_hit) in [(START, true), (START + TTL, false), (earlier, false)] {
            assert_eq!(copies.hit("a", &request("1"), now).is_some(), is_hit, "{now}");
        }
        let epoch = copies.epoch(earlier);
        copies.keep("a", Rc::new(entry(b"", Vec::new())), epoch);
        assert!(copies.hit("a", &request("1"), earlier).is_some(), "confirmed anew");
    }

    #[test]
    fn unused_copies_are_evicted() {
        let mut copies = LocalCopies::new(TTL);
        let each = size(250_000);
        for number in 0..200 {
            keep(&mut copies, &number.to_string(), vec![0; 250_000]);
            assert!(copies.get("0", &request("1"), START).is_some(), "used all the time, at {number}");
            let held = [&copies.young, &copies.old];
            assert!(held.iter().map(|part| part.bytes).sum::<usize>() <= MAX_BYTES + each);
            for part in held {
                assert_eq!(part.count, part.pages.values().map(Vec::len).sum::<usize>());
                assert_eq!(part.bytes, part.count * each);
            }
        }
        assert!(copies.get("1", &request("1"), START).is_none());
        assert!(copies.get("199", &request("1"), START).is_some());
    }

    #[test]
    fn the_variants_of_a_page_are_bounded_and_push_out_no_other_page() {
        let mut copies = LocalCopies::new(TTL);
        keep(&mut copies, "b", vec![1; 10]);
        for (body, kept) in [(10, MAX_VARIANTS), (MAX_BODY, MAX_BYTES_OF_PAGE / size(MAX_BODY))] {
            for number in 0..100 {
                let mut page = entry(b"", vec![0; body]);
                page.variant = format!("foo={number}\n");
                let epoch = copies.epoch(START);
                copies.keep("a", Rc::new(page), epoch);
            }
            assert_eq!(copies.young.pages["a"].len(), kept);
        }
        assert!(copies.get("a", &request("99"), START).is_some(), "the newest stays");
        assert!(copies.get("b", &request("1"), START).is_some());
    }

    #[test]
    fn a_copy_answers_within_its_ttl_and_one_request_confirms_it() {
        let mut copies = LocalCopies::new(TTL);
        keep(&mut copies, "a", vec![1; 10]);
        let confirm = |copies: &mut LocalCopies, millis| {
            copies.hit("a", &request("1"), START + Duration::from_millis(millis)).map(|hit| hit.confirm)
        };
        assert_eq!(confirm(&mut copies, 0), Some(false));
        assert_eq!(confirm(&mut copies, 1_999), Some(false));
        assert_eq!(confirm(&mut copies, 2_000), Some(true));
        assert_eq!(confirm(&mut copies, 2_001), Some(false), "one confirmation");
        assert_eq!(confirm(&mut copies, 4_000), None);
        assert!(copies.get("a", &request("1"), START + TTL).is_some(), "fallback");
        assert!(LocalCopies::new(Duration::ZERO).hit("a", &request("1"), START).is_none());
    }

    #[test]
    fn a_lookup_does_not_restore_a_page_that_was_voided_meanwhile() {
        let mut copies = LocalCopies::new(TTL);
        keep(&mut copies, "a", vec![1; 10]);
        let before = copies.epoch(START);
        copies.forget("a", START);
        copies.keep("a", Rc::new(entry(b"", Vec::new())), before);
        assert!(copies.get("a", &request("1"), START).is_none());
        copies.keep("b", Rc::new(entry(b"", Vec::new())), before);
        assert!(copies.get("b", &request("1"), START).is_some(), "another page");
        copies.forget_all(START);
        copies.keep("b", Rc::new(entry(b"", Vec::new())), before);
        assert!(copies.get("b", &request("1"), START).is_none());
        keep(&mut copies, "b", Vec::new());
        assert!(copies.get("b", &request("1"), START).is_some());
        let before = copies.epoch(START);
        (0..=MAX_VOIDED).for_each(|number| copies.forget(&number.to_string(), START));
        copies.keep("0", Rc::new(entry(b"", Vec::new())), before);
        assert!(copies.get("0", &request("1"), START).is_none() && copies.voided.len() <= MAX_VOIDED);
    }

    #[test]
    fn an_invalidation_is_remembered_while_a_replica_may_lag() {
        let mut copies = LocalCopies::new(TTL);
        let later = START + MAX_REPLICA_LAG;
        let changed = |copies: &LocalCopies, now| ["a", "b"].map(|hash| copies.changed(hash, now).is_some());
        assert_eq!(changed(&copies, START), [false, false]);
        copies.forget("a", START);
        assert_eq!((changed(&copies, START), changed(&copies, later)), ([true, false], [false, false]));
        copies.forget_all(START);
        assert_eq!((changed(&copies, START), changed(&copies, later)), ([true, true], [false, false]));
        (0..=MAX_VOIDED).for_each(|number| copies.forget(&number.to_string(), later));
        assert_eq!(changed(&copies, later), [true, true], "too many to remember each");
    }
}
