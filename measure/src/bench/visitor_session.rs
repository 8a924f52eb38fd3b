//! Sessions of signed-in visitors, with cookies that the measured edgefront accepts. The only module of this crate that
//! uses the crate `edgefront`.

use std::time::Duration;

use edgefront::{
    config::Config,
    ports::{error::Error, time::Timestamp},
    schema::token::Token,
    sessions::Keyring,
};
use xtask::{failure::Failure, variables::Variables};

/// The session of a signed-in visitor.
pub struct VisitorSession {
    pub token: String,
    /// The `Cookie` header of the visitor's browser.
    pub cookie: String,
}

/// Creates `count` sessions. The keys of `variables` sign their cookies. `now` is the time since the Unix epoch.
///
/// # Errors
/// When a variable is invalid, or the system has no random numbers.
pub fn create(count: u64, variables: &Variables, now: Duration) -> Result<Vec<VisitorSession>, Failure> {
    let config = Config::from_lookup(|name| variables.get(name).cloned())
        .map_err(|errors| Failure::new(errors.to_string(), "correct worker_variables.rs"))?;
    let keyring = Keyring::new(&config.session);
    let now = Timestamp::from_millis(u64::try_from(now.as_millis()).unwrap_or(0));
    let session = |_| {
        let token = Token::new(now)?;
        Ok(VisitorSession { cookie: keyring.pair(&token)?, token: token.as_str().to_owned() })
    };
    let sessions: Result<_, Error> = (0..count).map(session).collect();
    sessions.map_err(|cause| Failure::new(format!("cannot create a session: {cause}"), ""))
}
