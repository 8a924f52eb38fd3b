use super::*;
use crate::{
    costs,
    scenario::{Layout, Scenario},
    shared::START,
};

/// Requests and commands of a lookup of a page that is not stored.
fn usage_of_a_miss(read: Duration, is_confirmation: bool) -> (f64, f64) {
    let shared = Shared::new(Scenario::new(Layout::Regions, 100.0)).unwrap();
    let site = Site { city: 0, cache: 0, read, write: Duration::from_millis(80) };
    let isolate = Isolate::new(&shared, 0, 1.0, site);
    let view = View { item: 7, is_signed_in: true, has_token: true, is_confirmation, held: 0, weight: 1.0 };
    let (_, wait) = isolate.look_up(view, Some(LeaseRequest::IfStale), START);
    let usage = &shared.redis.borrow().usage;
    let second = if usage.requests > 1.0 { site.write } else { Duration::ZERO };
    assert_eq!(wait, site.read + second);
    (usage.requests, usage.commands)
}

#[test]
fn a_page_that_a_replica_lacks_takes_a_second_request_without_the_session() {
    let once = costs::LOOKUP + costs::RANK + costs::SESSION;
    let replica = Duration::from_millis(5);
    assert_eq!(usage_of_a_miss(Duration::from_millis(80), false), (1.0, once));
    assert_eq!(usage_of_a_miss(replica, false), (2.0, once + costs::LOOKUP + costs::RANK));
    assert_eq!(usage_of_a_miss(replica, true), (1.0, once), "a confirmation renders nothing");
}
