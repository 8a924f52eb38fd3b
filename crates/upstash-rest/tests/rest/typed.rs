//! Typed commands: each reply of a real server has the type that its command declares.

use std::time::Duration;

use bytes::Bytes;
use edgefront_gateway::{Fault, FaultScope};
use upstash_rest::{Command, Expiry, cmd};

use crate::support::{Database, LOST};

const TTL: Duration = Duration::from_hours(1);

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

/// Runs a typed command that must succeed.
macro_rules! run {
    ($db:expr, $command:expr) => {
        $db.client.run($command).await.unwrap_or_else(|error| panic!("{}: {error}", stringify!($command)))
    };
}

#[tokio::test]
async fn commands_of_strings_reply_with_their_types() {
    let db = Database::new().await;
    assert_eq!(run!(db, cmd::get("s")), None);
    run!(db, cmd::set("s", "v"));
    assert_eq!(run!(db, cmd::get("s")), Some(bytes("v")));
    assert_eq!(run!(db, cmd::append("s", "wx")), 3);
    assert_eq!(run!(db, cmd::strlen("s")), 3);
    run!(db, cmd::mset([("a", "1"), ("b", "2")]));
    assert_eq!(run!(db, cmd::mget(["a", "none", "b"])), [Some(bytes("1")), None, Some(bytes("2"))]);
    assert!(!run!(db, cmd::set_nx("a", "3")) && run!(db, cmd::set_nx("c", "3")));
    assert_eq!(run!(db, cmd::set_nx_ex("lock", "me", TTL)), Some(()));
    assert_eq!(run!(db, cmd::set_nx_ex("lock", "you", TTL)), None);
    run!(db, cmd::set_ex("lock", "them", TTL));
    assert!(matches!(run!(db, cmd::pttl("lock")), Expiry::After(left) if left <= TTL));
    assert_eq!(run!(db, cmd::getdel("lock")), Some(bytes("them")));
    assert_eq!(run!(db, cmd::getdel("lock")), None);
    assert_eq!((run!(db, cmd::incr("n")), run!(db, cmd::incr_by("n", -5)), run!(db, cmd::decr("n"))), (1, -4, -5));
    let half = run!(db, cmd::incr_by_float("n", 2.5));
    assert!((half + 2.5).abs() < 1e-9, "{half}");
}

#[tokio::test]
async fn commands_of_hashes_reply_with_their_types() {
    let db = Database::new().await;
    assert_eq!(run!(db, cmd::hset("h", [("a", "1"), ("b", "2")])), 2);
    assert_eq!(run!(db, cmd::hset("h", [("a", "7")])), 0);
    assert_eq!((run!(db, cmd::hget("h", "a")), run!(db, cmd::hget("h", "x"))), (Some(bytes("7")), None));
    assert_eq!(run!(db, cmd::hmget("h", ["b", "x"])), [Some(bytes("2")), None]);
    assert_eq!(run!(db, cmd::hgetall("h")).0, [(bytes("a"), bytes("7")), (bytes("b"), bytes("2"))]);
    assert_eq!(run!(db, cmd::hkeys("h")), [bytes("a"), bytes("b")]);
    assert_eq!(run!(db, cmd::hvals("h")), [bytes("7"), bytes("2")]);
    assert_eq!(run!(db, cmd::hlen("h")), 2);
    assert!(run!(db, cmd::hexists("h", "a")) && !run!(db, cmd::hexists("h", "x")));
    assert!(!run!(db, cmd::hset_nx("h", "a", "8")) && run!(db, cmd::hset_nx("h", "c", "3")));
    assert_eq!(run!(db, cmd::hincr_by("h", "c", 4)), 7);
    assert_eq!(run!(db, cmd::hdel("h", ["a", "x"])), 1);
}

