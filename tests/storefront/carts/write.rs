use std::{rc::Rc, time::Duration};

use edgefront::{
    App,
    carts::{self, CartChange, CartWriteOutcome, CartWriteRequest},
    ports::error::Error,
    schema::{ids::UserId, token::Token},
};
use futures_util::future::join_all;
use serde_json::json;

use super::{add, change, expected, item, lines, log_in, log_out, quantity, read, set, try_add, try_set};
use crate::support::Store;

#[tokio::test]
async fn the_first_item_starts_a_guests_session_and_the_next_item_joins_it() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let first = try_set(&app, None, "mug", 1).await.unwrap();
    let session = first.session.unwrap();
    assert!(first.created && session.user.is_none());
    let next = try_add(&app, Some(&session.token), "cup", 2, None).await.unwrap();
    assert!(!next.created);
    assert_eq!(next.session.unwrap().token, session.token);
    assert_eq!(read(&app, &session.token).await.unwrap(), expected(&[("cup", 2), ("mug", 1)]));
    assert_eq!(store.raw(&["ZCARD", "recent:"]).await, 1);
}

#[tokio::test]
async fn a_removal_without_a_session_starts_none() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let unknown = Token::new(app.clock.now()).unwrap();
    for token in [None, Some(&unknown)] {
        let nothing = CartWriteOutcome::default();
        assert_eq!(change(&app, token, CartChange::Clear).await, Ok(nothing.clone()));
        assert_eq!(try_set(&app, token, "mug", 0).await, Ok(nothing.clone()));
        assert_eq!(try_set(&app, token, "mug", -5).await, Ok(nothing));
    }
    assert_eq!(store.raw(&["DBSIZE"]).await, 0);
}

#[tokio::test]
async fn a_write_after_the_logout_starts_a_guests_session() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let token = log_in(&app).await;
    set(&app, &token, "mug", 1).await;
    log_out(&app, &token).await;
    let outcome = try_set(&app, Some(&token), "cup", 1).await.unwrap();
    let session = outcome.session.unwrap();
    assert!(outcome.created && session.user.is_none() && session.token != token);
    assert_eq!(lines(&outcome.cart), expected(&[("cup", 1)]));
    assert_eq!(read(&app, &token).await, None);
    assert_eq!(store.raw(&["HEXISTS", "login:", token.as_str()]).await, 0);
}

#[tokio::test]
async fn a_write_after_the_idle_time_starts_a_guests_session() {
    let store = Store::new().await;
    let app = store.app(&[("SESSION_IDLE", "60")]);
    let token = log_in(&app).await;
    set(&app, &token, "mug", 1).await;
    store.clock.advance(Duration::from_secs(61));
    assert_eq!(read(&app, &token).await, None);
    let outcome = try_add(&app, Some(&token), "cup", 1, Some("key")).await.unwrap();
    assert!(outcome.created && outcome.session.unwrap().user.is_none());
    assert_eq!(lines(&outcome.cart), expected(&[("cup", 1)]));
    assert_eq!(store.raw(&["HGETALL", &format!("cart:{}", token.as_str())]).await, json!(["mug", "1"]));
}

#[tokio::test]
async fn concurrent_adds_all_count() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let token = log_in(&app).await;
    join_all((0..40).map(|_| add(&app, &token, "mug", 2))).await;
    assert_eq!(read(&app, &token).await.unwrap(), expected(&[("mug", 80)]));
}

#[tokio::test]
async fn an_add_stops_at_the_maximum_quantity_of_an_item() {
    let store = Store::new().await;
    let app = store.app(&[("CART_MAX_QUANTITY", "10")]);
    let token = log_in(&app).await;
    assert_eq!(add(&app, &token, "mug", 7).await, expected(&[("mug", 7)]));
    assert_eq!(add(&app, &token, "mug", 7).await, expected(&[("mug", 10)]));
}

#[tokio::test]
async fn an_add_of_nothing_is_refused() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let outcome = try_add(&app, None, "mug", 0, None).await;
    assert_eq!(outcome, Err(Error::invalid("quantity", "must be at least 1")));
}

#[tokio::test]
async fn a_full_cart_refuses_another_item() {
    let store = Store::new().await;
    let app = store.app(&[("CART_MAX_LINES", "2")]);
    let token = log_in(&app).await;
    set(&app, &token, "mug", 1).await;
    set(&app, &token, "cup", 1).await;
    assert_eq!(try_set(&app, Some(&token), "bowl", 1).await, Err(Error::CartFull { limit: 2 }));
    assert_eq!(try_add(&app, Some(&token), "bowl", 1, None).await, Err(Error::CartFull { limit: 2 }));
    assert_eq!(add(&app, &token, "cup", 1).await, expected(&[("cup", 2), ("mug", 1)]), "its lines may change");
    set(&app, &token, "mug", 0).await;
    assert_eq!(set(&app, &token, "bowl", 1).await, expected(&[("bowl", 1), ("cup", 2)]));
}

