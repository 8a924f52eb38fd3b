//! The histories of shared carts and flash sales are linearizable, while Redis is killed, replies are lost, and
//! concurrent clients give up requests. `cargo xtask soak` does the same for minutes, in workerd.

use std::{env, fs, process, sync::Arc, thread, time::Duration};

use edgefront_gateway::{
    Fault, FaultScope,
    server::{Server, ServerOptions},
};
use edgefront_models::histories::{
    clients::{self, Histories},
    stock::PIECES,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{Reply, SERVICE_KEY, Shop, Store, client};

const KILLS: u32 = 3;
const BETWEEN_KILLS: Duration = Duration::from_millis(2200);
/// Shorter than the Worker waits for Redis, so that some requests are repeated after the restart.
const DOWNTIME: Duration = Duration::from_millis(200);
/// The distance between two lost replies, in requests to Redis.
const LOST_REPLY_EVERY: u32 = 7;

#[tokio::test]
async fn shared_carts_and_sales_are_linearizable_while_redis_is_killed_and_replies_are_lost() {
    let directory = env::temp_dir().join(format!("edgefront-linearizable-{}", process::id()));
    fs::create_dir_all(&directory).expect("a directory");
    let options = ServerOptions { dir: Some(directory.clone()), databases: 1, ..ServerOptions::default() };
    let mut server = Server::start(options).expect("a server");
    let store = Store::on(&server.url()).await;
    store.gateway.set_fault_for(Fault::LoseReply, FaultScope::Every(LOST_REPLY_EVERY));
    let variables = [("ROWS_URL", "{origin}/rows"), ("REDIS_TIMEOUT_MS", "300"), ("FLASH_HOLD", "3600")];
    let shop = Shop::native_on(store, &variables);
    shop.origin.answer_with(|asked| {
        let ids = asked.path.split_once("ids=").map_or("", |(_, ids)| ids);
        let rows: Vec<Value> = ids.split(',').map(sale).collect();
        Reply::html(json!(rows).to_string())
    });
    let killer = thread::spawn(move || {
        for _ in 0..KILLS {
            thread::sleep(BETWEEN_KILLS);
            server.crash().expect("the server runs");
            thread::sleep(DOWNTIME);
            server.start_again().expect("the server starts again");
        }
        server
    });
    let (histories, url) = (Arc::<Histories>::default(), shop.url.clone());
    let under_test =
        clients::Shop { http: client(), url: Arc::new(move || url.clone()), service_key: SERVICE_KEY.to_owned() };
    histories
        .clone()
        .record_until(under_test, Instant::now() + KILLS * (BETWEEN_KILLS + DOWNTIME) + clients::ROUND)
        .await;
    drop(killer.join().expect("the server was killed and started"));
    let _ = fs::remove_dir_all(directory);
    let summary = histories.check();
    println!("{summary}");
    assert!(summary.violated.is_empty(), "{summary:?}");
    assert!(summary.linearizable > 0 && summary.without_response > 0, "{summary:?}");
}

/// A row of a flash sale that runs for this century.
fn sale(id: &str) -> Value {
    json!({"id": id, "sale_starts_at": 1, "sale_ends_at": 4_102_444_800_u64, "sale_pieces": PIECES, "sale_sold": 0})
}
