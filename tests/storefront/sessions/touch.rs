use std::time::Duration;

use edgefront::{
    ranking::activity::Viewer,
    sessions::{TOUCH_EVERY, TouchOutcome},
};
use serde_json::json;

use super::{item, log_in, touch, view, viewed_items};
use crate::support::Store;

#[tokio::test]
async fn sessions_are_ordered_by_the_millisecond_of_their_last_activity() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let (first, second) = (log_in(&app, None, "ada").await, log_in(&app, None, "bob").await);
    let later = app.clock.now() + TOUCH_EVERY;
    touch(&app, &second, None, later + Duration::from_millis(1)).await;
    touch(&app, &first, None, later + Duration::from_millis(2)).await;
    assert_eq!(store.raw(&["ZRANGE", "recent:", "0", "-1"]).await, json!([second.as_str(), first.as_str()]));
}

#[tokio::test]
async fn a_late_touch_does_not_move_an_activity_or_a_view_back() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let now = app.clock.now();
    let token = log_in(&app, None, "ada").await;
    assert_eq!(touch(&app, &token, Some("mug"), now + TOUCH_EVERY).await, TouchOutcome::ViewCounts);
    let last_seen = store.raw(&["ZSCORE", "recent:", token.as_str()]).await;
    assert_eq!(touch(&app, &token, Some("cup"), now - Duration::from_secs(9)).await, TouchOutcome::ViewCounts);
    assert_eq!(viewed_items(&app, &token).await.unwrap(), ["mug", "cup"]);
    // A late view of an item that was viewed since.
    assert_eq!(touch(&app, &token, Some("mug"), now - Duration::from_secs(10)).await, TouchOutcome::Seen);
    assert_eq!(viewed_items(&app, &token).await.unwrap(), ["mug", "cup"]);
    assert_eq!(store.raw(&["ZSCORE", "recent:", token.as_str()]).await, last_seen);
}

#[tokio::test]
async fn a_session_remembers_the_25_items_viewed_last() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let token = log_in(&app, None, "ada").await;
    for number in 0..30 {
        store.clock.advance(Duration::from_millis(10));
        view(&app, &token, &format!("item-{number}")).await;
    }
    let newest: Vec<_> = (5..30).rev().map(|number| format!("item-{number}")).collect();
    assert_eq!(viewed_items(&app, &token).await.unwrap(), newest);
}

#[tokio::test]
async fn a_view_counts_once_per_session_and_window() {
    let store = Store::new().await;
    let app = store.app(&[("VIEW_WINDOW", "60")]);
    let (first, second) = (log_in(&app, None, "ada").await, log_in(&app, None, "bob").await);
    for _ in 0..3 {
        view(&app, &first, "mug").await;
    }
    assert_eq!(store.raw(&["ZSCORE", "viewed:", "mug"]).await, "-1");
    view(&app, &second, "mug").await;
    assert_eq!(store.raw(&["ZSCORE", "viewed:", "mug"]).await, "-2");
    store.clock.advance(Duration::from_mins(1));
    view(&app, &first, "mug").await;
    assert_eq!(store.raw(&["ZSCORE", "viewed:", "mug"]).await, "-3");
}

#[tokio::test]
async fn a_reported_view_counts_only_for_a_ranked_item() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let (first, second) = (log_in(&app, None, "ada").await, log_in(&app, None, "bob").await);
    view(&app, &first, "mug").await;
    for name in ["mug", "made-up"] {
        app.activity.record_reported_view(
            Viewer { token: Some(&second), network: None },
            &item(name),
            None,
            app.clock.now(),
        );
    }
    app.activity.flush(&app.redis, &app.clock, &app.limits.views, app.clock.now()).unwrap().await;
    assert_eq!(store.raw(&["ZRANGE", "viewed:", "0", "-1", "WITHSCORES"]).await, json!(["mug", "-2"]));
}

#[tokio::test]
async fn views_within_a_tenth_of_a_second_share_a_pipeline() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let mut tokens = Vec::new();
    for visitor in 0..20 {
        tokens.push(log_in(&app, None, &format!("user-{visitor}")).await);
    }
    // Loads the script.
    view(&app, &tokens[0], "cup").await;
    let (before, now) = (store.counts().requests, app.clock.now());
    let note = |token| {
        app.activity.record_visit(Viewer { token: Some(token), network: None }, Some(&item("mug")), now);
        app.activity.flush(&app.redis, &app.clock, &app.limits.views, now)
    };
    let first = note(&tokens[0]).expect("the first view starts the writes");
    let others = async { tokens[1..].iter().for_each(|token| assert!(note(token).is_none(), "one write for all")) };
    tokio::join!(first, others);
    assert_eq!(store.counts().requests - before, 2, "the first request records the views, the second counts them");
    assert_eq!(store.raw(&["ZSCORE", "viewed:", "mug"]).await, "-20");
}

#[tokio::test]
async fn a_damaged_list_of_views_costs_no_other_session_its_activity() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let (damaged, other) = (log_in(&app, None, "ada").await, log_in(&app, None, "bob").await);
    store.raw(&["SET", &format!("viewed:{}", damaged.as_str()), "another program's"]).await;
    store.clock.advance(TOUCH_EVERY);
    let now = app.clock.now();
    for token in [&damaged, &other] {
        app.activity.record_visit(Viewer { token: Some(token), network: None }, Some(&item("mug")), now);
    }
    app.activity.flush(&app.redis, &app.clock, &app.limits.views, now).expect("work").await;
    for token in [&damaged, &other] {
        assert_eq!(store.raw(&["ZSCORE", "recent:", token.as_str()]).await, now.as_score().to_string());
        assert_eq!(viewed_items(&app, token).await.unwrap(), ["mug"]);
    }
}
