//! Reads streams of samples.

use std::ops::Range;

use super::TrafficSample;
use crate::{ports::error::Error, schema::redis::Redis};
use upstash_rest::{Command, Pairs};

/// Entries in one reply: usually 1 MB, at most 5 MB.
const BATCH: usize = 2_000;

/// An entry of a stream.
pub(super) struct Entry {
    /// Unix milliseconds.
    pub at: u64,
    pub sample: TrafficSample,
}

type Entries = Vec<(String, Pairs<String, String>)>;

fn parse((id, Pairs(fields)): &(String, Pairs<String, String>)) -> Entry {
    let mut sample = TrafficSample::default();
    for (name, value) in fields {
        sample.add_field(name, value);
    }
    // An id is `<milliseconds>-<number>`.
    let at = id.split('-').next().and_then(|millis| millis.parse().ok()).unwrap_or_default();
    Entry { at, sample }
}

/// Reads the newest entries, newest first: at most `limit`, and none before `since`, in milliseconds.
pub(super) async fn read_newest(redis: &Redis, key: &str, limit: usize, since: u64) -> Result<Vec<Entry>, Error> {
    let (mut newest, mut end) = (Vec::new(), "+".to_owned());
    loop {
        let count = BATCH.min(limit - newest.len());
        let read = Command::read("XREVRANGE").arg(key).arg(end.as_str()).num(since).arg("COUNT").num(count);
        let entries: Entries = redis.run(read).await?;
        newest.extend(entries.iter().map(parse));
        match entries.last() {
            Some((id, _)) if entries.len() == count && newest.len() < limit => end = format!("({id}"),
            _ => return Ok(newest),
        }
    }
}

/// Passes all entries of a period, in milliseconds, to `visit`, oldest first.
pub(super) async fn read_after(
    redis: &Redis,
    key: &str,
    time: Range<u64>,
    visit: &mut dyn FnMut(Entry),
) -> Result<(), Error> {
    let (mut start, end) = (time.start.to_string(), (time.end - 1).to_string());
    loop {
        let read = Command::read("XRANGE").arg(key).arg(start.as_str()).arg(end.as_str()).arg("COUNT").num(BATCH);
        let entries: Entries = redis.run(read).await?;
        entries.iter().map(parse).for_each(&mut *visit);
        match entries.last() {
            Some((id, _)) if entries.len() == BATCH => start = format!("({id}"),
            _ => return Ok(()),
        }
    }
}
