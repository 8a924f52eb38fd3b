//! The client on a real server behind the gateway: the number of requests, and the meaning of replies.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use bytes::Bytes;
use edgefront_gateway::Fault;
use futures_util::future::{join, join_all, join3};
use upstash_rest::{Command, Error, Pairs, Reply, Script, TransportError};

use crate::support::Store;

/// Only one test uses each of these scripts, so the server does not know them.
static TWICE: Script = Script {
    name: "twice",
    source: "return ARGV[1] .. ARGV[1]",
    sha1: "10c9e9c3f46da585b3f3125ba6f06f6ac55c2b4b",
    read_only_sha1: "",
};
static THRICE: Script = Script {
    name: "thrice",
    source: "return ARGV[1] .. ARGV[1] .. ARGV[1]",
    sha1: "a8d01b13e8a36dbea273fe25d2bc719c46f9e87b",
    read_only_sha1: "",
};
static FOURFOLD: Script = Script {
    name: "fourfold",
    source: "return ARGV[1] .. ARGV[1] .. ARGV[1] .. ARGV[1]",
    sha1: "d0d2f3f33cbc33cdf1da22e7cd088763f13877d2",
    read_only_sha1: "",
};

fn call(script: &'static Script, text: impl AsRef<[u8]>) -> Command {
    Command::script(script, [] as [&str; 0]).arg(text)
}

fn incr() -> Command {
    Command::write("INCR").arg("n")
}

fn get() -> Command {
    Command::read("GET").arg("n")
}

#[tokio::test]
async fn any_bytes_go_in_and_come_back() {
    let store = Store::new().await;
    for value in [&b"\xff\x00\r\n\xc3"[..], "ü \"\\ \u{0}".as_bytes(), b"", b"OK", b"null"] {
        store.redis.run::<()>(Command::write("SET").arg("a key/ü").arg(value)).await.unwrap();
        assert_eq!(store.redis.run::<Bytes>(Command::read("GET").arg("a key/ü")).await.unwrap(), value);
    }
}

#[tokio::test]
async fn replies_are_read_as_the_type_that_is_asked_for() {
    let store = Store::new().await;
    store.redis.run::<()>(Command::write("ZADD").arg("z").num(1.5).arg("a").num(2).arg("b")).await.unwrap();
    let scores = Command::read("ZRANGE").arg("z").num(0).num(-1).arg("WITHSCORES");
    let pairs: Pairs<String, f64> = store.redis.run(scores).await.unwrap();
    assert_eq!(pairs.0, [("a".to_owned(), 1.5), ("b".to_owned(), 2.0)]);
    assert_eq!(store.redis.run::<Option<u64>>(get()).await, Ok(None));
    assert_eq!(store.redis.run::<i64>(Command::read("TYPE").arg("z")).await, Err(Error::UnexpectedType));
    assert_eq!(store.redis.run::<Reply>(Command::read("GET").arg("z")).await, refused("WRONGTYPE"));
}

fn refused<T>(code: &str) -> Result<T, Error> {
    Err(Error::Refused { code: code.to_owned() })
}

#[tokio::test]
async fn a_script_goes_in_full_once_and_by_its_hash_from_then_on() {
    let store = Store::new().await;
    assert_eq!(store.redis.run::<String>(call(&TWICE, "ab")).await.unwrap(), "abab");
    assert_eq!(store.counts().requests, 2);
    assert_eq!(store.redis.run::<Bytes>(call(&TWICE, [0xff])).await.unwrap(), [0xff, 0xff].as_slice());
    assert_eq!(store.counts().requests, 3);
}

#[tokio::test]
async fn in_a_pipeline_only_the_unknown_script_is_sent_again() {
    let store = Store::new().await;
    let replies: (u64, String, u64) = store.redis.all(&[incr(), call(&THRICE, "a"), incr()]).await.unwrap();
    assert_eq!(replies, (1, "aaa".to_owned(), 2));
    assert_eq!(store.counts().commands, 4);
}

