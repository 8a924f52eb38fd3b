//! Ways in which a REST database fails, for tests of its clients. A fault meets every authorised request until it is
//! replaced or taken back.

use std::time::Duration;

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection is closed without an answer; nothing is executed.
    Refuse,
    /// This status and body; nothing is executed.
    Status(u16, String),
    /// 200 with `{"error": …}`, such as an exhausted quota; nothing is executed.
    ErrorBody(String),
    /// 200 with a body that is not JSON, as of a captive portal; nothing is executed.
    Garbage,
    /// Waits this long, then executes and answers.
    Slow(Duration),
    /// Executes, then closes the connection without an answer.
    LoseReply,
    /// Executes, then answers with the first half of the body.
    Truncate,
}
