//! Shared renders, items, tags and addresses.

use edgefront::{
    proxy::directives::MAX_TAGS,
    schema::ids::{ItemId, Tag},
};
use http::Method;
use xtask::failure::Failure;

use crate::{
    arguments::ContractArguments,
    clause::{Outcome, Report},
    origin::{Answer, Origin, Visitor, host},
};

/// A value that no origin sends by itself.
const ECHO: &str = "contract-echo";

pub(super) async fn check(arguments: &ContractArguments, origin: &Origin, report: &mut Report) -> Result<(), Failure> {
    let health = origin.call(Method::HEAD, "/", Visitor::None).header("edge-session", None).send().await?;
    report.add("health", judge_health(&health));
    let page = origin.get(&arguments.product, Visitor::Shared).send().await?;
    report.add("shared-status", judge_status(&page, &arguments.product));
    report.add("shared-cookies", judge_cookies(&page, &arguments.dropped_cookies));
    report.add(
        "shared-directives",
        match page.personal_directive() {
            None => Outcome::holds("a shared render has no directive about a visitor"),
            Some(name) => Outcome::broken(
                format!("a shared render has {name}"),
                "send Edge-Login, Edge-Logout, Edge-Cart and Edge-Order for a visitor's own request only",
            ),
        },
    );
    report.add("shared-anonymous", anonymous(arguments, origin).await?);
    report.add("item", judge_item(&page, arguments.item.as_ref()));
    report.add("tags", judge_tags(&page));
    report.add("no-reflection", reflection(arguments, origin).await?);
    report.add("forwarded-host", judge_host(arguments, origin, &page));
    Ok(())
}

fn judge_health(answer: &Answer) -> Outcome {
    if answer.status.is_server_error() {
        let remedy = "answer HEAD / with a status below 500: GET /_edge/v1/readyz depends on it";
        return Outcome::broken(format!("HEAD / gets {}", answer.status), remedy);
    }
    Outcome::holds(format!("HEAD / gets {}", answer.status))
}

fn judge_status(page: &Answer, path: &str) -> Outcome {
    if page.status.is_success() {
        return Outcome::holds(format!("a shared render of {path} gets {}", page.status));
    }
    let cause = format!("a shared render of {path} gets {}", page.status);
    Outcome::broken(cause, "answer Edge-Shared: 1 as an anonymous visitor, without rate limits by address")
}

fn judge_cookies(page: &Answer, dropped: &[String]) -> Outcome {
    let names: Vec<_> = page.cookie_names().into_iter().filter(|name| !dropped.contains(name)).collect();
    if names.is_empty() {
        return Outcome::holds("a shared render sets no cookie");
    }
    let cause = format!("a shared render sets {}, so the page is never stored", names.join(", "));
    Outcome::broken(
        cause,
        "start no session for a request with Edge-Shared: 1; for a cookie that edgefront drops, \
        add --dropped-cookie",
    )
}

/// A shared render has no visitor, also if a header names one.
async fn anonymous(arguments: &ContractArguments, origin: &Origin) -> Result<Outcome, Failure> {
    let (Some(user), Some(account), Some(mark)) = (&arguments.user, &arguments.account, arguments.mark()) else {
        return Ok(Outcome::not_checked("needs --user and --account"));
    };
    for path in [account, &arguments.product] {
        let call = origin.get(path, Visitor::User(user)).header("edge-shared", Some("1"));
        if call.send().await?.shows(mark) {
            let cause = format!("a shared render of {path} shows a user");
            return Ok(Outcome::broken(cause, "ignore Edge-User if Edge-Shared is 1"));
        }
    }
    Ok(Outcome::holds("a shared render shows no user"))
}

