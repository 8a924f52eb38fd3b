use futures_util::future::join_all;

use super::{rotate_clocks, settled, sign_in, three};
use crate::support::Reply;

const USERS: i64 = 6;

/// A killed location loses at most the views that it has not written yet.
#[tokio::test]
async fn a_view_counts_once_in_all_locations_together() {
    let shops = three(&[]).await;
    shops[0].origin.answer(Reply::html("page"));
    let users = (0..USERS).map(|number| format!("user-{number}"));
    let cookies = join_all(users.zip(shops.iter().cycle()).map(async |(user, shop)| sign_in(shop, &user).await)).await;
    let view = async |shops: &[crate::support::Shop], item: &str| {
        let visits = cookies.iter().flat_map(|cookie| shops.iter().map(move |shop| (shop, cookie)));
        let visits =
            visits.map(|(shop, cookie)| shop.get(&format!("/products/{item}")).header("cookie", cookie).send());
        for answer in join_all(visits).await {
            assert_eq!(answer.expect("an answer").status(), 200);
        }
    };
    for round in 0..3 {
        rotate_clocks(&shops, round).await;
        view(&shops, "mug").await;
        settled(&shops).await;
    }
    let store = &shops[0].store;
    // The ranking holds negative scores.
    let counted = async |item: &str| -> i64 {
        let found = store.raw(&["ZSCORE", "viewed:", item]).await;
        found.as_str().map_or(0, |views| -views.parse::<i64>().expect("whole views"))
    };
    assert_eq!(counted("mug").await, USERS, "one view for each user");

    view(&shops[2..], "pan").await;
    shops[2].kill().await;
    view(&shops[..2], "cup").await;
    settled(&shops[..2]).await;
    assert_eq!(counted("cup").await, USERS);
    assert!(counted("pan").await <= USERS);
    // The users come again, and the lost views count now; the others do not count twice.
    view(&shops[..2], "pan").await;
    settled(&shops[..2]).await;
    assert_eq!(counted("pan").await, USERS);
}
