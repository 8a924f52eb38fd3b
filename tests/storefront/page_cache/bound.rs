//! All stored pages together stay within `PAGE_TOTAL_BYTES`, and their account stays correct.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use edgefront::{
    config::rules::UrlRules,
    page_cache::{
        LeaseRequest, LeaseTerms, Lookup, LookupTerms, PageAccount, PageKey, PageWriter, Purge, PurgeMode, RankRead,
        Reason, SelectingHeaders, StoredPage, Unstorable, Wanted, invalidate, look_up, note_unstorable,
        policy::VaryFields, purge,
    },
    ports::time::Timestamp,
};
use futures_util::future::join_all;
use http::{HeaderMap, StatusCode};
use proptest::prelude::*;

use super::{is_hit, rfc9111};
use crate::support::{Shop, Store, scenarios};

/// Always requests the lease, for nine seconds.
const LEASE: LeaseTerms = LeaseTerms { duration: Duration::from_secs(9), request: LeaseRequest::Always };
const TERMS: LookupTerms<'_> = LookupTerms { lease: Some(LEASE), rank: RankRead::IfStale, session: None };

const LIMIT: u64 = 40_000;

scenarios! {
    &[("PAGE_TOTAL_BYTES", "40000"), ("PAGE_MEMORY", "0")];
    pages_that_are_visited_outlive_a_flood,
}

/// The stored pages and their account in Redis.
#[derive(Debug)]
struct Held {
    /// The sum that the account states, and the sum of its entries.
    total: u64,
    sum: u64,
    /// Each stored page: its hash, the size of its values, and its size in the account.
    pages: Vec<(String, u64, u64)>,
    /// The number of pages in the account, and the number of those with a known expiry.
    listed: (u64, u64),
}

/// The account rounds sizes up to units of this many bytes.
const UNIT: u64 = 64;