#[tokio::test]
async fn commands_of_lists_reply_with_their_types() {
    let db = Database::new().await;
    assert_eq!((run!(db, cmd::rpush("l", ["b", "c"])), run!(db, cmd::lpush("l", ["a"]))), (2, 3));
    assert_eq!(run!(db, cmd::lrange("l", 0, -1)), [bytes("a"), bytes("b"), bytes("c")]);
    assert_eq!((run!(db, cmd::lindex("l", -1)), run!(db, cmd::lindex("l", 9))), (Some(bytes("c")), None));
    run!(db, cmd::lset("l", 1, "a"));
    assert_eq!(run!(db, cmd::lrem("l", 0, "a")), 2);
    assert_eq!(run!(db, cmd::llen("l")), 1);
    assert_eq!((run!(db, cmd::lpop("l")), run!(db, cmd::lpop("l"))), (Some(bytes("c")), None));
    run!(db, cmd::rpush("l", ["a", "b", "c"]));
    run!(db, cmd::ltrim("l", 0, 1));
    assert_eq!(run!(db, cmd::rpop("l")), Some(bytes("b")));
}

#[tokio::test]
async fn commands_of_sets_reply_with_their_types() {
    let db = Database::new().await;
    assert_eq!(run!(db, cmd::sadd("s", ["a", "b", "a"])), 2);
    assert!(run!(db, cmd::sismember("s", "a")) && !run!(db, cmd::sismember("s", "x")));
    assert_eq!(run!(db, cmd::smismember("s", ["b", "x"])), [true, false]);
    assert_eq!((run!(db, cmd::srem("s", ["a", "x"])), run!(db, cmd::scard("s"))), (1, 1));
    assert_eq!(run!(db, cmd::smembers("s")), [bytes("b")]);
    assert_eq!((run!(db, cmd::spop("s")), run!(db, cmd::spop("s"))), (Some(bytes("b")), None));
}

#[tokio::test]
async fn commands_of_sorted_sets_reply_with_their_types() {
    let db = Database::new().await;
    assert_eq!(run!(db, cmd::zadd("z", [(1.5, "a"), (2.0, "b"), (f64::INFINITY, "c")])), 3);
    assert_eq!(run!(db, cmd::zrange("z", 0, 1)), [bytes("a"), bytes("b")]);
    assert_eq!(run!(db, cmd::zrange_rev("z", 0, 0)), [bytes("c")]);
    assert_eq!(run!(db, cmd::zrange_by_score("z", "(1.5", "2")), [bytes("b")]);
    let scores = [(bytes("a"), 1.5), (bytes("b"), 2.0), (bytes("c"), f64::INFINITY)];
    assert_eq!(run!(db, cmd::zrange_with_scores("z", 0, -1)).0, scores);
    assert_eq!((run!(db, cmd::zscore("z", "a")), run!(db, cmd::zscore("z", "x"))), (Some(1.5), None));
    assert_eq!(run!(db, cmd::zmscore("z", ["x", "c"])), [None, Some(f64::INFINITY)]);
    assert_eq!((run!(db, cmd::zrank("z", "b")), run!(db, cmd::zrank("z", "x"))), (Some(1), None));
    assert_eq!(run!(db, cmd::zrevrank("z", "c")), Some(0));
    assert_eq!((run!(db, cmd::zcard("z")), run!(db, cmd::zcount("z", "-inf", "2"))), (3, 2));
    assert!((run!(db, cmd::zincr_by("z", 0.25, "a")) - 1.75).abs() < 1e-9);
    assert_eq!(run!(db, cmd::zrem("z", ["c", "x"])), 1);
    assert_eq!(run!(db, cmd::zpop_min("z", 1)).0, [(bytes("a"), 1.75)]);
    run!(db, cmd::zadd("z", [(5.0, "e"), (6.0, "f")]));
    assert_eq!(run!(db, cmd::zrem_range_by_rank("z", -1, -1)), 1);
    assert_eq!(run!(db, cmd::zrem_range_by_score("z", "-inf", "+inf")), 2);
}

