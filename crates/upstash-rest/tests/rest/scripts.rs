//! Scripts are sent by their hash, and in full when the server does not know them. Each test has its own script, so
//! that the server has not seen it.

use bytes::Bytes;
use edgefront_gateway::{Fault, FaultScope};
use futures_util::future::{join, join_all};
use upstash_rest::{Command, Error, FromReply, Script, cmd, script};

use crate::support::{DEADLINE, Database, LOST, database_without, incr, refused};

static TWICE: Script = script!("twice", "return ARGV[1] .. ARGV[1]", "10c9e9c3f46da585b3f3125ba6f06f6ac55c2b4b");
static THRICE: Script = script!("thrice", "return ARGV[1] .. ARGV[1] .. ARGV[1]");
static FOURFOLD: Script = script!("fourfold", "return ARGV[1] .. ARGV[1] .. ARGV[1] .. ARGV[1]");
static FIVEFOLD: Script = script!("fivefold", "return ARGV[1] .. ARGV[1] .. ARGV[1] .. ARGV[1] .. ARGV[1]");
static VISIT: Script = script!("visit", include_str!("visit.lua"));
static LOADED: Script = script!("loaded", "return 'loaded'");
/// It writes, so Redis refuses its read-only form.
static WRITES: Script = script!("writes", "#!lua flags=allow-key-locking\nreturn redis.call('INCR', KEYS[1])")
    .readable("5a530c08b38b6ded4007e66e6fa340d5f0df45a9");
static READS: Script = script!("reads", "#!lua flags=allow-key-locking\nreturn redis.call('HLEN', KEYS[1])")
    .readable("bca24a288c819cc21d11b68de41ffed85d1e8da0");

fn call(script: &'static Script, text: impl AsRef<[u8]>) -> Command {
    Command::script(script, [] as [&str; 0]).arg(text)
}

#[tokio::test]
async fn a_script_is_sent_in_full_once_and_by_its_hash_from_then_on() {
    let db = Database::new().await;
    assert_eq!(db.client.run::<String>(call(&TWICE, "ab")).await.unwrap(), "abab");
    assert_eq!(db.counts().0, 2);
    assert_eq!(db.client.run::<Bytes>(call(&TWICE, [0xff])).await.unwrap(), [0xff, 0xff].as_slice());
    assert_eq!(db.counts().0, 3);
}

#[tokio::test]
async fn in_a_pipeline_only_the_unknown_script_is_sent_again() {
    let db = Database::new().await;
    let replies: (u64, String, u64) = db.client.all(&[incr(), call(&THRICE, "a"), incr()]).await.unwrap();
    assert_eq!(replies, (1, "aaa".to_owned(), 2));
    assert_eq!(db.counts(), (2, 4));
}

/// The first request has executed the other commands, so their replies count.
#[tokio::test]
async fn in_a_pipeline_an_error_of_the_second_request_belongs_to_the_unknown_script_alone() {
    let db = Database::new().await;
    let commands = [incr(), call(&FIVEFOLD, "a"), incr()];
    let number = |reply: Result<_, Error>| reply.and_then(u64::from_reply);
    for (number_before, fault, error) in [(0, Fault::quota(), Error::Quota), (2, Fault::Refuse, LOST)] {
        db.gateway.set_fault_for(fault, FaultScope::Every(2));
        let replies = db.client.pipeline(&commands).await.expect("the replies of the first request");
        let [first, script, last] = <[_; 3]>::try_from(replies).unwrap();
        assert_eq!((number(first), number(last)), (Ok(number_before + 1), Ok(number_before + 2)));
        assert_eq!(script, Err(error));
    }
    db.gateway.set_fault_for(Fault::quota(), FaultScope::Every(2));
    let alone = db.client.pipeline(&[call(&FIVEFOLD, "a")]).await;
    assert_eq!(alone, Err(Error::Quota), "nothing was executed");
}

