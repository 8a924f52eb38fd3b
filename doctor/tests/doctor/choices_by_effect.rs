//! Shops with links that choose a branch. No name of an address or a cookie says so.

use std::{collections::BTreeMap, sync::Mutex};

use serde_json::json;

use super::support::{Asked, Reply, Shop, book_links, kind};

const LINKS: &str = "<a href=/branch/5>Bern</a><a href=/branch/7>Graz</a>";

fn cookie<'a>(asked: &'a Asked, name: &str) -> Option<&'a str> {
    asked.cookies.split("; ").find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

fn page(account: &str, branch: &str) -> Reply {
    let text = "<p>A long description.</p>".repeat(8);
    Reply::html(format!(
        "<header id=user>{account}</header>{LINKS}<p>Prices of branch {branch}</p>{}{text}",
        book_links(8)
    ))
}

#[test]
fn a_link_whose_choice_the_session_keeps_is_known_by_its_effect() {
    let branches = Mutex::new(BTreeMap::<String, String>::new());
    let report = Shop::start(move |asked: &Asked| {
        let own = cookie(asked, "sid").map(str::to_owned);
        let sid = own.clone().unwrap_or_else(|| format!("0a1b2c3d4e5f{:08}", asked.number));
        let mut branches = branches.lock().unwrap();
        let reply = if let Some(branch) = asked.path.strip_prefix("/branch/") {
            branches.insert(sid.clone(), branch.to_owned());
            Reply::status(302).with("location", "/")
        } else {
            page(if sid == "ann" { "Ann" } else { "Sign in" }, branches.get(&sid).map_or("1", String::as_str))
        };
        if own.is_none() { reply.with("set-cookie", &format!("sid={sid}; Path=/")) } else { reply }
    })
    .examine(&["--login", "sid=ann"]);
    assert_eq!(report["vars"]["CHOICES"], "+ /branch/*", "{report:#}");
    assert_eq!(report["vars"]["COOKIES_HOLES"], "+ sid", "{report:#}");
    assert_eq!(kind(&report, "/books/*/")["hit_ratio_with_rules"], json!(1.0), "{report:#}");
}

#[test]
fn a_link_that_sets_a_cookie_to_its_value_becomes_a_varied_cookie() {
    let report = Shop::start(|asked: &Asked| {
        if let Some(branch) = asked.path.strip_prefix("/branch/") {
            let page = Reply::status(303).with("location", "/");
            return page.with("set-cookie", &format!("b={branch}; Path=/"));
        }
        page("", cookie(asked, "b").unwrap_or("1"))
    })
    .examine(&[]);
    assert_eq!(report["vars"]["COOKIES_VARIED"], "+ b=5|7", "{report:#}");
    assert_eq!(report["vars"].get("COOKIES_PERSONAL"), None, "{report:#}");
    assert_eq!(report["vars"].get("CHOICES"), None, "{report:#}");
}

#[test]
fn a_redirect_without_an_effect_is_no_choice() {
    let report = Shop::start(|asked: &Asked| {
        let page =
            if asked.path.starts_with("/branch/") { Reply::status(302).with("location", "/") } else { page("", "1") };
        page.with("set-cookie", "sid=0a1b2c3d4e5f0a1b; Path=/")
    })
    .examine(&[]);
    assert_eq!(report["vars"].get("CHOICES"), None, "{report:#}");
}
