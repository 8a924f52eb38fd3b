//! The data that every candidate finds in its Redis: sessions, carts, rows and the ranking. The layout is the book's,
//! so all candidates use the same keys.

use std::time::Duration;

use redis::{Pipeline, RedisResult, aio::MultiplexedConnection};

use super::{
    visitor_session::VisitorSession,
    workload::{CART_ITEMS, COLD_ITEMS, ITEMS},
};

/// The number of items in one command.
const BATCH: usize = 10_000;
/// The refresh period of a row, seconds. It is so long that no refresh falls into a run.
const ROW_PERIOD: u32 = 86_400;

/// Fills an empty Redis. `now` is the time since the Unix epoch.
///
/// # Errors
/// When Redis rejects a command.
pub async fn fill(connection: &MultiplexedConnection, sessions: &[VisitorSession], now: Duration) -> RedisResult<()> {
    let now = now.as_secs_f64();
    let mut pipeline = redis::pipe();
    for (number, VisitorSession { token, .. }) in sessions.iter().enumerate() {
        pipeline.hset("login:", token, format!("user-{number}"));
        pipeline.zadd("recent:", token, now);
        for item in 0..CART_ITEMS {
            pipeline.hset(format!("cart:{token}"), format!("item-{item}"), 1);
        }
    }
    for number in 0..ITEMS {
        let item = format!("item-{number}");
        pipeline.zadd("viewed:", &item, -1_000_000);
        pipeline.zadd("delay:", &item, ROW_PERIOD);
        pipeline.zadd("schedule:", &item, now + f64::from(ROW_PERIOD));
        pipeline.set(format!("inv:{item}"), row(&item));
    }
    send(connection, &pipeline).await?;
    let cold_items: Vec<_> = (0..COLD_ITEMS).map(|number| (-1, format!("cold-{number}"))).collect();
    for batch in cold_items.chunks(BATCH) {
        let mut pipeline = redis::pipe();
        pipeline.zadd_multiple("viewed:", batch);
        send(connection, &pipeline).await?;
    }
    Ok(())
}

async fn send(connection: &MultiplexedConnection, pipeline: &Pipeline) -> RedisResult<()> {
    pipeline.exec_async(&mut connection.clone()).await
}

/// A row of an inventory as JSON.
fn row(item: &str) -> String {
    format!(
        r#"{{"id":"{item}","name":"A thing to be sold","price_cents":1990,"stock":42,"sale_starts_at":0,"sale_ends_at":0}}"#
    )
}
