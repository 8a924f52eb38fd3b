//! Outgoing mail.

use futures_util::future::{LocalBoxFuture, ready};
use log::{Level, log};
use serde_json::json;

use super::error::Error;

/// The log's event for a mail.
pub const MAIL_EVENT: &str = "mail";

/// A mail in plain text.
pub struct Mail<'a> {
    pub to: &'a str,
    pub subject: &'a str,
    pub text: &'a str,
}

/// Sends mail.
pub trait Mailer {
    /// # Errors
    /// [`Error::Platform`] if the mail was not accepted.
    fn send<'a>(&'a self, mail: &'a Mail<'a>) -> LocalBoxFuture<'a, Result<(), Error>>;
}

/// Writes each mail to the log, for development (`DEMO_MAIL=log`). As a warning: its links open accounts.
pub struct LogMailer;

impl Mailer for LogMailer {
    fn send<'a>(&'a self, Mail { to, subject, text }: &'a Mail<'a>) -> LocalBoxFuture<'a, Result<(), Error>> {
        log!(target: MAIL_EVENT, Level::Warn, "{}", json!({"to": to, "subject": subject, "text": text}));
        Box::pin(ready(Ok(())))
    }
}
