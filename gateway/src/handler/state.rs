//! State that all requests of a gateway share.

use crate::{auth::Tokens, fault::FaultInjector, script::ScriptShas, traffic::TrafficRecorder, upstream::Upstream};

/// State of a gateway.
pub(crate) struct GatewayState {
    pub(crate) tokens: Tokens,
    pub(crate) upstream: Upstream,
    pub(crate) script_shas: ScriptShas,
    pub(crate) traffic: TrafficRecorder,
    pub(crate) faults: FaultInjector,
}