/// Reads all keys of pages at one moment.
async fn held(store: &Store) -> Held {
    let script = "
        local account, page, variants = unpack(ARGV)
        local pages, sizes, total, sum, listed, dying = {}, {}, 0, 0, 0, 0
        local members = redis.call('ZRANGE', account, 0, -1, 'WITHSCORES')
        for i = 1, #members, 2 do
            local member, score = members[i], tonumber(members[i + 1])
            if member == '' then total = score * 64
            elseif member:sub(1, 1) == '~' then
                dying = dying + 1
                sizes[member:sub(2)] = (score + 2 ^ 53) % 2 ^ 22 * 64
                sum = sum + sizes[member:sub(2)]
            else listed = listed + 1 end
        end
        for _, key in ipairs(redis.call('KEYS', page .. '*')) do
            local hash = key:sub(#page + 1)
            local size = redis.call('STRLEN', key)
            local fields = redis.call('HGETALL', variants .. hash)
            for _, part in ipairs(fields) do size = size + #part end
            pages[#pages + 1] = {hash, size, sizes[hash] or 0}
        end
        return {total, sum, pages, {listed, dying}}";
    let keys = store.redis.keys();
    let names = [keys.pages(), keys.page(""), keys.variants("")];
    // The call names the key of the account, because its server has the other keys, too.
    let call = ["EVAL", script, "1", &names[0]].into_iter().chain(names.iter().map(String::as_str));
    let reply = store.raw(&call.collect::<Vec<_>>()).await;
    let (total, sum, pages, listed) = serde_json::from_value(reply).unwrap();
    Held { total, sum, pages, listed }
}

/// The size of a page in the account if its values have `bytes`.
fn accounted(bytes: u64) -> u64 {
    (bytes + 512).div_ceil(UNIT) * UNIT
}

async fn pages_that_are_visited_outlive_a_flood(shop: &Shop) {
    shop.origin.answer_with(|asked| rfc9111::fresh(&asked.path.repeat(300), "max-age=60"));
    for page in 0..40 {
        // The request is a reload, so the page is rendered and stored again.
        rfc9111::ask(shop, "/hot", &[("cache-control", "no-cache")]).await;
        rfc9111::ask(shop, &format!("/flood?page={page}"), &[]).await;
        let held = held(&shop.store).await;
        let stored: u64 = held.pages.iter().map(|(_, size, _)| size).sum();
        assert!(stored <= held.total && held.total <= LIMIT, "{held:?}");
    }
    assert!(held(&shop.store).await.total > LIMIT / 2, "what there is room for is stored");
    assert!(is_hit(&shop.visit("/hot").await));
    assert!(is_hit(&shop.visit("/flood?page=39").await), "the last of the flood");
    assert!(!is_hit(&shop.visit("/flood?page=0").await), "the first made room");
    shop.settled().await;
    // A stored page may name its lease, so the lease must not outlive the page.
    let leases: Vec<String> = serde_json::from_value(shop.store.raw(&["KEYS", "render:*"]).await).unwrap();
    assert!(!leases.is_empty());
    for lease in leases {
        assert_eq!(shop.store.raw(&["EXISTS", &lease.replace("render:", "cache:")]).await, 1, "{lease}");
    }
}

fn page(number: usize) -> PageKey {
    PageKey::of_url(&format!("https://shop.example/page?number={number}"), &UrlRules::default()).unwrap()
}

/// A page with a body of `size` bytes that expires after `life`. `variant`: it is one of several variants.
fn entry(stamp: u64, now: Timestamp, life: Duration, size: usize, variant: Option<u8>) -> StoredPage {
    StoredPage {
        stamp,
        render: format!("{:x}", now.as_millis()),
        stored: now,
        fresh_until: now + life,
        stale_until: now + life,
        error_until: now + life,
        dies: now + life,
        strict: false,
        is_declared_shared: false,
        vary: VaryFields::from_text(if variant.is_some() { "foo" } else { "" }),
        variant: variant.map_or_else(String::new, |variant| format!("foo={variant}\n")),
        has_generated_etag: false,
        item: None,
        tags: Vec::new(),
        status: StatusCode::OK,
        headers: HeaderMap::new(),
        body: vec![b'x'; size].into(),
        holes: Vec::new(),
    }
}

/// A page to be stored.
struct Put {
    life: Duration,
    /// Bytes of the body.
    size: usize,
    variant: Option<u8>,
    /// `PAGE_TOTAL_BYTES`.
    limit: u64,
}

const USUAL: Put = Put { life: Duration::from_hours(1), size: 3_000, variant: None, limit: LIMIT };

static SECOND: AtomicU64 = AtomicU64::new(0);

/// Renders a page and stores it. Returns whether it is stored.
async fn put(at: &Store, page: &PageKey, Put { life, size, variant, limit }: Put) -> bool {
    // The account has expiries in whole seconds.
    let now =
        Timestamp::from_millis(1_795_000_000_000) + Duration::from_secs(3 * SECOND.fetch_add(1, Ordering::Relaxed));
    at.raw(&["DEL", &format!("render:{}", page.hash())]).await;
    let wanted = Wanted { selecting: &SelectingHeaders::default(), held: None };
    let (lookup, command) = Lookup::new(at.redis.keys(), page, wanted, now, TERMS).unwrap();
    let reply = at.redis.run(command).await.unwrap();
    let lease = lookup.read(reply).unwrap().lease.expect("nobody else renders it");
    let entry = entry(lease.stamp(), now, life, size, variant);
    let account = PageAccount::default();
    let writer = PageWriter { redis: &at.redis, account: &account, now, limit };
    let (is_stored, due) = writer.put(&lease, &entry).await.unwrap();
    writer.complete_account(due).await.unwrap();
    is_stored
}

#[tokio::test]
async fn only_the_page_stored_longest_ago_is_evicted() {
    let at = Store::new().await;
    for number in 0..10 {
        assert!(put(&at, &page(number), Put { size: 2_900, ..USUAL }).await);
    }
    // Page 0 is stored again, so it is the newest. The eleventh page does not fit until one page is evicted.
    put(&at, &page(0), Put { size: 2_900, ..USUAL }).await;
    assert!(put(&at, &page(10), Put { size: 2_900, ..USUAL }).await);
    let there = held(&at).await.pages;
    let is_there = |number| there.iter().any(|(hash, ..)| hash == page(number).hash());
    assert_eq!((0..11).filter(|number| !is_there(*number)).collect::<Vec<_>>(), [1]);
}

#[tokio::test]
async fn a_page_above_the_limit_is_not_stored_and_evicts_no_other() {
    let at = Store::new().await;
    assert!(put(&at, &page(0), USUAL).await);
    assert!(!put(&at, &page(1), Put { size: 40_000, ..USUAL }).await);
    assert!(!put(&at, &page(2), Put { size: 0, limit: 0, ..USUAL }).await, "without a byte nothing is stored");
    assert_eq!(held(&at).await.pages.len(), 1);
    assert_eq!(at.raw(&["KEYS", "render:*"]).await, serde_json::json!([]), "the leases are given back");
}

#[tokio::test]
async fn concurrent_stores_stay_within_the_limit() {
    let at = Store::new().await;
    let pages: Vec<_> = (0..40).map(page).collect();
    let stored = join_all(pages.iter().map(|page| put(&at, page, USUAL))).await;
    let held = held(&at).await;
    // A concurrent store may take the room that an eviction made. After four attempts, a page is not stored.
    assert!(stored.into_iter().filter(|is_stored| *is_stored).count() >= 10);
    assert!(held.total <= LIMIT && held.pages.len() >= 8, "{held:?}");
}

#[tokio::test]
async fn eviction_begins_before_the_limit_is_reached() {
    let at = Store::new().await;
    let limit = 20 * LIMIT;
    let mut requests = Vec::new();
    for number in 0..600 {
        let before = at.counts().requests;
        assert!(put(&at, &page(number), Put { limit, ..USUAL }).await);
        requests.push(at.counts().requests - before);
    }
    // An eviction deletes a sixteenth of the pages, here 13, with two scripts. The first call of a script also sends
    // its source.
    let usual = *requests.last().unwrap();
    assert!(requests.iter().skip(1).all(|count| (usual..=usual + 4).contains(count)), "{requests:?}");
    let cycles = requests.iter().skip(1).filter(|count| **count > usual).count();
    assert!((20..=40).contains(&cycles), "{cycles}: {requests:?}");
    let held = held(&at).await;
    assert!(held.total > limit * 13 / 16 && held.total < limit, "{held:?}");
}

#[tokio::test]
async fn redis_does_not_send_a_page_that_the_caller_holds() {
    let at = Store::new().await;
    let (page, selecting, now) = (page(0), SelectingHeaders::default(), Timestamp::from_millis(1_795_000_000_000));
    let look = async |held| look_up(&at.redis, &page, &selecting, held, now).await.unwrap().page.map(|page| *page);
    assert!(put(&at, &page, USUAL).await);
    let mine = StoredPage { body: "what I have of it".into(), ..look(None).await.unwrap() };
    assert_eq!(look(Some(&mine)).await, Some(mine.clone()), "its body is not read from Redis");
    assert!(put(&at, &page, Put { size: 2_000, ..USUAL }).await);
    assert_eq!(look(Some(&mine)).await.unwrap().body.len(), 2_000, "another one comes");
    purge(&at.redis, &[Purge::All], PurgeMode::Hard).await.unwrap();
    assert_eq!(look(Some(&mine)).await, None);
}

#[tokio::test]
async fn expired_pages_are_evicted_before_live_ones() {
    let at = Store::new().await;
    assert!(put(&at, &page(0), USUAL).await);
    for number in 1..10 {
        put(&at, &page(number), Put { life: Duration::from_millis(1), ..USUAL }).await;
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert!(put(&at, &page(10), Put { size: 30_000, ..USUAL }).await);
    let held = held(&at).await;
    assert_eq!((held.pages.len(), held.listed), (2, (2, 2)), "{held:?}");
}

#[tokio::test]
async fn a_page_counts_with_its_current_variants() {
    let at = Store::new().await;
    for (size, variants) in [(1_000, 0..20), (500, 4..20), (700, 0..3)] {
        for variant in variants {
            assert!(put(&at, &page(0), Put { size, variant: Some(variant), ..USUAL }).await);
            let held = held(&at).await;
            assert_eq!((held.pages.len(), held.total), (1, held.sum), "{variant}: {held:?}");
            // Each change of a variant adds a rounding error of at most half a unit.
            let difference = held.total.abs_diff(accounted(held.pages[0].1));
            assert!(difference <= 20 * UNIT, "{variant}: {held:?}");
        }
    }
    assert!(put(&at, &page(0), Put { size: 100, ..USUAL }).await);
    let held = held(&at).await;
    assert_eq!(held.total, accounted(held.pages[0].1), "one page for all again: {held:?}");
}

#[tokio::test]
async fn a_deleted_page_no_longer_counts() {
    let at = Store::new().await;
    for event in [Event::Invalidate(0), Event::Unstorable(0)] {
        for variant in [None, Some(1)] {
            at.raw(&["FLUSHDB"]).await;
            assert!(put(&at, &page(0), Put { size: 1_000, variant, ..USUAL }).await);
            step(&at, &event).await;
            let held = held(&at).await;
            assert_eq!((held.pages.len(), held.total, held.sum, held.listed), (0, 0, 0, (0, 0)), "{event:?}");
        }
    }
}

#[tokio::test]
async fn a_page_that_cannot_be_stored_evicts_no_other_page_whatever_the_account_holds() {
    let at = Store::new().await;
    for number in 0..2 {
        assert!(put(&at, &page(number), USUAL).await);
    }
    let five_gigabytes = ((5_u64 << 30) / UNIT).to_string();
    assert_eq!(at.raw(&["ZADD", "stored:", &five_gigabytes, ""]).await, 0, "the account has a sum, which changes");
    step(&at, &Event::Unstorable(0)).await;
    let there: Vec<_> = held(&at).await.pages.into_iter().map(|(hash, ..)| hash).collect();
    assert_eq!(there, [page(1).hash()]);
}

#[tokio::test]
async fn a_deleted_account_is_rebuilt() {
    let at = Store::new().await;
    for number in 0..9 {
        put(&at, &page(number), USUAL).await;
    }
    assert_eq!(at.raw(&["DEL", "stored:"]).await, 1, "the account is there");
    for number in 20..50 {
        put(&at, &page(number), USUAL).await;
    }
    let held = held(&at).await;
    // The uncounted pages stay until they expire. All others are within the limit.
    let counted: u64 = held.pages.iter().map(|(_, _, counted)| counted).sum();
    assert_eq!((held.total, held.sum), (counted, counted), "{held:?}");
    assert!(held.total <= LIMIT, "{held:?}");
}

#[derive(Debug, Clone)]
enum Event {
    Store {
        page: usize,
        size: usize,
        variant: Option<u8>,
        long: bool,
    },
    /// An unsafe request changes the page.
    Invalidate(usize),
    Unstorable(usize),
    Purge(usize),
    /// Another program deletes the page, or the server evicts it.
    Lose(usize),
    /// Lets pages with a lifetime of a millisecond expire.
    Wait,
}

fn event() -> impl Strategy<Value = Event> {
    let page = || 0..6_usize;
    let size = prop_oneof![4 => 0..4_000_usize, 1 => 4_000..45_000_usize];
    let variant = prop_oneof![2 => Just(None), 6 => (0..3_u8).prop_map(Some), 3 => (0..20_u8).prop_map(Some)];
    prop_oneof![
        12 => (page(), size, variant, prop::bool::weighted(0.8))
            .prop_map(|(page, size, variant, long)| Event::Store { page, size, variant, long }),
        1 => page().prop_map(Event::Invalidate),
        1 => page().prop_map(Event::Unstorable),
        1 => page().prop_map(Event::Purge),
        1 => page().prop_map(Event::Lose),
        1 => Just(Event::Wait),
    ]
}

async fn step(at: &Store, event: &Event) {
    match event {
        Event::Store { page: number, size, variant, long } => {
            let life = if *long { USUAL.life } else { Duration::from_millis(1) };
            put(at, &page(*number), Put { life, size: *size, variant: *variant, ..USUAL }).await;
        }
        Event::Invalidate(number) => invalidate(&at.redis, &[page(*number)]).await.unwrap(),
        Event::Unstorable(number) => {
            let page = page(*number);
            let wanted = Wanted { selecting: &SelectingHeaders::default(), held: None };
            let now = Timestamp::from_millis(1_795_000_000_000);
            let (lookup, command) = Lookup::new(at.redis.keys(), &page, wanted, now, TERMS).unwrap();
            let reply = at.redis.run(command).await.unwrap();
            if let Some(lease) = lookup.read(reply).unwrap().lease {
                let why = Unstorable::new(Reason::Private, String::new());
                note_unstorable(&at.redis, &lease, &why).await.unwrap();
            }
        }
        Event::Purge(number) => purge(&at.redis, &[Purge::Url(page(*number))], PurgeMode::Hard).await.unwrap(),
        Event::Lose(number) => {
            let hash = page(*number).hash().to_owned();
            at.raw(&["DEL", &format!("cache:{hash}"), &format!("variants:{hash}")]).await;
        }
        Event::Wait => tokio::time::sleep(Duration::from_millis(4)).await,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 256, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn after_any_sequence_of_events_the_account_is_right_and_within_the_limit(events in prop::collection::vec(event(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let at = Store::new().await;
            for event in &events {
                step(&at, event).await;
                let held = held(&at).await;
                assert!(held.total == held.sum && held.total <= LIMIT, "{held:?}");
                for (_, takes, counted) in &held.pages {
                    assert!(accounted(*takes).abs_diff(*counted) <= 20 * UNIT, "{held:?}");
                }
            }
            // The next stores remove expired pages from the account, and evict lost pages as the oldest.
            tokio::time::sleep(Duration::from_millis(4)).await;
            for number in 20..40 {
                put(&at, &page(number), Put { size: 4_000, ..USUAL }).await;
            }
            let held = held(&at).await;
            let pages = held.pages.len() as u64;
            let counted: u64 = held.pages.iter().map(|(_, _, counted)| counted).sum();
            assert_eq!((held.total, held.listed), (counted, (pages, pages)), "{held:?}");
        });
    }
}
