use std::{
    cell::{Cell, RefCell},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use futures_util::future::{join, join_all};
use http::Method;
use serde_json::json;

use super::{rotate_clocks, settled, three};
use crate::{
    routes::api::service,
    support::{Reply, Shop, eventually},
};

const MEMORY: Duration = Duration::from_secs(1);
const PAGE: &str = "/products/mug";

/// The page under the shop's one name, which all locations share.
async fn read(shop: &Shop) -> Option<String> {
    shop.get(PAGE).header("host", "shop.example").send().await.ok()?.text().await.ok()
}

/// If the clock of a location is set back, a copy there may live longer, by at most `PAGE_MEMORY`: a copy from the future
/// is not used.
#[tokio::test]
async fn after_a_purge_no_location_serves_the_old_page_beyond_page_memory() {
    let shops = three(&[("PAGE_MEMORY", "1")]).await;
    let version = Arc::new(AtomicU64::new(0));
    let rendered = version.clone();
    shops[0].origin.answer_with(move |_| {
        Reply::html(rendered.load(SeqCst).to_string()).header("cache-control", "public, s-maxage=3600")
    });
    let (over, purges) = (Cell::new(false), RefCell::new(Vec::<(Instant, Duration)>::new()));
    let visits = join_all(shops.iter().map(async |shop| {
        let mut last = 0;
        while !over.get() {
            let begun = Instant::now();
            let seen: u64 = read(shop).await.expect("an answer").parse().expect("a version");
            // The purge of version N is `purges[N]`.
            if let Some((purged, allowed)) = purges.borrow().get(usize::try_from(seen).expect("few")) {
                let late = begun.saturating_duration_since(*purged);
                assert!(late < *allowed, "{}: version {seen} is served {late:?} after its purge", shop.url);
            }
            last = last.max(seen);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        last
    }));
    let change = async {
        for round in 0..4 {
            rotate_clocks(&shops, round).await;
            settled(&shops).await;
            version.fetch_add(1, SeqCst);
            let body = json!({"items": ["mug"]});
            let answer = service(&shops[round % 3], Method::POST, "/purge", Some(&body)).await;
            assert_eq!(answer.status, 200);
            // In turn, no clock jumps after the purge, or each does.
            let allowed = MEMORY * if round % 2 == 0 { 1 } else { 2 };
            purges.borrow_mut().push((Instant::now(), allowed));
            if round % 2 == 1 {
                rotate_clocks(&shops, round + 1).await;
            }
            tokio::time::sleep(allowed * 3 / 2).await;
        }
        over.set(true);
    };
    let (last, ()) = join(visits, change).await;
    assert_eq!(last, [4, 4, 4]);
}

#[tokio::test]
async fn a_page_is_rendered_once_for_all_locations_and_again_if_its_holder_is_killed() {
    let shops = three(&[("ORIGIN_TIMEOUT", "3"), ("PAGE_WAIT_MS", "25000")]).await;
    let origin = &shops[0].origin;
    origin.answer(Reply::html("page").header("cache-control", "public, s-maxage=3600"));
    let renders = || origin.asked().iter().filter(|asked| asked.header("edge-shared") == "1").count();
    let gateway = &shops[0].store.gateway;
    let everybody = async |shops: &[Shop]| {
        let before = gateway.received();
        let visits = join_all(shops.iter().cycle().take(8 * shops.len()).map(read));
        let release = async {
            let is_asked = |requests: u64| requests >= before + shops.len() as u64;
            eventually("every location looks the page up", async || is_asked(gateway.received())).await;
            eventually("the origin is asked", async || renders() > 0).await;
            origin.release();
        };
        join(visits, release).await.0
    };
    origin.hold();
    let pages = everybody(&shops).await;
    assert!(pages.iter().all(|page| page.as_deref() == Some("page")), "{pages:?}");
    settled(&shops).await;
    assert_eq!((renders(), origin.count()), (1, 1));

    let answer = service(&shops[0], Method::POST, "/purge", Some(&json!({"all": true}))).await;
    assert_eq!(answer.status, 200);
    settled(&shops).await;
    origin.hold();
    // Its copy of the page is dropped with the old process.
    let kill = async {
        eventually("the location renders", async || renders() == 2).await;
        shops[2].kill().await;
    };
    let killed = async { while read(&shops[2]).await.is_some() && renders() < 2 {} };
    join(killed, kill).await;
    let pages = everybody(&shops[..2]).await;
    assert!(pages.iter().all(|page| page.as_deref() == Some("page")), "{pages:?}");
    settled(&shops[..2]).await;
    assert_eq!((renders(), origin.count()), (3, 3), "one more render, for the one that was lost");
}
