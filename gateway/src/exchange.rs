//! One HTTP exchange, from request to answer. A request is refused as a whole before anything of it is sent to Redis, or
//! every one of its commands gets an outcome.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use redis::Value;

use crate::{
    Fault, Form,
    access::{Access, Tokens},
    fault::Faults,
    node::Failure,
    policy,
    reply::{self, Encoding, Json, Outcome, Refusal},
    request::{self, Command},
    script::{self, Scripts},
    tally::Tally,
    upstream::Upstream,
};

/// JSON writes a byte with at most six (`\u0000`): the largest command still fits, 6 × 10 MiB and some.
const MAX_BODY: usize = 64 << 20;
const SYNC_TOKEN: &str = "upstash-sync-token";
const UNAUTHORIZED: &str = "WRONGPASS invalid or missing auth token";

/// What all exchanges of a gateway share.
pub(crate) struct Shared {
    pub(crate) tokens: Tokens,
    pub(crate) upstream: Upstream,
    pub(crate) scripts: Scripts,
    pub(crate) tally: Tally,
    pub(crate) faults: Faults,
}

/// The connection is to be closed without an answer.
#[derive(Debug, thiserror::Error)]
#[error("closed without an answer, as the fault demands")]
pub(crate) struct HangUp;

type Answer = Response<Full<Bytes>>;

/// Answers a request; [`HangUp`] only when a fault says so.
pub(crate) async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Answer, HangUp> {
    if ![Method::GET, Method::HEAD, Method::POST, Method::PUT].contains(request.method()) {
        return Ok(plain(StatusCode::METHOD_NOT_ALLOWED, Bytes::new(), None));
    }
    let mut query = request::query_pairs(request.uri().query().unwrap_or_default());
    let query_token = query.iter().position(|(name, _)| name == b"_token").map(|at| query.remove(at).1);
    let Some(access) = shared.tokens.access(request.headers(), query_token.as_deref()) else {
        return Ok(refused(&Refusal { status: StatusCode::UNAUTHORIZED, error: UNAUTHORIZED.to_owned() }));
    };

    let fault = shared.faults.next();
    match &fault {
        Some(Fault::Refuse) => return Err(HangUp),
        Some(Fault::Status(status, body)) => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            return Ok(plain(status, body.clone().into(), None));
        }
        Some(Fault::ErrorBody(error)) => {
            return Ok(refused(&Refusal { status: StatusCode::OK, error: error.clone() }));
        }
        Some(Fault::Garbage) => {
            return Ok(plain(StatusCode::OK, Bytes::from_static(b"<html>Log in to the Wi-Fi</html>"), None));
        }
        Some(Fault::Slow(delay)) => tokio::time::sleep(*delay).await,
        Some(Fault::LoseReply | Fault::Truncate | Fault::HalfPipeline | Fault::StaleReads(_)) | None => {}
    }

    let executed = execute(&shared, access, &query, request, fault.as_ref()).await;
    let answer = executed.unwrap_or_else(|refusal| refused(&refusal));
    match fault {
        Some(Fault::LoseReply) => Err(HangUp),
        Some(Fault::Truncate) => Ok(halved(answer).await),
        _ => Ok(answer),
    }
}

/// Reads the commands of an authorised request, runs them and writes their outcomes.
async fn execute(
    shared: &Shared,
    access: Access,
    query: &[(Vec<u8>, Vec<u8>)],
    request: Request<Incoming>,
    fault: Option<&Fault>,
) -> Result<Answer, Refusal> {
    let mut encoding = Encoding::asked_for(request.headers())?;
    let (parts, body) = request.into_parts();
    let has_body = matches!(parts.method, Method::POST | Method::PUT);
    let body = if has_body { collect(body).await? } else { Bytes::new() };

    let (form, commands) = match parts.uri.path() {
        "/" => (Form::Single, request::single(&body)),
        "/pipeline" => (Form::Pipeline, request::batch(&body)),
        "/multi-exec" => (Form::Transaction, request::batch(&body)),
        path => (Form::Single, request::path(path, query, &body)),
    };
    let commands = commands.map_err(Refusal::bad_request)?;
    if form == Form::Transaction && encoding == Encoding::Resp2 {
        // Upstash answers transactions in JSON only.
        encoding = Encoding::Plain;
    }
    if let Some(Fault::StaleReads(replica)) = fault
        && let Some(stale) = stale(shared, replica, &parts.headers, &commands).await?
    {
        return Ok(succeeded(form, encoding, &stale, shared.faults.since()));
    }
    let (outcomes, requests) = run(shared, access, form, commands, fault).await?;
    Ok(succeeded(form, encoding, &outcomes, requests))
}

async fn collect(body: Incoming) -> Result<Bytes, Refusal> {
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(Refusal::too_large(format!("ERR max request size exceeded. Limit: {MAX_BODY} bytes")))
        }
        Err(_) => Err(Refusal::bad_request("ERR the request body is incomplete")),
    }
}