#[tokio::test]
async fn commands_of_streams_reply_with_their_types() {
    let db = Database::new().await;
    let first = run!(db, cmd::xadd("x", [("a", "1"), ("b", "2")]));
    let second = run!(db, cmd::xadd("x", [("c", "3")]));
    let entries = run!(db, cmd::xrange("x", "-", "+").arg("COUNT").num(1));
    let fields: Vec<_> = entries.into_iter().map(|(id, fields)| (id, fields.0)).collect();
    assert_eq!(fields, [(first.clone(), vec![(bytes("a"), bytes("1")), (bytes("b"), bytes("2"))])]);
    assert_eq!(run!(db, cmd::xrevrange("x", "+", "-")).first().map(|(id, _)| id), Some(&second));
    assert_eq!((run!(db, cmd::xdel("x", [&first])), run!(db, cmd::xlen("x"))), (1, 1));
    assert_eq!(run!(db, cmd::xtrim("x", 0)), 1);
}

#[tokio::test]
async fn commands_of_keys_reply_with_their_types() {
    let db = Database::new().await;
    assert_eq!(run!(db, cmd::ping()), "PONG");
    run!(db, cmd::mset([("a", "1"), ("b", "2")]));
    assert_eq!((run!(db, cmd::exists(["a", "b", "x"])), run!(db, cmd::dbsize())), (2, 2));
    assert_eq!((run!(db, cmd::key_type("a")), run!(db, cmd::key_type("x"))), ("string".to_owned(), "none".to_owned()));
    assert_eq!((run!(db, cmd::pttl("a")), run!(db, cmd::pttl("x"))), (Expiry::Never, Expiry::Missing));
    assert!(run!(db, cmd::expire("a", TTL)) && !run!(db, cmd::expire("x", TTL)));
    assert!(matches!(run!(db, cmd::pttl("a")), Expiry::After(left) if left <= TTL));
    assert!(run!(db, cmd::persist("a")) && !run!(db, cmd::persist("a")));
    let (cursor, mut found) = run!(db, cmd::scan("0").arg("COUNT").num(100));
    found.sort();
    assert_eq!((cursor.as_str(), found), ("0", vec![bytes("a"), bytes("b")]));
    assert_eq!((run!(db, cmd::del(["a", "x"])), run!(db, cmd::unlink(["b"]))), (1, 1));
}

#[tokio::test]
async fn several_typed_commands_give_several_types() {
    let db = Database::new().await;
    let free = Command::write("HSET").arg("h").arg("f").num(1.5).reply_as::<u64>();
    let (old, count, new) = db.client.all((cmd::get("a"), cmd::incr("n"), free)).await.unwrap();
    assert_eq!((old, count, new), (None, 1, 1));
    assert_eq!(db.client.all([cmd::incr("n"), cmd::incr("n")]).await, Ok(vec![2, 3]));
    assert_eq!(db.client.all(vec![cmd::incr("n")]).await, Ok(vec![4]));
    let replies = db.client.pipeline(&[cmd::incr("n").into(), cmd::ping().into()]).await.unwrap();
    assert_eq!(replies.len(), 2);
    assert_eq!(db.counts().0, 4);
}

#[tokio::test]
async fn a_typed_command_knows_whether_it_is_repeatable() {
    let db = Database::new().await;
    let lose = || db.gateway.set_fault_for(Fault::LoseReply, FaultScope::Next(1));
    lose();
    assert_eq!(db.client.run(cmd::set("k", "v")).await, Ok(()));
    lose();
    assert_eq!(db.client.run(cmd::expire("k", TTL)).await, Ok(true));
    lose();
    assert_eq!(db.client.run(cmd::incr("n")).await, Err(LOST));
    lose();
    assert_eq!(db.client.run(cmd::del(["k"])).await, Err(LOST), "it would reply 0");
    lose();
    assert_eq!(db.client.run(cmd::del(["k"]).repeatable()).await, Ok(0));
}
