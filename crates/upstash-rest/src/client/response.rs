//! Reads HTTP responses.

use crate::{batch::CallResult, error::Error, reply::CommandResult, reply::Reply};

/// The body of a response of the protocol.
pub enum ResponseBody {
    /// A result for each command of a pipeline or a transaction.
    List(Vec<CommandResult>),
    /// The result of one command, or one error for all.
    Single(CommandResult),
}

impl ResponseBody {
    /// Reads a response. A success is JSON. A failure says in JSON what is wrong, or comes from a server in between.
    ///
    /// # Errors
    /// Any [`Error`] of the request as a whole.
    pub fn read(status: u16, body: &[u8]) -> Result<Self, Error> {
        let parsed = if body.trim_ascii_start().starts_with(b"[") {
            serde_json::from_slice(body).map(Self::List)
        } else {
            serde_json::from_slice(body).map(Self::Single)
        };
        let cause = match parsed {
            Ok(body) if status == 200 => return Ok(body),
            Ok(Self::Single(CommandResult(result))) => result.err(),
            _ => None,
        };
        Err(match (status, cause) {
            (401, _) => Error::Unauthorized,
            (429, _) => Error::Quota,
            // The server failed, whatever it says in JSON: it may have executed the commands.
            (500..=599, Some(Error::Refused { .. } | Error::Unavailable)) => Error::NotRest { status },
            (_, Some(error @ (Error::Refused { .. } | Error::Unavailable | Error::Quota | Error::Unauthorized))) => {
                error
            }
            _ => Error::NotRest { status },
        })
    }

    pub fn list(self) -> CallResult {
        match self {
            Self::List(results) => Ok(results.into_iter().map(|CommandResult(result)| result).collect()),
            Self::Single(CommandResult(result)) => Err(result.err().unwrap_or(Error::UnexpectedType)),
        }
    }

    pub fn single(self) -> Result<Reply, Error> {
        match self {
            Self::List(_) => Err(Error::UnexpectedType),
            Self::Single(CommandResult(result)) => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: &str) -> Error {
        Error::Refused { code: code.to_owned() }
    }

    fn read(status: u16, body: &str) -> Result<Reply, Error> {
        ResponseBody::read(status, body.as_bytes())?.single()
    }

    #[test]
    fn a_response_is_a_result_or_an_error() {
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
            (500, r#"{"error":"ERR internal"}"#, Err(Error::NotRest { status: 500 })),
            (502, r#"{"error":"ERR unknown command"}"#, Err(Error::NotRest { status: 502 })),
            (503, r#"{"error":"ERR max requests limit exceeded."}"#, Err(Error::Quota)),
            (503, "<html>upstream</html>", Err(Error::NotRest { status: 503 })),
        ] {
            assert_eq!(read(status, body), expected, "{status} {body}");
        }
    }

    #[test]
    fn an_error_never_shows_a_value_that_redis_quoted() {
        let error = read(400, r#"{"error":"ERR unknown command 'SECRET-TOKEN'"}"#).unwrap_err();
        assert_eq!(error.to_string(), "the server does not execute this command");
        let error = read(200, r#"{"error":"SECRET-TOKEN is no integer"}"#).unwrap_err();
        assert_eq!(error.to_string(), "refused: ERR");
    }
}
