//! Events that only a cluster has: slots that move, and a failover to a replica.

use std::time::Duration;

use edgefront::schema::token::Token;
use edgefront_gateway::server::ServerCluster;
use http::Method;
use serde_json::{Value, json};

use super::world::World;
use crate::support::{Store, eventually};

/// The hash tags of all data: four shards and three groups.
const TAGS: [&str; 7] = ["0", "1", "2", "3", "pages", "rows", "orders"];

/// The reply to a command, without the reply to `QUIT`.
fn say(servers: &ServerCluster, port: u16, command: &str) -> String {
    let reply = servers.say(port, command).expect("a reply");
    reply.trim_end_matches("+OK\r\n").trim().to_owned()
}

fn id(servers: &ServerCluster, port: u16) -> String {
    say(servers, port, "CLUSTER MYID").lines().nth(1).expect("an id").to_owned()
}

fn slot(servers: &ServerCluster, tag: &str) -> String {
    say(servers, servers.ports()[0], &format!("CLUSTER KEYSLOT {{{tag}}}")).trim_start_matches(':').to_owned()
}

/// The ports of the slot's server and of the next one.
fn way(servers: &ServerCluster, tag: &str) -> (u16, u16) {
    let ports = servers.ports();
    let is_owner = |port: &u16| !say(servers, *port, &format!("EXISTS no-such-key:{{{tag}}}")).starts_with("-MOVED");
    let owner = ports.iter().position(is_owner).expect("an owner");
    (ports[owner], ports[(owner + 1) % ports.len()])
}

/// Starts the migration of all slots of the data to another server.
pub fn begin_moving(servers: &ServerCluster) {
    for tag in TAGS {
        mark_as_moving(servers, &slot(servers, tag), way(servers, tag));
    }
}

/// Completes the migration: moves the keys, then the slots.
pub fn end_moving(servers: &ServerCluster) {
    for tag in TAGS {
        let (slot, (from, to)) = (slot(servers, tag), way(servers, tag));
        move_keys(servers, &slot, (from, to));
        give(servers, tag, &slot, (from, to));
    }
}

fn mark_as_moving(servers: &ServerCluster, slot: &str, (from, to): (u16, u16)) {
    say(servers, to, &format!("CLUSTER SETSLOT {slot} IMPORTING {}", id(servers, from)));
    say(servers, from, &format!("CLUSTER SETSLOT {slot} MIGRATING {}", id(servers, to)));
}

/// Moves the keys of a slot. A late message about an earlier move can make a server forget that it imports a slot; it then
/// refuses the keys, so the import is announced again.
fn move_keys(servers: &ServerCluster, slot: &str, (from, to): (u16, u16)) {
    let mut refusal = String::new();
    for _ in 0..50 {
        let keys = say(servers, from, &format!("CLUSTER GETKEYSINSLOT {slot} 1000"));
        let keys: Vec<_> = keys.lines().filter(|line| !line.starts_with(['*', '$'])).collect();
        if keys.is_empty() {
            return;
        }
        refusal = say(servers, from, &format!("MIGRATE 127.0.0.1 {to} \"\" 0 1000 KEYS {}", keys.join(" ")));
        if !refusal.is_empty() {
            std::thread::sleep(Duration::from_millis(20));
            mark_as_moving(servers, slot, (from, to));
        }
    }
    panic!("the keys of slot {slot} do not move: {refusal}");
}