/// A page with an item may be shared, unlike a response with another directive.
fn judge_item(page: &Answer, expected: Option<&ItemId>) -> Outcome {
    let found = page.headers.get("edge-item").map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    match (found, expected) {
        (None, None) => Outcome::not_checked("the page names no item; --item requires one"),
        (None, Some(_)) => Outcome::broken(
            format!("no edge-item (status {})", page.status),
            "send Edge-Item: <id> with the product's page",
        ),
        (Some(found), Some(expected)) if found != expected.as_str() => {
            Outcome::broken(format!("edge-item is {found:?}"), "send the id of --item")
        }
        (Some(found), _) => match ItemId::parse(&found) {
            Ok(_) => Outcome::holds(format!("edge-item: {found}")),
            Err(error) => Outcome::broken(format!("edge-item is ignored: {error}"), "use ids of docs/api.md#ids"),
        },
    }
}

fn judge_tags(page: &Answer) -> Outcome {
    let lines = page.headers.get_all("edge-tags").iter().map(|line| String::from_utf8_lossy(line.as_bytes()));
    let text = lines.collect::<Vec<_>>().join(",");
    let tags: Vec<_> = text.split(',').map(str::trim).filter(|tag| !tag.is_empty()).collect();
    if let Some(tag) = tags.iter().find(|tag| Tag::parse(tag).is_err()) {
        return Outcome::broken(format!("edgefront ignores the tag {tag:?}"), "use 1 to 64 visible ASCII characters");
    }
    match tags.len() {
        0 => Outcome::not_checked("the page has no tags"),
        count if count > MAX_TAGS => {
            Outcome::broken(format!("{count} tags; edgefront reads {MAX_TAGS}"), "name fewer tags")
        }
        _ => Outcome::holds(format!("edge-tags: {text}")),
    }
}

/// The origin must not copy a directive from a request into its response.
async fn reflection(arguments: &ContractArguments, origin: &Origin) -> Result<Outcome, Failure> {
    let separator = |path: &str| if path.contains('?') { '&' } else { '?' };
    let paths = [Some(&arguments.product), arguments.account.as_ref(), arguments.login.as_ref()];
    for path in paths.into_iter().flatten() {
        let lines = "%0d%0aEdge-Login:%20contract-echo%0d%0aEdge-Item:%20contract-echo";
        let path = format!("{path}{}next=/{lines}&q={ECHO}", separator(path));
        let mut call = origin.get(&path, Visitor::None);
        for name in ["edge-login", "edge-logout", "edge-order", "edge-item", "edge-tags"] {
            call = call.header(name, Some(ECHO));
        }
        let answer = call.send().await?;
        let is_edge = |name: &http::HeaderName| edgefront::ports::header_names::is_edge(name);
        if let Some((name, _)) =
            answer.headers.iter().find(|(name, value)| is_edge(name) && value.as_bytes() == ECHO.as_bytes())
        {
            let cause = format!("{path} answers with the {name} that the request named");
            return Ok(Outcome::broken(cause, "write Edge-* headers from the shop's own data only"));
        }
    }
    Ok(Outcome::holds("no directive comes from the request"))
}

fn judge_host(arguments: &ContractArguments, origin: &Origin, page: &Answer) -> Outcome {
    if arguments.public_url.is_none() || host(&origin.url) == host(&origin.public) {
        return Outcome::not_checked("needs --public-url");
    }
    let (own, public) = (host(&origin.url), host(&origin.public));
    let absolute = format!("//{own}");
    if page.mentions(&absolute) {
        let cause = format!("links of {} lead to {own}", arguments.product);
        return Outcome::broken(cause, "take host and scheme from X-Forwarded-Host and X-Forwarded-Proto");
    }
    let wrong_scheme = if origin.public.scheme() == "https" { "http" } else { "https" };
    if page.mentions(&format!("{wrong_scheme}://{public}")) {
        return Outcome::broken(
            format!("links name {wrong_scheme}://{public}"),
            "take the scheme from X-Forwarded-Proto",
        );
    }
    if page.mentions(&format!("//{public}")) {
        return Outcome::holds(format!("links name {}://{public}", origin.public.scheme()));
    }
    Outcome::holds("links name no host")
}
