//! Users, logins and logouts.

use edgefront::{proxy::LogoutScope, schema::ids::UserId};
use http::Method;
use xtask::failure::Failure;

use super::judge_directive;
use crate::{
    arguments::{self, ContractArguments},
    clause::{Outcome, Report},
    form::{Cookies, with_hidden},
    origin::{Answer, Origin, Visitor},
};

const NO_LOGIN: &str = "needs --user, --account, --login and --login-form";
const OWN_LOGIN_REMEDY: &str = "end a login of your own at Edge-Session: guest and none, keep it at unknown";

/// Returns the cookies of the signed-in test account.
pub(super) async fn check(
    arguments: &ContractArguments,
    origin: &Origin,
    report: &mut Report,
) -> Result<Cookies, Failure> {
    report.add("user", user(arguments, origin).await?);
    report.add("user-private", private(arguments, origin).await?);
    let Some(login) = &arguments.login else {
        report.add("login", Outcome::not_checked(NO_LOGIN));
        return Ok(Cookies::default());
    };
    let password = arguments::password()?;
    let (refused, without_login) = submit_login(arguments, origin, login, &format!("not-{password}")).await?;
    report.add(
        "login-refused",
        match refused.header("edge-login") {
            None => Outcome::holds(format!("a wrong password gets {} and no Edge-Login", refused.status)),
            Some(user) => Outcome::broken(
                format!("a wrong password gets Edge-Login: {user}"),
                "send Edge-Login only after the password was checked",
            ),
        },
    );
    let (answer, cookies) = submit_login(arguments, origin, login, &password).await?;
    report.add("login", judge_login(&answer, arguments.user.as_ref()));
    check_own_login(arguments, origin, (&cookies, &without_login), report).await?;
    check_ended_login(arguments, origin, login, report).await?;
    Ok(cookies)
}

async fn user(arguments: &ContractArguments, origin: &Origin) -> Result<Outcome, Failure> {
    let (Some(user), Some(account), Some(mark)) = (&arguments.user, &arguments.account, arguments.mark()) else {
        return Ok(Outcome::not_checked("needs --user and --account"));
    };
    for (name, visitor) in [("none", Visitor::None), ("guest", Visitor::Guest)] {
        if origin.get(account, visitor).send().await?.shows(mark) {
            let cause = format!("{account} shows {mark:?} to a visitor with Edge-Session: {name}");
            return Ok(Outcome::broken(cause, "choose a --mark that only the account's owner sees, or hide it"));
        }
    }
    let answer = origin.get(account, Visitor::User(user)).send().await?;
    if !answer.shows(mark) {
        let cause = format!("{account} does not show {mark:?} to Edge-User: {user} (status {})", answer.status);
        return Ok(Outcome::broken(cause, "sign in the user that Edge-User names if Edge-Session is user"));
    }
    Ok(Outcome::holds(format!("{account} shows {mark:?} to Edge-User: {user}, and to no other visitor")))
}

async fn private(arguments: &ContractArguments, origin: &Origin) -> Result<Outcome, Failure> {
    let (Some(user), Some(account)) = (&arguments.user, &arguments.account) else {
        return Ok(Outcome::not_checked("needs --user and --account"));
    };
    for visitor in [Visitor::User(user), Visitor::None] {
        if origin.get(account, visitor).send().await?.is_declared_shared() {
            let cause = format!("{account} is declared shared (Cache-Control)");
            return Ok(Outcome::broken(cause, "send Cache-Control: private for pages that depend on the visitor"));
        }
    }
    Ok(Outcome::holds(format!("{account} is not declared shared")))
}

/// Sends the login form as a visitor without a session. Returns the response and the visitor's cookies after it.
async fn submit_login(
    arguments: &ContractArguments,
    origin: &Origin,
    path: &str,
    password: &str,
) -> Result<(Answer, Cookies), Failure> {
    let mut cookies = Cookies::default();
    let fields = arguments.login_fields(password);
    let fields = with_hidden(origin, &mut cookies, Visitor::None, (path, path), fields).await?;
    let call = origin.call(Method::POST, path, Visitor::None).cookies(&cookies).form(&fields);
    let answer = call.send().await?;
    cookies.update(&answer.headers);
    Ok((answer, cookies))
}

