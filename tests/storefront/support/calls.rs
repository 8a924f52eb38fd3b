//! Calls of single functions, without the shop around them.

use edgefront::{
    config::SessionConfig,
    ports::{
        error::Error,
        fetch::{Body, Request},
        time::Timestamp,
    },
    schema::{
        ids::{ItemId, UserId},
        redis::Redis,
        token::Token,
    },
    sessions::{self, LoginRequest, SessionTouch, TouchOutcome, touch_command},
};
use http::{Method, header};
use upstash_rest::Command;

use super::SERVICE_KEY;

/// A valid item id.
pub fn item(id: &str) -> ItemId {
    ItemId::parse(id).expect("an item's id")
}

/// Logs `user` in, without a label or an idempotency key.
pub async fn log_in(
    redis: &Redis,
    old_token: Option<&Token>,
    user: &UserId,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Token, Error> {
    sessions::log_in(redis, &LoginRequest { user, old_token, label: None, idempotency_key: None }, now, config).await
}

/// Records one activity.
pub async fn touch(redis: &Redis, touch: &SessionTouch, config: &SessionConfig) -> Result<TouchOutcome, Error> {
    let shard = redis.keys().shard_of(&touch.token);
    Ok(redis.run::<(TouchOutcome,)>(touch_command(shard, &[touch], config)).await?.0)
}

/// The rank of `item`; 0 is the most viewed item. None if the item does not rank.
pub async fn rank(redis: &Redis, item: &ItemId) -> Result<Option<u64>, Error> {
    Ok(redis.run(Command::read("ZRANK").arg(redis.keys().ranking()).arg(item.as_str())).await?)
}

/// A request for [`routes::handle`](edgefront::routes::handle). If `path` is of the API, with the service key and as JSON.
pub fn request(method: Method, path: &str, body: Body) -> Request {
    let (mut head, body) = Request::new(body).into_parts();
    head.method = method;
    head.uri = format!("https://shop.example{path}").parse().expect("a URL");
    if path.starts_with("/_edge") {
        let bearer = format!("Bearer {SERVICE_KEY}").parse().expect("ASCII");
        head.headers.insert(header::AUTHORIZATION, bearer);
        head.headers.insert(header::CONTENT_TYPE, "application/json".parse().expect("ASCII"));
    }
    Request::from_parts(head, body)
}
