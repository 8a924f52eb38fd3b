//! Shops that mark the parts of visitors in their pages (ESI).

use serde_json::json;

use super::support::{Asked, Reply, Shop, book_links, hits, kind};

const ANN: [&str; 2] = ["--login", "sid=ann"];

/// A shop whose fragments belong to visitors, and whose pages do not. It fills the fragments itself, unless the request announces
/// ESI. Each response with the form has another token. `more`: for Ann only, outside of the fragments.
fn shop(asked: &Asked, more: &str) -> Reply {
    let is_ann = asked.cookies.contains("sid=ann");
    let account = if is_ann { "<b>Ann</b>, 2 pieces" } else { "Sign in" };
    let form = format!(
        "<form method='post' action='/cart/add'><input type='hidden' name='_token' value='t{}'></form>",
        asked.number
    );
    let public = |reply: Reply| reply.with("cache-control", "public, s-maxage=60");
    match asked.path.as_str() {
        "/fragment/account" => return public(Reply::html(account)).with("vary", "cookie"),
        "/fragment/menu" => return public(Reply::html("<i>Menu</i>")),
        "/fragment/form?x=1" => return Reply::html(form).with("cache-control", "private"),
        _ => {}
    }
    let more = if is_ann { more } else { "" };
    let has_esi = asked.header("surrogate-capability").contains("ESI/1.0");
    let (account, form) = if has_esi {
        (
            "<esi:include src='/fragment/menu'/><esi:include src='/fragment/account'/>",
            "<esi:include src='/fragment/form?x=1' onerror='continue'/>",
        )
    } else {
        (&*format!("<i>Menu</i>{account}"), form.as_str())
    };
    let text = "<p>One of many books, with a long description.</p>".repeat(8);
    let page = Reply::html(format!("<header>{account}</header>{}{text}{more}{form}", book_links(8)));
    if has_esi { public(page).with("surrogate-control", "content=\"ESI/1.0\"") } else { page }
}

#[test]
fn fragments_are_no_danger_and_need_no_rule() {
    let report = Shop::start(|asked| shop(asked, "")).examine(&ANN);
    assert_eq!(report["dangers"], json!([]), "{report:#}");
    let books = kind(&report, "/books/*/");
    assert_eq!((books["hit_ratio"].clone(), hits(books, "signed-in")), (1.0.into(), 8), "{books:#}");
    assert!(books["headers"].to_string().contains("s-maxage"), "of the page with ESI: {books:#}");
    assert_eq!(
        report["vars"].as_object().unwrap().keys().collect::<Vec<_>>(),
        ["ITEM_ROUTES", "WRITES_PERSONAL"],
        "{report:#}"
    );
    let notes = report["notes"].to_string();
    assert!(notes.contains("one request for it: /fragment/form?x=1;"), "{notes}");
    assert!(!notes.contains("have expired"), "the fragments show the account: {notes}");
}

#[test]
fn a_difference_outside_of_the_fragments_is_a_danger() {
    let report = Shop::start(|asked| shop(asked, "<p>Your price: 5</p>")).examine(&ANN);
    let dangers = report["dangers"].to_string();
    assert!(dangers.contains("Your price: 5") && !dangers.contains("pieces"), "{report:#}");
}

#[test]
fn esi_that_edgefront_refuses_is_reported_with_its_cause() {
    let report = Shop::start(|_: &Asked| {
        let page = Reply::html(format!("{}<esi:vars>$(HTTP_HOST)</esi:vars>", book_links(3)));
        page.with("surrogate-control", "content=\"ESI/1.0\"").with("cache-control", "public, s-maxage=60")
    })
    .examine(&[]);
    let books = kind(&report, "/books/*/");
    assert_eq!((&books["not_stored"][0]["reason"], &books["hit_ratio"]), (&json!("esi"), &json!(0.0)), "{books:#}");
    assert!(books["not_stored"][0]["cause"].as_str().unwrap().contains("<esi:vars> is not supported"), "{books:#}");
    assert_eq!(books["remedy"], "No rule changes this.");
    assert_eq!(report["dangers"], json!([]));
}
