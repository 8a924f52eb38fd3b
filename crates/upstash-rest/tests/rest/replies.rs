//! Replies of every shape, and any bytes.

use bytes::Bytes;
use upstash_rest::{Command, Error, Pairs, Reply};

use crate::support::{Database, get, incr, refused, wrong};

#[tokio::test]
async fn any_bytes_go_in_and_come_back() {
    let db = Database::new().await;
    for value in [&b"\xff\x00\r\n\xc3"[..], "ü \"\\ \u{0}".as_bytes(), b"", b"OK", b"null"] {
        db.client.run::<()>(Command::write("SET").arg("a key/ü").arg(value)).await.unwrap();
        assert_eq!(db.client.run::<Bytes>(Command::read("GET").arg("a key/ü")).await.unwrap(), value);
    }
}

#[tokio::test]
async fn bytes_that_json_cannot_carry_are_the_last_argument_of_a_single_command() {
    let db = Database::new().await;
    let set = || Command::write("SET").arg("k").arg([0xff]);
    assert_eq!(db.client.pipeline(&[set(), get()]).await, Err(Error::NotUtf8));
    assert_eq!(db.client.run::<()>(set().arg("NX")).await, Err(Error::NotUtf8));
    assert_eq!(db.client.transaction::<()>(&[set()]).await, Err(Error::NotUtf8));
    assert_eq!(db.counts(), (0, 0));
    assert_eq!(db.client.run::<()>(set()).await, Ok(()));
}

#[tokio::test]
async fn a_reply_has_one_of_five_shapes() {
    let db = Database::new().await;
    let status = db.client.run::<Reply>(Command::write("SET").arg("s").arg("v")).await;
    assert_eq!(status, Ok(Reply::Bytes("OK".into())));
    assert_eq!(db.client.run::<Reply>(get()).await, Ok(Reply::Nil));
    assert_eq!(db.client.run::<Reply>(incr()).await, Ok(Reply::Integer(1)));
    assert_eq!(db.client.run::<Reply>(get()).await, Ok(Reply::Bytes("1".into())));
    let nested = "return {1, false, 'a', {redis.status_reply('OK'), {}}}";
    assert_eq!(
        db.client.run::<Reply>(Command::read("EVAL").arg(nested).num(0)).await,
        Ok(Reply::List(vec![
            Reply::Integer(1),
            Reply::Nil,
            Reply::Bytes("a".into()),
            Reply::List(vec![Reply::Bytes("OK".into()), Reply::List(Vec::new())]),
        ]))
    );
}

#[tokio::test]
async fn a_reply_is_read_as_the_type_that_is_asked_for() {
    let db = Database::new().await;
    db.client.run::<()>(Command::write("ZADD").arg("z").num(1.5).arg("a").num(2).arg("b")).await.unwrap();
    let scores = Command::read("ZRANGE").arg("z").num(0).num(-1).arg("WITHSCORES");
    let pairs: Pairs<String, f64> = db.client.run(scores).await.unwrap();
    assert_eq!(pairs.0, [("a".to_owned(), 1.5), ("b".to_owned(), 2.0)]);
    assert_eq!(db.client.run::<Option<u64>>(get()).await, Ok(None));
    assert_eq!(db.client.run::<i64>(Command::read("TYPE").arg("z")).await, Err(Error::UnexpectedType));
    assert_eq!(db.client.run::<Reply>(Command::read("GET").arg("z")).await, refused("WRONGTYPE"));
}

#[tokio::test]
async fn a_command_that_fails_in_a_pipeline_leaves_the_others_done() {
    let db = Database::new().await;
    let replies = db.client.pipeline(&[incr(), wrong(), incr()]).await.unwrap();
    assert_eq!(replies, [Ok(Reply::Integer(1)), refused("WRONGTYPE"), Ok(Reply::Integer(2))]);
    assert_eq!(db.client.all::<(u64, Reply)>(&[incr(), wrong()]).await, refused("WRONGTYPE"));
    assert_eq!(db.number().await, Some(3));
}

#[tokio::test]
async fn an_empty_list_of_commands_takes_no_request() {
    let db = Database::new().await;
    assert_eq!(db.client.pipeline(&[]).await, Ok(Vec::new()));
    assert_eq!(db.client.all(&Vec::new()).await, Ok(Vec::<u64>::new()));
    assert_eq!(db.client.transaction(&Vec::new()).await, Ok(Vec::<u64>::new()));
    assert!(db.watch.requests.borrow().is_empty());
}