/// Waits until all servers agree that the slot belongs to the server at `to`.
///
/// The new owner takes an epoch above the highest that it knows. If it did not know the last move yet, two owners could
/// have the same epoch, and an old message could take the slot away again.
fn give(servers: &ServerCluster, tag: &str, slot: &str, (from, to): (u16, u16)) {
    let id = id(servers, to);
    let agrees = |port: u16| match say(servers, port, &format!("EXISTS no-such-key:{{{tag}}}")) {
        answer if port == to => answer == ":0",
        answer => answer.starts_with("-MOVED") && answer.ends_with(&format!(":{to}")),
    };
    for _ in 0..50 {
        if have_one_epoch(servers) {
            mark_as_moving(servers, slot, (from, to));
            for port in [to].into_iter().chain(servers.ports()) {
                say(servers, port, &format!("CLUSTER SETSLOT {slot} NODE {id}"));
            }
            if have_one_epoch(servers) && servers.ports().into_iter().all(agrees) {
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("the servers do not agree on the owner of slot {slot}");
}

/// True if every server knows the highest epoch.
fn have_one_epoch(servers: &ServerCluster) -> bool {
    let epoch = |port: u16| {
        let info = say(servers, port, "CLUSTER INFO");
        info.lines().find(|line| line.starts_with("cluster_current_epoch")).map(str::to_owned)
    };
    let epochs: Vec<_> = servers.ports().into_iter().map(epoch).collect();
    epochs.windows(2).all(|two| two[0] == two[1])
}

/// Stops the replication, so that the replica lacks all later writes of its primary.
fn cut_off(servers: &ServerCluster, primary: u16, replica: u16) {
    for setting in ["masteruser nobody", "masterauth wrong"] {
        say(servers, replica, &format!("CONFIG SET {setting}"));
    }
    say(servers, primary, "CLIENT KILL TYPE replica");
    servers.until(replica, "INFO replication", "master_link_status:down").expect("the link is down");
}

async fn put(world: &World, item: &str) -> u16 {
    let path = format!("/_edge/v1/cart/items/{item}");
    world.send(Method::PUT, &path, &[], json!({"quantity": 2})).await.status
}

/// Reports the order `order-1` of two mugs.
async fn report_order(world: &World) -> u16 {
    let order = json!({"order_id": "order-1", "items": [{"id": "mug", "quantity": 2}], "user": "ada"});
    world.service(Method::POST, "/_edge/v1/orders", "order", order).await.status
}

async fn cart(world: &World) -> Value {
    world.get("/_edge/v1/cart").await.json()["items"].take()
}

#[tokio::test]
async fn after_a_failover_that_loses_writes_the_same_calls_do_them_again() {
    let mut servers =
        tokio::task::spawn_blocking(|| ServerCluster::start(3).expect("a cluster")).await.expect("no panic");
    let world = World::new(Store::on_cluster(&servers).await);
    let login = world.service(Method::POST, "/_edge/v1/sessions", "login", json!({"user": "ada"})).await;
    assert_eq!((login.status, put(&world, "mug").await), (201, 200));
    // The replica of the server that has ada's session.
    let token = Token::parse(&world.token()).expect("a token");
    let shard = world.store.redis.keys().shard_of(&token).number().to_string();
    let (primary, _) = way(&servers, &shard);
    let replica = servers.add_replica(primary).expect("a replica");
    cut_off(&servers, primary, replica);
    assert_eq!((report_order(&world).await, put(&world, "pan").await), (204, 200));
    assert_eq!(cart(&world).await, json!([{"id": "pan", "quantity": 2}]));

    let dead = servers.ports().iter().position(|port| *port == primary).expect("the server");
    servers.stop(dead);
    assert_eq!(world.get("/products/mug").await.status, 200, "pages survive");
    let refused = world.get("/_edge/v1/session").await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, "5"));
    assert_eq!(put(&world, "cup").await, 503);

    servers.until(replica, "CLUSTER FAILOVER TAKEOVER", "+OK\r\n+OK").expect("the replica takes over");
    eventually("the session is found again", async || world.get("/_edge/v1/session").await.json()["user"] == "ada")
        .await;
    assert_eq!(cart(&world).await, json!([{"id": "mug", "quantity": 2}]), "the writes after the cut are lost");
    assert_eq!((report_order(&world).await, put(&world, "pan").await), (204, 200));
    assert_eq!(cart(&world).await, json!([{"id": "pan", "quantity": 2}]));
    let bought = world.number(&["ZSCORE", "bought:", "mug"]).await;
    assert!((0.99..=1.0).contains(&bought), "{bought}: the insights count the order once");
}
