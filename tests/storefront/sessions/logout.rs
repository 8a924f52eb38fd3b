use edgefront::sessions::{self, TouchOutcome};
use serde_json::json;

use super::{log_in, log_out, sorted, touch, user, viewed_items};
use crate::support::Store;

#[tokio::test]
async fn a_stale_token_cannot_revive_a_session() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let token = log_in(&app, None, "ada").await;
    log_out(&app, &token).await;
    let before = sorted(store.raw(&["KEYS", "*"]).await);
    assert_eq!(touch(&app, &token, Some("mug"), app.clock.now()).await, TouchOutcome::Ended);
    assert_eq!(touch(&app, &token, None, app.clock.now()).await, TouchOutcome::Ended);
    assert_eq!(viewed_items(&app, &token).await, None);
    assert_eq!(sorted(store.raw(&["KEYS", "*"]).await), before);
}

#[tokio::test]
async fn a_user_logout_ends_all_sessions_of_that_user_only() {
    let store = Store::new().await;
    let app = store.app(&[]);
    // More than two script calls end.
    for _ in 0..205 {
        log_in(&app, None, "ada").await;
    }
    let bob = log_in(&app, None, "bob").await;
    let now = app.clock.now();
    let ended = sessions::log_out_user(&app.redis, &user("ada"), now, &app.config.session).await;
    assert_eq!(ended, Ok(205));
    assert_eq!(store.raw(&["ZRANGE", "recent:", "0", "-1"]).await, json!([bob.as_str()]));
    assert_eq!(store.raw(&["HKEYS", "login:"]).await, json!([bob.as_str()]));
    assert_eq!(store.raw(&["EXISTS", "sessions:ada"]).await, 0);
    assert_eq!(sessions::log_out_user(&app.redis, &user("ada"), now, &app.config.session).await, Ok(0));
}
