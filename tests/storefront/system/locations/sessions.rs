use std::cell::Cell;

use futures_util::future::{join, join_all};
use http::Method;
use serde_json::{Value, json};

use super::{call, rotate_clocks, settled, sign_in, three, user};
use crate::support::eventually;

const ROUNDS: usize = 6;

#[tokio::test]
async fn a_session_that_ends_at_one_location_is_nobody_at_every_other() {
    let shops = three(&[]).await;
    for round in 0..ROUNDS {
        rotate_clocks(&shops, round).await;
        let cookie = sign_in(&shops[round % 3], "ada").await;
        for shop in &shops {
            assert_eq!(user(shop, &cookie).await, "ada");
        }
        // Every location works for this session while it ends at one of them.
        let (writes, ended) = (Cell::new(0), Cell::new(false));
        let work = join_all(shops.iter().map(async |shop| {
            while !ended.get() {
                let mug = json!({"id": "mug", "quantity": 1});
                call(shop, &cookie, Method::POST, "/cart/items", Some(&mug)).await.expect("an answer");
                shop.get("/products/mug").header("cookie", &cookie).send().await.expect("an answer");
                writes.set(writes.get() + 1);
            }
        }));
        let end = async {
            eventually("all locations write", async || writes.get() > 3).await;
            let answer = call(&shops[(round + 1) % 3], &cookie, Method::DELETE, "/session", None).await;
            assert_eq!(answer.expect("an answer").status, 204);
            for shop in &shops {
                assert_eq!(user(shop, &cookie).await, Value::Null, "round {round}");
            }
            ended.set(true);
        };
        join(work, end).await;
        settled(&shops).await;
        let token = cookie.trim_start_matches("__Host-session=").split('.').next().expect("a token");
        let (cart, viewed) = (format!("cart:{token}"), format!("viewed:{token}"));
        let store = &shops[0].store;
        assert_eq!(store.raw(&["HEXISTS", "login:", token]).await, 0);
        assert_eq!(store.raw(&["ZSCORE", "recent:", token]).await, Value::Null);
        assert_eq!(store.raw(&["EXISTS", &cart]).await, 0, "no write revived the cart");
        assert_eq!(store.raw(&["EXISTS", &viewed]).await, 0, "no view revived the list");
    }
}
