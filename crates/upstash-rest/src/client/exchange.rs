//! One call as HTTP requests: shared or alone, once or twice.

use std::{slice, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, header};

use super::{Client, response::ResponseBody, retry::retry_once};
use crate::{
    batch::{CallResult, EncodedCall, Role, Sharing},
    command::{Command, ScriptForm},
    error::{Error, TransportError},
    reply::Reply,
    sync::{self, CallSync, Callers},
    transport::ExchangeTerms,
};

/// Bytes that a response may have. Upstash limits the result of a command to 10 MB, which base64 makes 13 MB; a
/// pipeline may have several.
const MAX_RESPONSE_BYTES: usize = 32 << 20;

/// Carries a sync token in both directions.
const SYNC_TOKEN: &str = "upstash-sync-token";

/// How a request is sent.
#[derive(Clone, Copy)]
struct Terms {
    sharing: Sharing,
    until: Duration,
}

/// A request for one caller, whose reply may be long.
const ALONE: Sharing = Sharing { is_shared: false, is_short: false };

impl Client {
    pub(super) async fn run_as(&self, command: &Command, form: ScriptForm, until: Duration) -> Result<Reply, Error> {
        match self.run_all_as(slice::from_ref(command), form, until).await {
            // Only a single command has a form that carries any bytes.
            Err(Error::NotUtf8) => {
                let (path, body) = command.to_path(form).ok_or(Error::NotUtf8)?;
                let sync = CallSync::of(slice::from_ref(command), self.scope.get());
                let terms = Terms { sharing: ALONE, until };
                let send = async || {
                    self.metered(1, 1, async { self.exchange(&path, body.clone(), terms, &sync).await?.single() }).await
                };
                // Boxed, as arguments of any bytes are rare.
                Box::pin(async { retry_once(send().await, command.is_repeatable(), &sync, send).await }).await
            }
            replies => replies?.pop().unwrap_or(Err(Error::UnexpectedType)),
        }
    }

    /// Runs independent commands.
    pub(super) async fn run_all_as(&self, commands: &[Command], form: ScriptForm, until: Duration) -> CallResult {
        let sync = CallSync::of(commands, self.scope.get());
        if sync.is_refused() {
            return Err(TransportError::Unreachable.into());
        }
        let send = async || self.send("/pipeline", self.encode(commands, form)?, until).await;
        let first = match form {
            ScriptForm::Hash => self.send_shared(self.encode(commands, form)?, until).await,
            ScriptForm::Source => send().await,
        };
        retry_once(first, commands.iter().all(Command::is_repeatable), &sync, send).await
    }

    /// Runs commands as a transaction.
    pub(super) async fn run_atomically(&self, commands: &[Command], until: Duration) -> CallResult {
        let sync = CallSync::of(commands, self.scope.get());
        let send = async || self.send("/multi-exec", self.encode(commands, ScriptForm::Source)?, until).await;
        retry_once(send().await, commands.iter().all(Command::is_repeatable), &sync, send).await
    }

    fn encode(&self, commands: &[Command], form: ScriptForm) -> Result<EncodedCall, Error> {
        EncodedCall::new(commands, form, CallSync::of(commands, self.scope.get()))
    }

    /// Sends a call in one request with those of other callers.
    async fn send_shared(&self, call: EncodedCall, until: Duration) -> CallResult {
        let commands = call.commands;
        match self.batcher.join(call, &*self.transport, until) {
            Role::Leader(batch) => {
                self.metered(1, commands, async {
                    let body = batch.close(&*self.transport, until).await;
                    let terms = Terms { sharing: batch.sharing(), until };
                    let response = self.exchange("/pipeline", body.into(), terms, &*batch).await;
                    let result = response.and_then(ResponseBody::list);
                    batch.distribute(result, self.transport.now())
                })
                .await
            }
            Role::Follower(ticket) => self.metered(0, commands, ticket.wait()).await,
        }
    }

    /// Sends a call in a request of its own.
    async fn send(&self, path: &str, call: EncodedCall, until: Duration) -> CallResult {
        let commands = call.commands;
        self.metered(1, commands, async {
            let (terms, sync) = (Terms { sharing: ALONE, until }, call.sync.clone());
            let items = self.exchange(path, call.into_body().into(), terms, &sync).await?.list()?;
            if items.len() == commands { Ok(items) } else { Err(Error::UnexpectedType) }
        })
        .await
    }

    async fn metered<T>(
        &self,
        requests: u64,
        commands: usize,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        self.meter.count_call(requests, commands);
        let result = work.await;
        // A command that Redis refuses has been answered.
        if let Err(error) = &result
            && !matches!(error, Error::Refused { .. } | Error::Unavailable)
        {
            self.meter.count_failure(error);
        }
        result
    }

    async fn exchange(
        &self,
        path: &str,
        body: Bytes,
        Terms { sharing: Sharing { is_shared, is_short }, until }: Terms,
        callers: &dyn Callers,
    ) -> Result<ResponseBody, Error> {
        let deadline = until.saturating_sub(self.transport.now());
        if deadline.is_zero() {
            return Err(TransportError::Timeout.into());
        }
        let mut request = http::Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = format!("{}{path}", self.credentials.url)
            .parse()
            .map_err(|_| Error::Transport(TransportError::Unreachable))?;
        let headers = request.headers_mut();
        headers.insert(header::AUTHORIZATION, self.credentials.authorization.clone());
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert("upstash-encoding", HeaderValue::from_static("base64"));
        if let Some(token) = sync::token_to_send(callers, &self.sync_token) {
            headers.insert(SYNC_TOKEN, token);
        }
        let terms = ExchangeTerms { deadline, limit: MAX_RESPONSE_BYTES, is_shared, is_short };
        let response = self.transport.exchange(request, terms).await?;
        if let Some(token) = response.headers().get(SYNC_TOKEN) {
            sync::keep_token(callers, token, &self.sync_token);
        }
        ResponseBody::read(response.status().as_u16(), response.body())
    }
}
