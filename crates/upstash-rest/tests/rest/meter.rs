//! The meter counts by purpose.

use edgefront_gateway::Fault;
use futures_util::future::join_all;
use upstash_rest::{Attribution, Reply, Totals, Usage};

use crate::support::{DEADLINE, Database, LOST, get, incr, refused, wrong};

fn usage(requests: u64, commands: u64, failures: u64) -> Usage {
    Usage { requests, commands, failures }
}

#[tokio::test]
async fn usage_is_counted_for_its_purpose() {
    let db = Database::new().await;
    let meter = db.client.meter();
    let background = db.client.with_deadline(DEADLINE);

    db.client.run::<u64>(incr()).await.unwrap();
    meter.clone().attribute(Attribution::Foreground, db.client.pipeline(&[incr(), get()])).await.unwrap();
    meter.clone().attribute(Attribution::Background, background.run::<u64>(incr())).await.unwrap();

    assert_eq!(meter.take(), Totals { foreground: usage(1, 2, 0), background: usage(1, 1, 0) });
    assert_eq!(meter.take(), Totals::default());
}

#[tokio::test]
async fn a_shared_request_counts_once() {
    let db = Database::new().await;
    let meter = db.client.meter();
    let calls = join_all((0..9).map(|_| db.client.run::<u64>(incr())));
    meter.clone().attribute(Attribution::Foreground, calls).await;
    assert_eq!(meter.take().foreground, usage(2, 9, 0));
}

#[tokio::test]
async fn a_retry_counts_and_a_refused_command_is_no_failure() {
    let db = Database::new().await;
    let meter = db.client.meter();
    db.client.run::<u64>(incr()).await.unwrap();
    let refusal = db.client.run::<Reply>(wrong());
    assert_eq!(meter.clone().attribute(Attribution::Foreground, refusal).await, refused("WRONGTYPE"));
    assert_eq!(meter.take().foreground, usage(1, 1, 0));

    db.gateway.set_fault(Some(Fault::LoseReply));
    let lost = db.client.run::<Reply>(get());
    assert_eq!(meter.clone().attribute(Attribution::Foreground, lost).await, Err(LOST));
    assert_eq!(meter.take().foreground, usage(2, 2, 2));
}
