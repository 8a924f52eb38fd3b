//! A server's part in the replication.

use super::Position;

/// `master_replid2` of a server that has never been a replica.
const NO_STREAM: &str = "master_replid2:0000000000000000000000000000000000000000";

/// A server's part in the replication, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) position: Option<Position>,
    pub(crate) is_replica: bool,
    /// A replica that is connected to its primary and has its data.
    pub(crate) is_linked: bool,
    /// The server has received the data of its primary since it started. A replica that became the primary has, too.
    pub(crate) has_received: bool,
}

impl Standing {
    /// Reads the section `replication` of INFO.
    pub(crate) fn from_info(info: &str) -> Self {
        let is_replica = info.contains("role:slave");
        let has_received =
            if is_replica { !info.contains("master_link_down_since_seconds:-1") } else { !info.contains(NO_STREAM) };
        let is_linked = info.contains("master_link_status:up");
        Self { position: Position::from_info(info), is_replica, is_linked, has_received }
    }
}
