//! Executes the commands of a request: checks them, sends them to Redis, and returns a result for each.

use http::{HeaderMap, HeaderValue, StatusCode};

use super::{response::SYNC_TOKEN, state::GatewayState};
use crate::{
    auth::Access,
    error::{ErrorResponse, is_temporary},
    fault::Fault,
    policy::{self, Verdict},
    region::{Position, Region, only_read},
    reply::{self, CommandResult},
    request::{Command, RequestKind},
    script,
    upstream::{TransactionError, Upstream, UpstreamError, Value},
};

/// The results of a request and its sync token.
pub(super) struct Executed {
    pub(super) results: Vec<CommandResult>,
    pub(super) sync_token: Option<HeaderValue>,
}

/// How a request wants to be executed.
pub(super) struct Terms<'a> {
    /// The rights of the client.
    pub(super) access: Access,
    /// The sync token that the client sent.
    pub(super) sync_token: Option<&'a HeaderValue>,
    pub(super) fault: Option<&'a Fault>,
}

/// Executes commands. A rejected command of a pipeline only fails itself; it fails any other request as a whole, before
/// anything is sent.
///
/// # Errors
/// When the whole request fails.
pub(super) async fn run(
    state: &GatewayState,
    kind: RequestKind,
    mut commands: Vec<Command>,
    Terms { access, sync_token, fault }: Terms<'_>,
) -> Result<Executed, ErrorResponse> {
    let mut rejections = Vec::with_capacity(commands.len());
    let verdicts = match &state.region {
        Some(region) => region.check(&state.upstream, &commands, access).await?,
        None => policy::check(&commands, access, &state.upstream).await?,
    };
    for (index, verdict) in verdicts.into_iter().enumerate() {
        rejections.push(match (verdict, kind) {
            (Verdict::Permitted, RequestKind::Pipeline) if index % 2 == 1 && fault == Some(&Fault::HalfPipeline) => {
                Some("ERR not executed because of an injected fault".to_owned())
            }
            (Verdict::Permitted, _) => None,
            (Verdict::Rejected(error), RequestKind::Pipeline) => Some(error.text),
            (Verdict::Rejected(error), RequestKind::Single | RequestKind::Transaction) => return Err(error),
        });
    }
    let client_shas: Vec<_> = commands.iter_mut().map(|command| state.script_shas.translate_command(command)).collect();

    let mut is_permitted = rejections.iter().map(Option::is_none);
    commands.retain(|_| is_permitted.next().unwrap_or_default());
    let (replies, sync_token) = if commands.is_empty() {
        (Vec::new(), None)
    } else {
        let number = state.traffic.record(kind, commands.iter());
        match &state.region {
            None => (send(&state.upstream, kind, &commands).await?, Some(HeaderValue::from(number))),
            Some(region) => {
                let seen = sync_token.and_then(Position::parse);
                run_in_region(region, &state.upstream, kind, &commands, seen.as_ref()).await?
            }
        }
    };

    let mut replies = replies.into_iter();
    let results = rejections.into_iter().zip(client_shas).map(|(rejection, client_sha)| match rejection {
        Some(text) => Err(text),
        None => reply::from_reply(script::translate_reply(replies.next().unwrap_or(Value::Nil), client_sha)),
    });
    Ok(Executed { results: results.collect(), sync_token })
}

/// Executes commands on a stale replica, for [`Fault::StaleReads`]. `None` if a command writes, or if the client sends
/// a sync token that is newer than the fault: such a client must read its own writes.
///
/// # Errors
/// When the whole request fails.
pub(super) async fn run_on_replica(
    state: &GatewayState,
    replica_url: &str,
    headers: &HeaderMap,
    commands: &[Command],
) -> Result<Option<Executed>, ErrorResponse> {
    let sync_token = state.faults.redis_requests_when_set();
    let seen = headers.get(SYNC_TOKEN).and_then(|token| token.to_str().ok()?.parse::<u64>().ok());
    if seen.is_some_and(|seen| seen > sync_token) {
        return Ok(None);
    }
    for command in commands {
        if !policy::is_read_only(command, &state.upstream).await? {
            return Ok(None);
        }
    }
    let replica = Upstream::new(replica_url, state.redis_timeout).map_err(ErrorResponse::bad_request)?;
    let replies = replica.run(commands).await?;
    Ok(Some(Executed {
        results: replies.into_iter().map(reply::from_reply).collect(),
        sync_token: Some(sync_token.into()),
    }))
}

/// Executes commands near or on the primary. Returns the replies, and the position of the server that executed them.
async fn run_in_region(
    region: &Region,
    near: &Upstream,
    kind: RequestKind,
    commands: &[Command],
    seen: Option<&Position>,
) -> Result<(Vec<Value>, Option<HeaderValue>), ErrorResponse> {
    if region.may_answer_near(near, commands, seen).await? {
        let read = async {
            let replies = match send(near, kind, commands).await {
                Err(error) if error.status.is_server_error() => return None,
                replies => replies,
            };
            // After the replies, so that the position covers them.
            let standing = near.standing().await.ok().flatten()?;
            let is_refused = replies.iter().flatten().any(is_refused_for_now);
            (standing.has_received && !is_refused).then_some((replies, standing.position))
        };
        if let Some((replies, position)) = region.answer_near(read).await {
            return Ok((replies?, position.map(HeaderValue::from)));
        }
    }
    let primary = region.reach_primary(near).await;
    let replies = send(primary, kind, commands).await?;
    let standing = match primary.standing().await {
        Ok(standing) => standing,
        // Without the position of its writes, the client could read an earlier state near it. This error makes it ask the primary.
        Err(_) if !only_read(commands, primary).await.unwrap_or(false) => {
            return Err(UpstreamError::ConnectionLost.into());
        }
        Err(_) => None,
    };
    if standing.as_ref().is_some_and(|standing| standing.is_replica) {
        // It executes no write, and its state may be old. Its address may already lead to the new primary.
        primary.reconnect();
        return Err(ErrorResponse::from_redis(
            "MASTERDOWN the server that is configured as primary is a replica".to_owned(),
        ));
    }
    Ok((replies, standing.and_then(|standing| standing.position).map(HeaderValue::from)))
}

fn is_refused_for_now(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(error) if is_temporary(error.text()))
}

async fn send(upstream: &Upstream, kind: RequestKind, commands: &[Command]) -> Result<Vec<Value>, ErrorResponse> {
    match kind {
        RequestKind::Transaction => Ok(upstream.run_transaction(commands).await?),
        RequestKind::Single | RequestKind::Pipeline => Ok(upstream.run(commands).await?),
    }
}

impl From<UpstreamError> for ErrorResponse {
    fn from(error: UpstreamError) -> Self {
        let status = match error {
            UpstreamError::Unreachable => StatusCode::SERVICE_UNAVAILABLE,
            UpstreamError::ConnectionLost | UpstreamError::TimedOut => StatusCode::BAD_GATEWAY,
        };
        Self { status, text: error.to_string() }
    }
}

impl From<TransactionError> for ErrorResponse {
    fn from(error: TransactionError) -> Self {
        match error {
            TransactionError::Discarded(error) => Self::from_redis(crate::error::server_error_text(&error)),
            TransactionError::NotStarted(_) => Self { status: StatusCode::BAD_GATEWAY, text: error.to_string() },
            TransactionError::CrossSlot => Self::bad_request(error.to_string()),
            TransactionError::Upstream(error) => error.into(),
        }
    }
}