#[tokio::test]
async fn a_command_that_fails_in_a_pipeline_leaves_the_others_done() {
    let store = Store::new().await;
    let wrong = Command::write("LPUSH").arg("n").arg("x");
    let replies = store.redis.pipeline(&[incr(), wrong, incr()]).await.unwrap();
    assert_eq!(replies, [Ok(Reply::Integer(1)), refused("WRONGTYPE"), Ok(Reply::Integer(2))]);
    assert_eq!(store.redis.pipeline(&[]).await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_transaction_is_done_whole_or_not_at_all() {
    let store = Store::new().await;
    assert_eq!(store.redis.transaction::<(u64, u64)>(&[incr(), incr()]).await.unwrap(), (1, 2));
    let discarded = store.redis.transaction::<Reply>(&[incr(), Command::write("NOSUCHCOMMAND")]).await;
    assert!(matches!(discarded, Err(Error::Unavailable)), "{discarded:?}");
    assert_eq!(store.raw(&["GET", "n"]).await, "2");
}

#[tokio::test]
async fn a_write_whose_reply_is_lost_is_not_sent_again() {
    let store = Store::new().await;
    store.gateway.set_fault(Some(Fault::LoseReply));
    let lost = store.redis.run::<u64>(incr()).await;
    assert_eq!(lost, Err(Error::Transport(TransportError::Unreachable)));
    assert_eq!(store.raw(&["GET", "n"]).await, "1");
}

#[tokio::test]
async fn a_read_and_a_write_that_may_be_repeated_are_tried_twice() {
    let store = Store::new().await;
    store.gateway.set_fault(Some(Fault::LoseReply));
    let lost = Err(Error::Transport(TransportError::Unreachable));
    assert_eq!(store.redis.run::<Reply>(get()).await, lost);
    assert_eq!(store.counts().requests, 2);
    assert_eq!(store.redis.run::<Reply>(Command::write("DEL").arg("n").repeatable()).await, lost);
    assert_eq!(store.counts().requests, 4);
    assert_eq!(store.redis.pipeline(&[get(), incr()]).await.map(|_| Reply::Nil), lost);
    assert_eq!(store.counts().requests, 5);
}

#[tokio::test]
async fn no_call_outlives_its_deadline() {
    let store = Store::new().await;
    let app = store.app(&[("REDIS_TIMEOUT_MS", "100")]);
    store.gateway.set_fault(Some(Fault::Slow(Duration::from_secs(30))));
    let begin = Instant::now();
    assert_eq!(app.redis.run::<Reply>(get()).await, Err(Error::Transport(TransportError::Timeout)));
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn concurrent_calls_share_a_request() {
    let store = Store::new().await;
    let calls = (0..18).map(|_| store.redis.run::<u64>(incr()));
    let numbers: HashSet<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(numbers, (1..=18).collect());
    // The first command is sent alone. Then 16 commands share a request, and one is left.
    assert_eq!((store.counts().requests, store.counts().commands), (3, 18));
}

#[tokio::test]
async fn nobody_with_a_short_question_shares_a_request_with_a_page() {
    let store = Store::new().await;
    let page = Command::write("SET").arg("page").arg("x".repeat(20 << 10));
    let pages = join_all((0..14).map(|_| store.redis.run::<Reply>(page.clone())));
    let numbers = join_all((0..3).map(|_| store.redis.run::<u64>(incr())));
    let (pages, numbers) = join(pages, numbers).await;
    assert!(pages.iter().all(Result::is_ok) && numbers.iter().all(Result::is_ok));
    // The first command of each kind is sent alone. Then 6 pages share a request, twice, and one is left. The two other
    // numbers share a request.
    assert_eq!((store.counts().requests, store.counts().commands), (6, 17));
}

#[tokio::test]
async fn each_call_of_a_shared_request_gets_its_own_replies() {
    let store = Store::new().await;
    let wrong = Command::write("LPUSH").arg("n").arg("x");
    let several = [incr(), wrong.clone(), incr()];
    let ahead = store.redis.run::<u64>(incr());
    let shared = join3(store.redis.run::<u64>(wrong), store.redis.pipeline(&several), store.redis.run::<u64>(incr()));
    let (_, (one, several, last)) = join(ahead, shared).await;
    assert_eq!((one, last), (refused("WRONGTYPE"), Ok(4)));
    assert_eq!(several.unwrap(), [Ok(Reply::Integer(2)), refused("WRONGTYPE"), Ok(Reply::Integer(3))]);
    assert_eq!(store.counts().requests, 2);
}

#[tokio::test]
async fn of_calls_that_shared_a_lost_reply_only_the_harmless_are_sent_again() {
    let store = Store::new().await;
    store.gateway.set_fault(Some(Fault::LoseReply));
    let calls = [incr(), incr(), get(), incr(), get()].map(|command| store.redis.run::<Reply>(command));
    let lost = || Err(Error::Transport(TransportError::Unreachable));
    assert_eq!(join_all(calls).await, [(); 5].map(|()| lost()));
    assert_eq!(store.raw(&["GET", "n"]).await, "3");
    assert_eq!((store.counts().requests, store.counts().commands), (4, 7));
}

#[tokio::test]
async fn calls_of_a_script_that_nobody_knows_find_their_way_one_by_one() {
    let store = Store::new().await;
    let ahead = store.redis.run::<u64>(incr());
    let calls = join_all(["a", "b"].map(|text| store.redis.run::<String>(call(&FOURFOLD, text))));
    let (_, calls) = join(ahead, calls).await;
    assert_eq!(calls, [Ok("aaaa".to_owned()), Ok("bbbb".to_owned())]);
}

#[tokio::test]
async fn calls_with_large_replies_share_with_few() {
    let store = Store::new().await;
    let large = || store.redis.run::<Reply>(get().expecting(3 << 20));
    let (_, replies) = join(large(), join_all((0..4).map(|_| large()))).await;
    assert!(replies.iter().all(|reply| *reply == Ok(Reply::Nil)), "{replies:?}");
    assert_eq!(store.counts().requests, 3);
}

#[tokio::test]
async fn nobody_waits_beyond_the_deadline_for_what_another_sends() {
    let store = Store::new().await;
    let app = store.app(&[("REDIS_TIMEOUT_MS", "100")]);
    store.gateway.set_fault(Some(Fault::Slow(Duration::from_secs(30))));
    let answers = join_all((0..5).map(|_| app.redis.run::<Reply>(get()))).await;
    assert_eq!(answers, [(); 5].map(|()| Err(Error::Transport(TransportError::Timeout))));
}

#[tokio::test]
async fn what_is_not_the_protocol_is_an_error_that_says_so() {
    let store = Store::new().await;
    let quota = "ERR max requests limit exceeded. Limit: 500000, Usage: 500000. See upstash docs.";
    for (fault, error) in [
        (Fault::Garbage, Error::NotRest { status: 200 }),
        (Fault::Truncate, Error::NotRest { status: 200 }),
        (Fault::ErrorBody(quota.to_owned()), Error::Quota),
        (Fault::Status(429, "{}".to_owned()), Error::Quota),
        (Fault::Status(401, r#"{"error":"WRONGPASS invalid or missing auth token"}"#.to_owned()), Error::Unauthorized),
        (Fault::Refuse, Error::Transport(TransportError::Unreachable)),
    ] {
        store.gateway.set_fault(Some(fault.clone()));
        assert_eq!(store.redis.run::<Reply>(incr()).await, Err(error.clone()), "{fault:?}");
        assert_eq!(store.redis.all::<Reply>(&[incr(), get()]).await, Err(error), "{fault:?}");
    }
}
