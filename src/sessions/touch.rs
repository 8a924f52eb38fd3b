//! Records the activity and the item views of sessions. One script call serves many sessions of a shard.

use std::time::Duration;

use upstash_rest::{Command, FromReply, Reply};

use super::session::start_if_young;
use crate::{
    config::SessionConfig,
    ports::{random, time::Timestamp},
    schema::{ids::ItemId, scripts::TOUCH, shard::Shard, token::Token},
};

/// A session's last activity is updated at most once per this interval.
///
/// The order in which the cleanup ends sessions may therefore be wrong by up to 10 s.
pub const TOUCH_EVERY: Duration = Duration::from_secs(10);

/// An activity of a session: a request, or a view of an item's page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTouch {
    pub token: Token,
    /// The item whose page was viewed; `None` for any other request.
    pub item: Option<ItemId>,
    pub at: Timestamp,
}

/// The result of a [`SessionTouch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TouchOutcome {
    /// The session is not live. Nothing was written.
    Ended,
    /// The activity was recorded, and the item, if any, among the last viewed. The view does not count in the ranking.
    Seen,
    /// As [`Seen`](Self::Seen), and the view counts: it is the item's first within [`SessionConfig::view_window`].
    ViewCounts,
    /// As [`ViewCounts`](Self::ViewCounts), in a guest's session. Anybody can start one, so the caller checks the
    /// network, too.
    GuestViewCounts,
}

impl FromReply for TouchOutcome {
    fn from_reply(reply: Reply) -> Result<Self, upstash_rest::Error> {
        Ok(match u32::from_reply(reply)? {
            0 => Self::Ended,
            1 => Self::Seen,
            2 => Self::ViewCounts,
            _ => Self::GuestViewCounts,
        })
    }
}

/// The script call that records `touches`, at least one, all of sessions in `shard`. The reply is one [`TouchOutcome`]
/// each.
///
/// A script, because the writes depend on the check that the session is live.
#[must_use]
pub fn touch_command(shard: Shard, touches: &[&SessionTouch], config: &SessionConfig) -> Command {
    let latest = touches.iter().map(|touch| touch.at).max().unwrap_or(Timestamp::from_millis(0));
    let viewed = touches.iter().map(|touch| shard.viewed(&touch.token));
    let command = Command::script(&TOUCH, [shard.login(), shard.recent()].into_iter().chain(viewed))
        .num(latest - config.idle)
        .num(config.view_window.as_secs())
        .num(TOUCH_EVERY.as_secs())
        // Without random bits, the first session of four is trimmed.
        .num(random::bytes::<1>().map_or(3, |[byte]| byte % 4));
    touches.iter().fold(command, |command, SessionTouch { token, item, at }| {
        // At the latest moment, because the script compares all sessions with its idle time.
        let start = start_if_young(token, latest, config);
        command.arg(token.as_str()).num(*at).arg(item.as_ref().map_or("", ItemId::as_str)).arg(start)
    })
}
