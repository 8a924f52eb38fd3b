//! Several locations of one shop: Workers in processes of their own, on one Redis. Their clocks differ and jump, and a
//! Worker may be killed in mid-request.

use futures_util::future::join;
use http::Method;
use serde_json::Value;

use crate::{
    routes::api::{Answer, Visitor},
    support::Shop,
};

/// Carts: no accepted write is lost or counts twice.
mod carts;
/// Cron jobs that overlap.
mod crons;
/// Purges and shared renders.
mod pages;
/// A flash sale.
mod sales;
/// Logouts.
mod sessions;
/// Views in the ranking.
mod views;

/// The clocks' offsets from the real time, milliseconds.
const OFFSETS: [i64; 3] = [0, 5_000, -5_000];

/// Three locations; the first one's clock is right.
async fn three(variables: &[(&str, &str)]) -> [Shop; 3] {
    let home = Shop::workerd(variables).await;
    let (ahead, behind) = join(home.elsewhere(variables), home.elsewhere(variables)).await;
    let shops = [home, ahead, behind];
    rotate_clocks(&shops, 0).await;
    shops
}

/// Gives each location the offset of another one: a clock jumps by 5 s or 10 s, forwards or backwards.
async fn rotate_clocks(shops: &[Shop; 3], round: usize) {
    for (shop, offset) in shops.iter().zip(OFFSETS.iter().cycle().skip(round % 3)) {
        shop.set_clock(*offset).await;
    }
}

/// Waits until the work after all responses has ended at every location.
async fn settled(shops: &[Shop]) {
    for shop in shops {
        shop.settled().await;
    }
}

/// Calls a location for the visitor with this cookie. None if it sends no answer.
async fn call(shop: &Shop, cookie: &str, method: Method, path: &str, body: Option<&Value>) -> Option<Answer> {
    let request = Visitor::with_cookie(shop, cookie).request(method, path);
    let request = match body {
        Some(body) => crate::routes::api::with_json(request, body),
        None => request,
    };
    Answer::try_to(request).await
}

/// The user at this location.
async fn user(shop: &Shop, cookie: &str) -> Value {
    let answer = call(shop, cookie, Method::GET, "/session", None).await.expect("an answer");
    assert_eq!(answer.status, 200);
    answer.json["user"].clone()
}

/// The cookie of a user who has signed in at this location.
async fn sign_in(shop: &Shop, user: &str) -> String {
    crate::routes::api::log_in(shop, user).await.cookie.expect("a cookie")
}
