//! Nothing is believed without the right `Edge-Key`.

use xtask::failure::Failure;

use crate::{
    arguments::ContractArguments,
    clause::{Outcome, Report},
    origin::{Call, Origin, Visitor},
};

/// A host that a forger names. No shop has it (RFC 2606).
const FORGED_HOST: &str = "forged.invalid";

pub(super) async fn check(arguments: &ContractArguments, origin: &Origin, report: &mut Report) -> Result<(), Failure> {
    report.add("key-required", required(arguments, origin).await?);
    report.add("key-forged-user", forged_user(arguments, origin).await?);
    report.add("key-forged-host", forged_host(arguments, origin).await?);
    Ok(())
}

/// Wrong keys that resemble the right one, and none.
fn forgeries(origin: &Origin) -> Vec<(&'static str, Option<String>)> {
    let key = origin.key.to_str().unwrap_or_default();
    let shorter: String = key.chars().take(key.chars().count().saturating_sub(1)).collect();
    vec![
        ("no key", None),
        ("an empty key", Some(String::new())),
        ("another key", Some("x".repeat(key.len()))),
        ("the key without its last character", Some(shorter)),
        ("the key and one more character", Some(format!("{key}x"))),
        ("the key twice", Some(format!("{key},{key}"))),
    ]
}

async fn required(arguments: &ContractArguments, origin: &Origin) -> Result<Outcome, Failure> {
    let mut status = None;
    for (name, key) in forgeries(origin) {
        let call = origin.get(&arguments.product, Visitor::None).header("edge-key", key.as_deref());
        let answer = call.send().await?;
        if !answer.is_refused() {
            let cause = format!("a request with {name} gets {}", answer.status);
            return Ok(Outcome::broken(cause, "answer 403 to every request without the right Edge-Key"));
        }
        status = Some(answer.status);
    }
    let status = status.map(|status| status.to_string()).unwrap_or_default();
    Ok(Outcome::holds(format!("requests without a key and with five wrong keys get {status}")))
}

/// A forged user in the spellings that CGI reads as `Edge-User`.
fn forge_user<'a>(call: Call<'a>, user: &str, key: Option<&str>) -> [Call<'a>; 2] {
    let forged = call.header("edge-key", key).header("edge-session", None).header("edge-user", None);
    let hyphens = forged.clone().header("edge-session", Some("user")).header("edge-user", Some(user));
    let underscores = forged.header("edge_session", Some("user")).header("edge_user", Some(user));
    [hyphens, underscores]
}

async fn forged_user(arguments: &ContractArguments, origin: &Origin) -> Result<Outcome, Failure> {
    let (Some(user), Some(account), Some(mark)) = (&arguments.user, &arguments.account, arguments.mark()) else {
        return Ok(Outcome::not_checked("needs --user and --account"));
    };
    let remedy = "believe Edge-User only with the right Edge-Key, and remove every other spelling (Edge_User)";
    for (name, key) in forgeries(origin) {
        let call = origin.get(account, Visitor::None);
        for call in forge_user(call, user.as_str(), key.as_deref()) {
            let (spelling, answer) = (call.spelling("edge_user"), call.send().await?);
            if answer.shows(mark) {
                let cause = format!("{account} believes {spelling} with {name}");
                return Ok(Outcome::broken(cause, remedy));
            }
        }
    }
    // With the key: edgefront removes such a header of a client, and an origin must not need that.
    let call = origin.get(account, Visitor::None).header("edge_session", Some("user"));
    if call.header("edge_user", Some(user.as_str())).send().await?.shows(mark) {
        let cause = format!("{account} believes Edge_User of a visitor without a session");
        return Ok(Outcome::broken(cause, remedy));
    }
    Ok(Outcome::holds(format!("{account} believes no Edge-User and no Edge_User without the right key")))
}

async fn forged_host(arguments: &ContractArguments, origin: &Origin) -> Result<Outcome, Failure> {
    let paths = [Some(&arguments.product), arguments.account.as_ref(), arguments.login.as_ref()];
    for path in paths.into_iter().flatten() {
        let call = origin.get(path, Visitor::None).header("edge-key", None);
        if call.header("x-forwarded-host", Some(FORGED_HOST)).send().await?.mentions(FORGED_HOST) {
            let cause = format!("{path} believes X-Forwarded-Host without the key");
            return Ok(Outcome::broken(cause, "read X-Forwarded-* only of requests with the right Edge-Key"));
        }
    }
    Ok(Outcome::holds("X-Forwarded-Host without the key has no effect"))
}
