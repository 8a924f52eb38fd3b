//! State that all requests of a gateway share.

use std::time::Duration;

use crate::{
    auth::Tokens, fault::FaultInjector, rate::CommandLimit, region::Region, script::ScriptShas, stream::Streams,
    traffic::TrafficRecorder, upstream::Upstream,
};

/// State of a gateway.
pub(crate) struct GatewayState {
    pub(crate) tokens: Tokens,
    pub(crate) upstream: Upstream,
    /// The region of `upstream`; `None` for a database without replicas.
    pub(crate) region: Option<Region>,
    /// Time limit for each exchange with Redis.
    pub(crate) redis_timeout: Duration,
    /// Time limit for a request's body to arrive.
    pub(crate) body_timeout: Duration,
    pub(crate) script_shas: ScriptShas,
    pub(crate) traffic: TrafficRecorder,
    pub(crate) faults: FaultInjector,
    pub(crate) command_limit: CommandLimit,
    pub(crate) streams: Streams,
}