async fn write_all(app: &Rc<App>, token: Option<&Token>, changes: &[CartChange]) -> Result<CartWriteOutcome, Error> {
    let request = CartWriteRequest { token, changes, idempotency_key: Some("key") };
    carts::write(&app.redis, &request, app.clock.now(), &app.config).await
}

#[tokio::test]
async fn several_changes_take_effect_together_and_once() {
    let store = Store::new().await;
    let app = store.app(&[("CART_MAX_LINES", "2"), ("CART_MAX_QUANTITY", "10")]);
    let token = log_in(&app).await;
    set(&app, &token, "mug", 1).await;
    let add = |name, number| CartChange::Add(item(name), quantity(&app, number));
    let changes = [add("mug", 7), add("mug", 7), add("cup", 1)];
    for _ in ["first", "repeated"] {
        let outcome = write_all(&app, Some(&token), &changes).await.unwrap();
        assert_eq!(lines(&outcome.cart), expected(&[("cup", 1), ("mug", 10)]));
    }
    assert_eq!(write_all(&app, Some(&token), &changes[1..]).await, Err(Error::KeyReused));
    assert_eq!(read(&app, &token).await.unwrap(), expected(&[("cup", 1), ("mug", 10)]));
}

#[tokio::test]
async fn several_changes_that_overfill_the_cart_change_nothing() {
    let store = Store::new().await;
    let app = store.app(&[("CART_MAX_LINES", "2")]);
    let token = log_in(&app).await;
    set(&app, &token, "mug", 1).await;
    let set_to = |name, number| CartChange::Set(item(name), quantity(&app, number));
    let changes = [set_to("mug", 5), set_to("cup", 1), set_to("bowl", 1)];
    assert_eq!(write_all(&app, Some(&token), &changes).await, Err(Error::CartFull { limit: 2 }));
    assert_eq!(
        write_all(&app, None, &[&changes[..], &[CartChange::Clear]].concat()).await,
        Err(Error::CartFull { limit: 2 })
    );
    assert_eq!(read(&app, &token).await.unwrap(), expected(&[("mug", 1)]));
    assert_eq!(store.raw(&["ZCARD", "recent:"]).await, 1);
}

#[tokio::test]
async fn lines_of_other_code_survive_a_list_of_changes() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let token = log_in(&app).await;
    let key = format!("cart:{}", token.as_str());
    store.raw(&["HSET", &key, "mug", "many", "a:b", "1"]).await;
    let changes = [CartChange::Add(item("mug"), quantity(&app, 2)), CartChange::Set(item("cup"), quantity(&app, 1))];
    write_all(&app, Some(&token), &changes).await.unwrap();
    assert_eq!(store.raw(&["HGET", &key, "a:b"]).await, "1");
    assert_eq!(read(&app, &token).await.unwrap(), expected(&[("cup", 1), ("mug", 2)]));
}

#[tokio::test]
async fn a_write_with_a_token_that_a_login_has_just_replaced_is_refused() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let guest = try_set(&app, None, "mug", 1).await.unwrap().session.unwrap().token;
    let ada = UserId::parse("ada").unwrap();
    crate::support::log_in(&app.redis, Some(&guest), &ada, app.clock.now(), &app.config.session).await.unwrap();
    let refused = || Err(Error::Conflict("you have just signed in: try again"));
    store.clock.advance(Duration::from_millis(9_999));
    assert_eq!(try_add(&app, Some(&guest), "cup", 1, Some("key")).await, refused());
    assert_eq!(change(&app, Some(&guest), CartChange::Clear).await, refused());
    assert_eq!(store.raw(&["ZCARD", "recent:"]).await, 1);
    // By now the visitor has the new cookie, or has never got it.
    store.clock.advance(Duration::from_millis(1));
    assert!(try_add(&app, Some(&guest), "cup", 1, Some("key")).await.unwrap().created);
}

#[tokio::test]
async fn a_write_tells_its_additions_and_whether_it_starts_the_cart() {
    let store = Store::new().await;
    let app = store.app(&[("CART_MAX_QUANTITY", "1")]);
    let told = |outcome: Result<CartWriteOutcome, Error>| outcome.map(|write| (write.additions, write.starts_cart));
    let first = try_set(&app, None, "mug", 1).await.unwrap();
    let token = first.session.clone().unwrap().token;
    assert_eq!(told(Ok(first)), Ok((1, true)));
    assert_eq!(told(try_add(&app, Some(&token), "mug", 1, None).await), Ok((1, false)), "the cart holds one already");
    assert_eq!(told(try_set(&app, Some(&token), "cup", 1).await), Ok((0, false)), "it may have been there");
    assert_eq!(told(change(&app, Some(&token), CartChange::Clear).await), Ok((0, false)));
    assert_eq!(told(change(&app, Some(&token), CartChange::Clear).await), Ok((0, false)));
    assert_eq!(told(try_set(&app, Some(&token), "mug", 1).await), Ok((1, true)));
    change(&app, Some(&token), CartChange::Clear).await.unwrap();
    for expected in [(1, true), (0, false)] {
        assert_eq!(
            told(try_add(&app, Some(&token), "mug", 1, Some("key")).await),
            Ok(expected),
            "the second repeats it"
        );
    }
}
