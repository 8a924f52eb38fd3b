//! Sends commands. One call is one HTTP request within one deadline, which it may share with others; the only second request is the retry
//! of what is harmless to repeat, and EVAL after `NOSCRIPT`, both within the same deadline. Those go alone: less time is left for them.

use std::{cell::RefCell, rc::Rc, slice, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, header};

use super::{
    batch::{Answer, Batches, Call, Place},
    command::{Command, ScriptForm},
    error::Error,
    meter::Meter,
    reply::{FromReply, Item, Reply},
};
use crate::{
    ports::{
        fetch::{Fetch, FetchError},
        time::{Clock, Timestamp},
    },
    schema::keys::Keys,
};

/// The most that one reply may have: Upstash's limit of 10 MB for a command, as base64, and as much again for a pipeline.
const REPLY_LIMIT: usize = 32 << 20;

/// Where Redis is, and the token that opens it.
#[derive(Clone)]
pub struct Credentials {
    /// Without a trailing slash.
    pub url: String,
    /// `Bearer <token>`.
    pub authorization: HeaderValue,
}

/// A Redis database over REST.
pub struct Redis {
    fetch: Rc<dyn Fetch>,
    clock: Rc<dyn Clock>,
    credentials: Credentials,
    deadline: Duration,
    keys: Keys,
    /// Upstash's token for reading one's own writes: the last one seen is sent with the next request.
    sync_token: RefCell<Option<HeaderValue>>,
    meter: Rc<Meter>,
    /// Of this handle alone: what another one sends has another deadline.
    batches: Batches,
}

impl Redis {
    /// A database whose every call ends within `deadline`.
    #[must_use]
    pub fn new(
        fetch: Rc<dyn Fetch>,
        clock: Rc<dyn Clock>,
        credentials: Credentials,
        deadline: Duration,
        keys: Keys,
    ) -> Self {
        let (sync_token, meter, batches) = (RefCell::new(None), Rc::default(), Batches::default());
        Self { fetch, clock, credentials, deadline, keys, sync_token, meter, batches }
    }

    /// Where the keys lie in this database. It is carried here for whoever makes commands, and never looked at.
    #[must_use]
    pub const fn keys(&self) -> Keys {
        self.keys
    }