#[tokio::test]
async fn callers_in_a_batch_learn_each_for_itself_that_a_script_is_unknown() {
    let db = Database::new().await;
    let ahead = db.client.run::<u64>(incr());
    let calls = join_all(["a", "b"].map(|text| db.client.run::<String>(call(&FOURFOLD, text))));
    let (_, calls) = join(ahead, calls).await;
    assert_eq!(calls, [Ok("aaaa".to_owned()), Ok("bbbb".to_owned())]);
}

#[tokio::test]
async fn a_script_from_a_file_is_sent_without_its_comments() {
    let db = Database::new().await;
    let visit = |page: &str| Command::script(&VISIT, [page, "visits"]).num(1).reply_as::<(u64, u64)>();
    assert_eq!(db.client.run(visit("a")).await, Ok((1, 1)));
    assert_eq!(db.client.run(visit("b")).await, Ok((1, 2)));
    assert!(VISIT.source.starts_with("#!lua flags=allow-key-locking\nlocal page"), "{}", VISIT.source);
    assert_eq!(db.counts().0, 3);
}

#[tokio::test]
async fn a_script_can_be_loaded_ahead() {
    let db = Database::new().await;
    assert_eq!(db.client.run(cmd::script_exists([&LOADED])).await, Ok(vec![false]));
    assert_eq!(db.client.run(cmd::script_load(&LOADED)).await.as_deref(), Ok(LOADED.sha1));
    assert_eq!(db.client.run(cmd::script_exists([&LOADED])).await, Ok(vec![true]));
    assert_eq!(db.client.run::<String>(Command::script(&LOADED, [""; 0])).await.as_deref(), Ok("loaded"));
    assert_eq!(db.counts().0, 4);
}

#[tokio::test]
async fn a_script_whose_read_only_form_is_refused_runs_on_the_primary_from_then_on() {
    let Database { client, gateway, .. } = &Database::new().await;
    let client = client.with_deadline(DEADLINE).with_read_regions();
    let write = || client.near(Command::script(&WRITES, ["n"]));
    let requests = || gateway.counts().requests;
    assert_eq!(client.run::<u64>(write()).await, Ok(1));
    assert!(!client.has_read_regions());
    let before = requests();
    assert_eq!(client.run::<u64>(write()).await, Ok(2));
    assert_eq!(requests() - before, 1, "by the hash of the form that writes");
}

#[tokio::test]
async fn a_script_that_fails_on_a_key_of_another_type_is_no_refusal_of_its_read_only_form() {
    let Database { client, gateway, .. } = &Database::new().await;
    let client = client.with_deadline(DEADLINE).with_read_regions();
    let read = || client.near(Command::script(&READS, ["n"]));
    assert_eq!(client.run::<u64>(read()).await, Ok(0));
    client.run::<u64>(incr()).await.unwrap();
    let before = gateway.counts().requests;
    assert_eq!(client.run::<u64>(read()).await, refused("WRONGTYPE"));
    assert_eq!(client.pipeline(&[read(), read()]).await.unwrap(), [refused("WRONGTYPE"), refused("WRONGTYPE")]);
    assert_eq!(gateway.counts().requests - before, 2, "no call is sent again");
    assert!(client.has_read_regions());
}

#[tokio::test]
async fn a_user_without_permission_for_the_read_only_form_reads_on_the_primary() {
    let Database { client, gateway, .. } = &database_without(&["eval_ro", "evalsha_ro"]).await;
    let client = client.with_deadline(DEADLINE).with_read_regions();
    let read = || client.near(Command::script(&READS, ["h"]));
    assert_eq!(client.run::<u64>(read()).await, Ok(0));
    assert!(!client.has_read_regions());
    let before = gateway.counts().requests;
    assert_eq!(client.run::<u64>(read()).await, Ok(0));
    assert_eq!(gateway.counts().requests - before, 1);
}