fn judge_login(answer: &Answer, expected: Option<&UserId>) -> Outcome {
    let missing = "send Edge-Login: <user id> with the response to a successful login";
    match (answer.header("edge-login"), expected) {
        (Some(found), Some(expected)) if found != expected.as_str() => {
            Outcome::broken(format!("edge-login is {found:?}"), "send the id of --user")
        }
        _ => judge_directive(answer, "edge-login", UserId::parse, missing),
    }
}

/// Compares the login of the origin, a cookie, with the session of edgefront. The second cookies are those after a
/// wrong password.
async fn check_own_login(
    arguments: &ContractArguments,
    origin: &Origin,
    (cookies, without_login): (&Cookies, &Cookies),
    report: &mut Report,
) -> Result<(), Failure> {
    let (Some(account), Some(mark)) = (&arguments.account, arguments.mark()) else {
        for clause in ["session-other", "session-unknown"] {
            report.add(clause, Outcome::not_checked(NO_LOGIN));
        }
        return Ok(());
    };
    // The origin has a login of its own if its cookies alone sign in.
    let own = origin.get(account, Visitor::Unknown).cookies(cookies).send().await?.shows(mark);
    if let Some(other) = &arguments.other_user {
        let answer = origin.get(account, Visitor::User(other)).cookies(cookies).send().await?;
        report.add(
            "session-other",
            if answer.shows(mark) {
                let cause = format!("{account} shows {mark:?} to Edge-User: {other} with the cookies of another login");
                Outcome::broken(cause, "Edge-User wins over a login of your own")
            } else {
                Outcome::holds("Edge-User wins over the cookies of another login")
            },
        );
    } else {
        report.add("session-other", Outcome::not_checked("needs --other-user"));
    }
    report.add(
        "session-unknown",
        if own {
            Outcome::holds("a login of the origin stands while Redis is silent")
        } else if cookies.has_more_than(without_login) {
            Outcome::broken(format!("{account} ends a login at Edge-Session: unknown"), OWN_LOGIN_REMEDY)
        } else {
            Outcome::not_checked("the login sets no cookie, so the origin keeps no login of its own")
        },
    );
    Ok(())
}

/// Checks that a login of the origin ends with the session of edgefront. Each probe gets a login of its own, because an
/// origin that keeps its sessions on the server ends the login for all later requests.
async fn check_ended_login(
    arguments: &ContractArguments,
    origin: &Origin,
    login: &str,
    report: &mut Report,
) -> Result<(), Failure> {
    for (clause, visitor) in [("session-none", Visitor::None), ("session-guest", Visitor::Guest)] {
        let (Some(account), Some(mark)) = (&arguments.account, arguments.mark()) else {
            report.add(clause, Outcome::not_checked(NO_LOGIN));
            continue;
        };
        let (_, cookies) = submit_login(arguments, origin, login, &arguments::password()?).await?;
        let get = async |visitor| origin.get(account, visitor).cookies(&cookies).send().await;
        report.add(
            clause,
            if !get(Visitor::Unknown).await?.shows(mark) {
                Outcome::not_checked(format!(
                    "{account} does not show {mark:?} to the login alone, so there is none to end"
                ))
            } else if get(visitor).await?.shows(mark) {
                Outcome::broken(format!("{account} keeps a login that edgefront has ended"), OWN_LOGIN_REMEDY)
            } else {
                Outcome::holds("a login of the origin ends with edgefront's session")
            },
        );
    }
    Ok(())
}

pub(super) async fn check_logout(
    arguments: &ContractArguments,
    origin: &Origin,
    report: &mut Report,
) -> Result<(), Failure> {
    let (Some(path), Some(user), Some(account), Some(login)) =
        (&arguments.logout, &arguments.user, &arguments.account, &arguments.login)
    else {
        report.add("logout", Outcome::not_checked("needs --logout, --user, --account and --login"));
        return Ok(());
    };
    // The checks of the session have ended the first login.
    let (_, mut cookies) = submit_login(arguments, origin, login, &arguments::password()?).await?;
    let visitor = Visitor::User(user);
    let answer = if arguments.logout_get {
        origin.get(path, visitor).cookies(&cookies).send().await?
    } else {
        let fields = with_hidden(origin, &mut cookies, visitor, (account, path), Vec::new()).await?;
        origin.call(Method::POST, path, visitor).cookies(&cookies).form(&fields).send().await?
    };
    let missing = "send Edge-Logout: 1 with the response to a logout";
    report.add("logout", judge_directive(&answer, "edge-logout", LogoutScope::parse, missing));
    Ok(())
}
