//! The keys that all visitors share, moved to the names of another layout: a step of a change of `SHARDS`.
//!
//! `cargo xtask carry-over` runs this code; the Worker does not contain it. "Change `SHARDS` in a running shop" in
//! `docs/scaling.md` says when.

use std::time::Duration;

use upstash_rest::{Client, Command, Error, Script, script};

/// Keys that one call looks at. A call takes about 10 ms, in which the database answers nothing else.
const KEYS_PER_CALL: u32 = 2000;

/// Refusals in a row that are waited out.
const MAX_PAUSES: u32 = 30;

static MOVE: Script = script!("carry-over", include_str!("move.lua"), "1307295e8d17350920e939e70e4816217d6851f2");

/// The names that the shared keys get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedNames {
    /// The book's: `viewed:`.
    Book,
    /// With hash tags: `viewed:{pages}`.
    Tags,
}

/// The half-lives of the Worker. Counts of both names are brought to the same half-life before they are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HalfLives {
    /// `RANKING_HALF_LIFE`.
    pub ranking: Duration,
    /// `INSIGHTS_HALF_LIFE`.
    pub insights: Duration,
}

/// The progress until now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CarryOverProgress {
    /// Keys that were looked at, about.
    pub seen: u64,
    /// Keys of the database at the beginning.
    pub total: u64,
    /// Keys that have moved.
    pub moved: u64,
}

/// The reason why keys are left. Those that have moved stay moved; the next run moves the rest.
#[derive(Debug, thiserror::Error)]
pub enum CarryOverError {
    /// A Redis Cluster needs tags from the beginning, so nothing is to be moved there.
    #[error("the database is a Redis Cluster, where all keys have tags already")]
    Cluster,
    #[error(transparent)]
    Redis(#[from] Error),
}

/// Moves the shared keys. Ends with a progress whose `moved` is 0 if nothing was left. Each call of the script may be
/// repeated.
///
/// A call that a rate limit refuses is repeated after a `pause`: another run would begin with the first keys again, and
/// get no further.
///
/// # Errors
/// [`CarryOverError`], after [`MAX_PAUSES`] refusals in a row.
pub async fn carry_over(
    client: &Client,
    names: SharedNames,
    half_lives: HalfLives,
    mut report: impl FnMut(CarryOverProgress),
    pause: impl AsyncFn(),
) -> Result<CarryOverProgress, CarryOverError> {
    if is_cluster(client).await? {
        return Err(CarryOverError::Cluster);
    }
    let total = client.run(Command::read("DBSIZE").reply_as::<u64>()).await?;
    let (mut progress, mut cursor) = (CarryOverProgress { total, ..CarryOverProgress::default() }, "0".to_owned());
    loop {
        let call = Command::script(&MOVE, [] as [&str; 0])
            .arg(names.argument())
            .arg(&cursor)
            .num(KEYS_PER_CALL)
            .num(half_lives.ranking.as_secs())
            .num(half_lives.insights.as_secs());
        let call = call.repeatable();
        let mut pauses = 0;
        let (next, moved): (String, u64) = loop {
            match client.run(call.clone()).await {
                Err(Error::Quota) if pauses < MAX_PAUSES => pauses += 1,
                outcome => break outcome?,
            }
            pause().await;
        };
        progress.moved += moved;
        progress.seen = total.min(progress.seen + u64::from(KEYS_PER_CALL));
        report(progress);
        if next == "0" {
            return Ok(progress);
        }
        cursor = next;
    }
}

async fn is_cluster(client: &Client) -> Result<bool, Error> {
    let info: String = client.run(Command::read("INFO").arg("cluster").reply_as()).await?;
    Ok(info.lines().any(|line| line.trim_end() == "cluster_enabled:1"))
}

impl SharedNames {
    const fn argument(self) -> &'static str {
        match self {
            Self::Book => "book",
            Self::Tags => "tags",
        }
    }
}
