//! Handles one HTTP request: authenticates it, parses its commands, executes them, and responds. Either the whole
//! request is rejected before anything is sent to Redis, or each of its commands gets a result.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use tokio::time::{sleep, timeout};

use crate::{
    auth::Access,
    error::ErrorResponse,
    fault::Fault,
    reply::ReplyFormat,
    request::{self, MAX_BODY_BYTES, RequestKind},
};

/// State that all requests share.
mod state;

/// From commands to results.
mod execute;

/// From a request to a stream.
mod subscribe;

/// From results to HTTP responses.
mod response;

use execute::{Executed, Terms};
pub(crate) use response::HttpResponse;
pub(crate) use state::GatewayState;
use subscribe::StreamRequest;

const METHODS: [Method; 4] = [Method::GET, Method::HEAD, Method::POST, Method::PUT];

/// A fault demands that the connection is closed without a response.
#[derive(Debug, thiserror::Error)]
#[error("closed the connection without a response because of an injected fault")]
pub(crate) struct ConnectionClosed;

/// Responds to a request.
///
/// # Errors
/// [`ConnectionClosed`], only because of a fault.
pub(crate) async fn handle(
    state: Arc<GatewayState>,
    client: IpAddr,
    request: Request<Incoming>,
) -> Result<HttpResponse, ConnectionClosed> {
    if !METHODS.contains(request.method()) {
        return Ok(response::raw(StatusCode::METHOD_NOT_ALLOWED, Bytes::new()));
    }
    let mut query = request::query_pairs(request.uri().query().unwrap_or_default());
    let query_token = query.iter().position(|(name, _)| name == b"_token").map(|index| query.remove(index).1);
    let Some(access) = state.tokens.authenticate(request.headers(), query_token.as_deref()) else {
        let text = "WRONGPASS invalid or missing auth token".to_owned();
        return Ok(response::error(&ErrorResponse { status: StatusCode::UNAUTHORIZED, text }));
    };

    let fault = state.faults.next_request();
    match &fault {
        Some(Fault::Refuse) => return Err(ConnectionClosed),
        Some(Fault::Slow(delay)) => sleep(*delay).await,
        Some(fault) => {
            if let Some(response) = response_without_execution(fault) {
                return Ok(response);
            }
        }
        None => {}
    }

    let responded = match StreamRequest::parse(&state, request.headers(), request.uri().path(), &query) {
        Some(stream) => stream.open(&state, access, client).await,
        None => respond(&state, access, &query, request, fault.as_ref()).await,
    };
    let response = responded.unwrap_or_else(|error| response::error(&error));
    match fault {
        Some(Fault::LoseReply) => Err(ConnectionClosed),
        Some(Fault::Truncate) => Ok(response::truncated(response).await),
        _ => Ok(response),
    }
}

/// The response that a fault sends instead of executing the request; `None` for faults that execute it.
fn response_without_execution(fault: &Fault) -> Option<HttpResponse> {
    match fault {
        Fault::Status(status, body) => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            Some(response::raw(status, body.clone()))
        }
        Fault::ErrorBody(text) => Some(response::error(&ErrorResponse { status: StatusCode::OK, text: text.clone() })),
        Fault::Garbage => Some(response::raw(StatusCode::OK, "<html>Log in to the Wi-Fi</html>")),
        Fault::Refuse
        | Fault::Slow(_)
        | Fault::LoseReply
        | Fault::Truncate
        | Fault::HalfPipeline
        | Fault::StaleReads(_) => None,
    }
}

/// Parses the commands of an authorized request, executes them and formats their results.
async fn respond(
    state: &GatewayState,
    access: Access,
    query: &[(Vec<u8>, Vec<u8>)],
    request: Request<Incoming>,
    fault: Option<&Fault>,
) -> Result<HttpResponse, ErrorResponse> {
    let mut format = ReplyFormat::from_headers(request.headers())?;
    let (parts, body) = request.into_parts();
    let has_body = matches!(parts.method, Method::POST | Method::PUT);
    let body = if has_body { read_body(body, state.body_timeout).await? } else { Bytes::new() };

    let (kind, commands) = match parts.uri.path() {
        "/" => (RequestKind::Single, request::single(&body)),
        "/pipeline" => (RequestKind::Pipeline, request::batch(&body)),
        "/multi-exec" => (RequestKind::Transaction, request::batch(&body)),
        path => (RequestKind::Single, request::path(path, query, &body)),
    };
    let commands = commands.map_err(ErrorResponse::bad_request)?;
    if !state.command_limit.allows(commands.len(), Instant::now()) {
        let text = "ERR too many requests".to_owned();
        return Err(ErrorResponse { status: StatusCode::TOO_MANY_REQUESTS, text });
    }
    if kind == RequestKind::Transaction && format == ReplyFormat::Resp2 {
        // Like Upstash, which returns transactions in JSON only.
        format = ReplyFormat::Json;
    }
    if let Some(Fault::StaleReads(replica_url)) = fault {
        let executed = execute::run_on_replica(state, replica_url, &parts.headers, &commands).await?;
        if let Some(Executed { results, sync_token }) = executed {
            return Ok(response::success(kind, format, &results, sync_token));
        }
    }
    let terms = Terms { access, sync_token: parts.headers.get(response::SYNC_TOKEN), fault };
    let Executed { results, sync_token } = execute::run(state, kind, commands, terms).await?;
    Ok(response::success(kind, format, &results, sync_token))
}

async fn read_body(body: Incoming, limit: Duration) -> Result<Bytes, ErrorResponse> {
    let Ok(collected) = timeout(limit, Limited::new(body, MAX_BODY_BYTES).collect()).await else {
        let text = "ERR the request body did not arrive in time".to_owned();
        return Err(ErrorResponse { status: StatusCode::REQUEST_TIMEOUT, text });
    };
    match collected {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(ErrorResponse::too_large(format!("ERR max request size exceeded. Limit: {MAX_BODY_BYTES} bytes")))
        }
        Err(_) => Err(ErrorResponse::bad_request("ERR the request body is incomplete")),
    }
}
