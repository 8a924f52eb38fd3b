//! Activity that an isolate of the edge tier records and an isolate of the home tier writes. A batch is text: a line for
//! each entry, with tabs between its fields. An idempotency key is the last field, because it may hold a tab.

use std::{fmt::Write, rc::Rc, time::Duration};

use super::{
    Activity, ViewSource,
    pace::Pace,
    pending::{Batch, PendingTouch, PendingView},
};
use crate::{
    ports::{network::ClientNetwork, rate_limit::RateLimit, time::Timestamp, writer_lease::LeaseHolder},
    schema::{ids::ItemId, token::Token},
    sessions::SessionTouch,
};

/// A lease outlives the pause before a batch and the batch.
const LEASE: Duration = Duration::from_secs(20);

/// Marks the line of a view that a client reports.
const REPORTED: &str = "r";

fn source(text: &str) -> ViewSource {
    if text == REPORTED { ViewSource::Reported } else { ViewSource::Served }
}

fn text(source: ViewSource) -> &'static str {
    if source == ViewSource::Reported { REPORTED } else { "" }
}

impl Activity {
    /// Takes the lease to send this isolate's batches, until [`Activity::end_relay`]. None while another request has it.
    pub fn begin_relay(&self, now: Timestamp) -> Option<LeaseHolder> {
        self.writer_lease.try_take(now, LEASE)
    }

    /// Gives the lease back.
    pub fn end_relay(&self, holder: LeaseHolder) {
        self.writer_lease.release(holder);
    }

    /// Takes a batch of the activity whose views pass the rate limit.
    pub async fn take_relay_lines(self: &Rc<Self>, view_limit: &RateLimit) -> String {
        self.check_view_limit(view_limit).await;
        // The home tier samples.
        let Batch { touches, view_counts, keyed_views } = self.pending.borrow_mut().take_batch(&Pace::default());
        let mut lines = String::new();
        for PendingTouch { touch: SessionTouch { token, item, at }, source, idempotency_key, network, .. } in touches {
            let (token, item) = (token.as_str(), item.as_ref().map_or("", ItemId::as_str));
            let network = network.map(|network| network.to_string()).unwrap_or_default();
            let (source, key) = (text(source), idempotency_key.unwrap_or_default());
            let at = at.as_millis();
            // Writing to a string cannot fail.
            let _ = writeln!(lines, "touch\t{token}\t{item}\t{at}\t{source}\t{network}\t{key}");
        }
        for ((item, source), count) in view_counts {
            let _ = writeln!(lines, "views\t{item}\t{}\t{count}", text(source));
        }
        for (item, key) in keyed_views {
            let _ = writeln!(lines, "keyed\t{item}\t{key}");
        }
        lines
    }

    /// Adds a line of another isolate's batch. Returns whether it is one.
    pub fn receive(&self, line: &str) -> bool {
        self.read(line).is_some()
    }

    fn read(&self, line: &str) -> Option<()> {
        let (kind, rest) = line.split_once('\t')?;
        let fields = if kind == "touch" { 6 } else { 3 };
        let mut fields = rest.splitn(if kind == "keyed" { 2 } else { fields }, '\t');
        let mut next = || fields.next();
        match kind {
            "touch" => {
                let (token, item) = (Token::parse(next()?)?, ItemId::parse(next()?).ok());
                let touch = SessionTouch { token, item, at: Timestamp::from_millis(next()?.parse().ok()?) };
                let (source, network) = (source(next()?), ClientNetwork::parse(next()?));
                let idempotency_key = next().filter(|key| !key.is_empty()).map(str::to_owned);
                self.push_touch(PendingTouch { touch, source, weight: 1, idempotency_key, network });
            }
            "views" => {
                let (item, source, views) = (ItemId::parse(next()?).ok()?, source(next()?), next()?.parse().ok()?);
                self.pending.borrow_mut().count_views(item, source, views);
            }
            "keyed" => {
                let (item, key) = (ItemId::parse(next()?).ok()?, next()?.to_owned());
                let (source, idempotency_key) = (ViewSource::Reported, Some(key));
                self.pending.borrow_mut().push_allowed_view(PendingView { item, source, weight: 1, idempotency_key });
            }
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SessionConfig;

    const DAY: Duration = Duration::from_hours(24);

    fn activity() -> Rc<Activity> {
        let config = SessionConfig { signing_keys: Vec::new(), limit: 10, idle: DAY, max_age: DAY, view_window: DAY };
        Rc::new(Activity::new(&config))
    }

    #[tokio::test]
    async fn another_isolate_gets_the_same_activity() {
        let (edge, home) = (activity(), activity());
        let item = ItemId::parse("mug").unwrap();
        let touch = SessionTouch {
            token: Token::parse("AGr9hsAAAQIDBAUGBwgJCgsMDQ4P").unwrap(),
            item: Some(item.clone()),
            at: Timestamp::from_millis(1_795_000_000_123),
        };
        let view = |idempotency_key: Option<&str>| PendingView {
            item: item.clone(),
            source: ViewSource::Reported,
            weight: 1,
            idempotency_key: idempotency_key.map(str::to_owned),
        };
        for (touch, key) in [(touch.clone(), Some("a\tb".to_owned())), (SessionTouch { item: None, ..touch }, None)] {
            let network = ClientNetwork::parse("203.0.113.7");
            let touch = PendingTouch { touch, source: ViewSource::Served, weight: 1, idempotency_key: key, network };
            edge.push_touch(touch);
        }
        for view in [view(None), view(None), view(Some("c\td"))] {
            edge.pending.borrow_mut().push_allowed_view(view);
        }
        edge.pending.borrow_mut().count_views(item.clone(), ViewSource::Served, 1);
        let lines = edge.take_relay_lines(&RateLimit::default()).await;
        assert!(edge.is_idle() && lines.lines().all(|line| home.receive(line)), "{lines}");
        assert!(!home.receive("count\thit\t1") && !home.receive("") && !home.receive("touch\tx\ty"));
        let Batch { touches, mut view_counts, keyed_views } = home.pending.borrow_mut().take_batch(&Pace::default());
        let [one, other] = touches.as_slice() else { panic!("two touches") };
        assert_eq!((one.touch.item.as_ref(), one.idempotency_key.as_deref()), (Some(&item), Some("a\tb")));
        assert_eq!((other.touch.item.as_ref(), other.idempotency_key.as_deref()), (None, None));
        assert_eq!((one.network, one.touch.at.as_millis()), (ClientNetwork::parse("203.0.113.7"), 1_795_000_000_123));
        view_counts.sort_by_key(|(_, count)| *count);
        let counted = [((item.clone(), ViewSource::Served), 1), ((item.clone(), ViewSource::Reported), 2)];
        assert_eq!(view_counts, counted);
        assert_eq!(keyed_views, [(item, "c\td".to_owned())]);
    }
}