    /// The same database for calls that nobody waits for, each of which ends within `deadline`.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        let (fetch, clock, credentials) = (self.fetch.clone(), self.clock.clone(), self.credentials.clone());
        let (sync_token, meter, batches) = (self.sync_token.clone(), self.meter.clone(), Batches::default());
        Self { fetch, clock, credentials, deadline, keys: self.keys, sync_token, meter, batches }
    }

    /// The same database by another way out.
    #[must_use]
    pub fn through(self, fetch: Rc<dyn Fetch>) -> Self {
        Self { fetch, ..self }
    }

    /// What is sent to this database, by this handle and by those that [`Redis::with_deadline`] makes of it.
    #[must_use]
    pub fn meter(&self) -> Rc<Meter> {
        self.meter.clone()
    }

    /// Runs one command, or one script.
    ///
    /// # Errors
    /// Any [`Error`].
    pub async fn run<T: FromReply>(&self, command: Command) -> Result<T, Error> {
        T::from_reply(self.reply(&command).await?)
    }

    /// Runs one command, or one script, that may be run another time.
    ///
    /// # Errors
    /// Any [`Error`].
    pub async fn reply(&self, command: &Command) -> Result<Reply, Error> {
        let until = self.clock.now() + self.deadline;
        let mut reply = self.run_as(command, ScriptForm::Hash, until).await;
        if command.is_script() && reply.as_ref().is_err_and(Error::is_no_script) {
            reply = self.run_as(command, ScriptForm::Source, until).await;
        }
        reply
    }

    /// Runs independent commands in one request. One that fails leaves the others done.
    ///
    /// # Errors
    /// Any [`Error`] of the request as a whole; a command's own error stands in its place in the list, which is as long as
    /// `commands`.
    pub async fn pipeline(&self, commands: &[Command]) -> Result<Vec<Result<Reply, Error>>, Error> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let until = self.clock.now() + self.deadline;
        let mut replies = self.ask(commands, ScriptForm::Hash, until).await?;
        let unknown = |reply: &Result<Reply, Error>| reply.as_ref().is_err_and(Error::is_no_script);
        // Only what the server did not know is sent again: the rest has been executed.
        let again: Vec<_> = commands
            .iter()
            .zip(&replies)
            .filter(|(_, reply)| unknown(reply))
            .map(|(command, _)| command.clone())
            .collect();
        if !again.is_empty() {
            let late = self.ask(&again, ScriptForm::Source, until).await?;
            for (reply, late) in replies.iter_mut().filter(|reply| unknown(reply)).zip(late) {
                *reply = late;
            }
        }
        Ok(replies)
    }

    /// Runs independent commands in one request and reads their replies as a tuple.
    ///
    /// # Errors
    /// The first [`Error`], be it the request's or a command's; the other commands may have been executed.
    pub async fn all<T: FromReply>(&self, commands: &[Command]) -> Result<T, Error> {
        let replies = self.pipeline(commands).await?;
        T::from_reply(Reply::List(replies.into_iter().collect::<Result<_, _>>()?))
    }

    /// Runs writes together: all are executed and nothing comes between them, or none is. Scripts can not take part.
    ///
    /// # Errors
    /// Any [`Error`], of the request as a whole or the first of a command.
    pub async fn transaction<T: FromReply>(&self, commands: &[Command]) -> Result<T, Error> {
        let until = self.clock.now() + self.deadline;
        let send = async || self.send("/multi-exec", Call::new(commands, ScriptForm::Source)?, until).await;
        let items = or_again(send().await, commands.iter().all(Command::is_repeatable), send()).await?;
        T::from_reply(Reply::List(items.into_iter().collect::<Result<_, _>>()?))
    }

    async fn run_as(&self, command: &Command, form: ScriptForm, until: Timestamp) -> Result<Reply, Error> {
        match self.ask(slice::from_ref(command), form, until).await {
            // The form that carries any bytes is for one command alone.
            Err(Error::NotUtf8) => {
                let (path, body) = command.to_path(form).ok_or(Error::NotUtf8)?;
                let send = || self.metered(1, 1, async { self.send_once(&path, body.clone(), until).await?.item() });
                or_again(send().await, command.is_repeatable(), send()).await
            }
            replies => replies?.pop().unwrap_or(Err(Error::UnexpectedType)),
        }
    }

    /// Runs independent commands.
    async fn ask(
        &self,
        commands: &[Command],
        form: ScriptForm,
        until: Timestamp,
    ) -> Result<Vec<Result<Reply, Error>>, Error> {
        let send = async || self.send("/pipeline", Call::new(commands, form)?, until).await;
        let first = match form {
            ScriptForm::Hash => self.share(Call::new(commands, form)?, until).await,
            ScriptForm::Source => send().await,
        };
        or_again(first, commands.iter().all(Command::is_repeatable), send()).await
    }

    /// Sends a call in one request with those of others.
    async fn share(&self, call: Call, until: Timestamp) -> Answer {
        let commands = call.commands;
        match self.batches.join(call, &*self.clock, until) {
            Place::First(batch) => {
                self.metered(1, commands, async {
                    let body = batch.close(&*self.clock).await;
                    let answer = self.send_once("/pipeline", body.into(), until).await.and_then(Told::items);
                    batch.share_out(answer)
                })
                .await
            }
            Place::Behind(seat) => self.metered(0, commands, seat.wait()).await,
        }
    }

    /// Sends a call in a request of its own.
    async fn send(&self, path: &str, call: Call, until: Timestamp) -> Answer {
        let commands = call.commands;
        self.metered(1, commands, async {
            let items = self.send_once(path, call.body().into(), until).await?.items()?;
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
        self.meter.sent(requests, commands);
        let answer = work.await;
        // A command that Redis refuses has been answered.
        if answer.as_ref().is_err_and(|error| !matches!(error, Error::Refused { .. })) {
            self.meter.failed();
        }
        answer
    }

    async fn send_once(&self, path: &str, body: Bytes, until: Timestamp) -> Result<Told, Error> {
        let left = until.since(self.clock.now());
        if left.is_zero() {
            return Err(FetchError::Timeout.into());
        }
        let mut request = http::Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() =
            format!("{}{path}", self.credentials.url).parse().map_err(|_| Error::Transport(FetchError::Unreachable))?;
        let headers = request.headers_mut();
        headers.insert(header::AUTHORIZATION, self.credentials.authorization.clone());
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert("upstash-encoding", HeaderValue::from_static("base64"));
        if let Some(token) = self.sync_token.borrow().as_ref() {
            headers.insert("upstash-sync-token", token.clone());
        }
        let response = self.fetch.exchange(request, left, REPLY_LIMIT).await?;
        if let Some(token) = response.headers().get("upstash-sync-token") {
            self.sync_token.replace(Some(token.clone()));
        }
        read_answer(response.status().as_u16(), response.body())
    }
}

/// Sends `again` if that is harmless and the first failure may pass; what is told is the first one. A deadline leaves time for it or does not.
async fn or_again<T>(
    first: Result<T, Error>,
    is_repeatable: bool,
    again: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    match first {
        Err(error) if is_repeatable && error.is_passing() => again.await.map_err(|_| error),
        answer => answer,
    }
}

/// What an answer says.
enum Told {
    /// Of each command of a pipeline.
    Items(Vec<Item>),
    /// Of one command, or one error for all.
    Item(Item),
}

impl Told {
    fn items(self) -> Answer {
        match self {
            Self::Items(items) => Ok(items.into_iter().map(|Item(item)| item).collect()),
            Self::Item(Item(item)) => Err(item.err().unwrap_or(Error::UnexpectedType)),
        }
    }

    fn item(self) -> Result<Reply, Error> {
        match self {
            Self::Items(_) => Err(Error::UnexpectedType),
            Self::Item(Item(item)) => item,
        }
    }
}

/// Reads an HTTP answer. A success is JSON; a failure says in JSON why, or comes from somebody in between.
fn read_answer(status: u16, body: &[u8]) -> Result<Told, Error> {
    let told = if body.trim_ascii_start().starts_with(b"[") {
        serde_json::from_slice(body).map(Told::Items)
    } else {
        serde_json::from_slice(body).map(Told::Item)
    };
    let told = match told {
        Ok(told) if status == 200 => return Ok(told),
        Ok(Told::Item(Item(item))) => item.err(),
        _ => None,
    };
    Err(match (status, told) {
        (401, _) => Error::Unauthorized,
        (429, _) => Error::Quota,
        (_, Some(error @ (Error::Refused { .. } | Error::Quota | Error::Unauthorized))) => error,
        _ => Error::NotRest { status },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: &str) -> Error {
        Error::Refused { code: code.to_owned() }
    }

    /// What the first item of an answer says.
    fn read(status: u16, body: &str) -> Result<Reply, Error> {
        read_answer(status, body.as_bytes())?.item()
    }

    #[test]
    fn an_answer_is_a_result_or_says_why_not() {
        for (status, body, expected) in [
            (200, r#"{"result":"T0s="}"#, Ok(Reply::Bytes("OK".into()))),
            (200, r#"{"result":null}"#, Ok(Reply::Nil)),
            (200, r#"{"result":7,"error":null}"#, Ok(Reply::Integer(7))),
            (200, r#"{"result":1,"error":"WRONGTYPE of k"}"#, Err(refused("WRONGTYPE"))),
            (200, r#"{"error":"ERR max requests limit exceeded. Limit: 500000, Usage: 500000."}"#, Err(Error::Quota)),
            (200, r#"{"error":""}"#, Err(refused("ERR"))),
            (200, r#"{"error":7}"#, Err(Error::UnexpectedType)),
            (200, "{}", Err(Error::UnexpectedType)),
            (200, r#"{"result":"not base64"}"#, Err(Error::UnexpectedType)),
            (200, "<html>", Err(Error::NotRest { status: 200 })),
            (200, r#"{"result":"T0"#, Err(Error::NotRest { status: 200 })),
            (200, "", Err(Error::NotRest { status: 200 })),
            (400, r#"{"error":"NOSCRIPT No matching script."}"#, Err(refused("NOSCRIPT"))),
            (400, r#"{"error":"OOM command not allowed"}"#, Err(refused("OOM"))),
            (400, r#"{"result":"T0s="}"#, Err(Error::NotRest { status: 400 })),
            (401, r#"{"error":"WRONGPASS invalid or missing auth token"}"#, Err(Error::Unauthorized)),
            (401, "no", Err(Error::Unauthorized)),
            (429, "slow down", Err(Error::Quota)),
            (500, r#"{"error":"ERR internal"}"#, Err(refused("ERR"))),
            (503, "<html>upstream</html>", Err(Error::NotRest { status: 503 })),
        ] {
            assert_eq!(read(status, body), expected, "{status} {body}");
        }
    }

    #[test]
    fn an_error_never_shows_what_redis_quoted() {
        let error = read(400, r#"{"error":"ERR unknown command 'SECRET-TOKEN'"}"#).unwrap_err();
        assert_eq!(error.to_string(), "refused: ERR");
        let error = read(200, r#"{"error":"SECRET-TOKEN is no integer"}"#).unwrap_err();
        assert_eq!(error.to_string(), "refused: ERR");
    }
}