/// Sends what may be sent; returns an outcome for each command, and which request to Redis this was since the start.
async fn run(
    shared: &Shared,
    access: Access,
    form: Form,
    mut commands: Vec<Command>,
    fault: Option<&Fault>,
) -> Result<(Vec<Outcome>, u64), Refusal> {
    let mut refusals = Vec::with_capacity(commands.len());
    for (number, command) in commands.iter().enumerate() {
        let checked = policy::check(command, access, &shared.upstream).await?;
        match (checked, form) {
            (Ok(()), Form::Pipeline) if number % 2 == 1 && fault == Some(&Fault::HalfPipeline) => {
                refusals.push(Some("ERR not executed, as the fault demands".to_owned()));
            }
            (Ok(()), _) => refusals.push(None),
            (Err(refusal), Form::Pipeline) => refusals.push(Some(refusal.error)),
            (Err(refusal), Form::Single | Form::Transaction) => return Err(refusal),
        }
    }
    let known_as: Vec<_> = commands.iter_mut().map(|command| shared.scripts.translate(command)).collect();

    let mut refused = refusals.iter();
    commands.retain(|_| refused.next().is_some_and(Option::is_none));
    let (replies, requests) = if commands.is_empty() {
        (Vec::new(), shared.tally.counts().requests)
    } else {
        let requests = shared.tally.note(form, commands.iter());
        (send(shared, form, &commands).await?, requests)
    };

    let mut replies = replies.into_iter();
    let outcomes = refusals.into_iter().zip(known_as).map(|(refusal, known_as)| match refusal {
        Some(error) => Err(error),
        None => reply::outcome(script::translate_back(replies.next().unwrap_or(Value::Nil), known_as)),
    });
    Ok((outcomes.collect(), requests))
}

/// What a replica at `url` says of commands that only read; None if one writes, or if the client shows the token of an answer since
/// the fault began: it reads its own writes.
async fn stale(
    shared: &Shared,
    url: &str,
    headers: &HeaderMap,
    commands: &[Command],
) -> Result<Option<Vec<Outcome>>, Refusal> {
    let seen = headers.get(SYNC_TOKEN).and_then(|token| token.to_str().ok()?.parse::<u64>().ok());
    if seen.is_some_and(|seen| seen > shared.faults.since()) {
        return Ok(None);
    }
    for command in commands {
        if !policy::only_reads(command, &shared.upstream).await? {
            return Ok(None);
        }
    }
    let replica = Upstream::new(url).map_err(Refusal::bad_request)?;
    let replies = replica.run(commands).await?;
    Ok(Some(replies.into_iter().map(reply::outcome).collect()))
}

async fn send(shared: &Shared, form: Form, commands: &[Command]) -> Result<Vec<Value>, Refusal> {
    if form == Form::Transaction {
        shared.upstream.run_atomically(commands).await?.map_err(Refusal::bad_request)
    } else {
        Ok(shared.upstream.run(commands).await?)
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        let status = match failure {
            Failure::Unreachable => StatusCode::SERVICE_UNAVAILABLE,
            Failure::Broken => StatusCode::BAD_GATEWAY,
        };
        Self { status, error: failure.to_string() }
    }
}

fn succeeded(form: Form, encoding: Encoding, outcomes: &[Outcome], requests: u64) -> Answer {
    let status = match (form, outcomes) {
        (Form::Single, [Err(_)]) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    };
    let base64 = encoding == Encoding::Base64;
    let mut body = Vec::new();
    let content_type = if encoding == Encoding::Resp2 {
        for outcome in outcomes {
            reply::write_resp2(outcome, &mut body);
        }
        "application/octet-stream"
    } else {
        let mut items = outcomes.iter().map(|outcome| Json { outcome, base64 });
        body = match (form, items.next()) {
            (Form::Single, Some(item)) => to_json(&item),
            (_, first) => to_json(&first.into_iter().chain(items).collect::<Vec<_>>()),
        };
        "application/json"
    };
    plain(status, body.into(), Some((content_type, requests)))
}

fn refused(refusal: &Refusal) -> Answer {
    let outcome = Err(refusal.error.clone());
    let body = to_json(&Json { outcome: &outcome, base64: false });
    let mut answer = plain(refusal.status, body.into(), None);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn to_json(value: &impl serde::Serialize) -> Vec<u8> {
    // Strings, numbers and lists always have a JSON form.
    serde_json::to_vec(value).unwrap_or_default()
}

/// An answer; of an executed request with its content type and sync token. A reader that sends the token back would see
/// every write before it; with one server it sees them anyway.
fn plain(status: StatusCode, body: Bytes, executed: Option<(&'static str, u64)>) -> Answer {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    if let Some((content_type, requests)) = executed {
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(SYNC_TOKEN, HeaderValue::from(requests));
    }
    answer
}

async fn halved(answer: Answer) -> Answer {
    let (parts, body) = answer.into_parts();
    let Ok(body) = body.collect().await;
    let mut body = body.to_bytes();
    body.truncate(body.len() / 2);
    Response::from_parts(parts, Full::new(body))
}
