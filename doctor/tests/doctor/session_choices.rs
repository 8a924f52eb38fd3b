//! Shops whose session keeps the language.

use std::{collections::BTreeMap, sync::Mutex};

use serde_json::Value;

use super::support::{Asked, Reply, Shop, book_links};

/// The report on a shop that starts a session on each page and keeps its language under `key`. `switch`: the HTML of the choice.
fn report(switch: &'static str, key: fn(&str) -> String) -> Value {
    let languages = Mutex::new(BTreeMap::from([("ann".to_owned(), "en".to_owned())]));
    let answer = move |asked: &Asked| {
        let sid = asked.cookies.split("; ").find_map(|pair| pair.strip_prefix("sid=")).map(str::to_owned);
        let is_new = sid.is_none();
        let sid = sid.unwrap_or_else(|| format!("0a1b2c3d4e5f{:08}", asked.number));
        let mut languages = languages.lock().unwrap();
        let chosen = ["de", "en"].into_iter().find(|language| asked.path.ends_with(&key(language)));
        if let Some(language) = chosen {
            languages.insert(sid.clone(), language.to_owned());
        }
        let language = languages.get(&sid).map_or("en", String::as_str);
        let account = if sid == "ann" { "Ann" } else { "Sign in" };
        let text = format!("<p>A long description in {language}.</p>").repeat(8);
        let page = format!("<html lang='{language}'><header id=user>{account}</header>{switch}{}{text}", book_links(8));
        let reply =
            if asked.path.starts_with("/set") { Reply::status(302).with("location", "/") } else { Reply::html(page) };
        if is_new { reply.with("set-cookie", &format!("sid={sid}; Path=/")) } else { reply }
    };
    Shop::start(answer).examine(&["--login", "sid=ann"])
}

#[test]
fn a_link_whose_choice_the_session_keeps_becomes_a_rule() {
    let links = "<a href=/set-language/en>1</a><a href=/set-language/en?to=/a>2</a><a href=/set-language/en?to=/b>3</a>\
        <a href=/set-language/de>DE</a>";
    let report = report(links, |language| format!("/set-language/{language}"));
    assert_eq!(report["vars"]["CHOICES"], "+ /set-language/*", "{report:#}");
    assert_eq!(report["vars"]["COOKIES_HOLES"], "+ sid", "other visitors with a session share pages: {report:#}");
    assert!(report["notes"].to_string().contains("the session keeps the choice of"), "{report:#}");
}

#[test]
fn a_link_to_a_country_that_the_session_keeps_becomes_a_rule() {
    let links = "<a href=/set-country/AT>Austria</a><a href=/set-country/GB>Britain</a>";
    let report = report(links, |language| format!("/set-country/{}", if language == "de" { "AT" } else { "GB" }));
    assert_eq!(report["vars"]["CHOICES"], "+ /set-country/*", "{report:#}");
    assert_eq!(report["vars"]["COOKIES_HOLES"], "+ sid", "{report:#}");
}

#[test]
fn a_parameter_that_chooses_becomes_a_rule() {
    let report = report("<a href='?lang=de'>DE</a><a href='?lang=en'>EN</a>", |language| format!("?lang={language}"));
    assert_eq!(report["vars"]["CHOICES"], "+ ?lang", "{report:#}");
    assert_eq!(report["vars"]["COOKIES_HOLES"], "+ sid", "{report:#}");
    assert!(!report["kinds"].to_string().contains("lang="), "pages that choose are not examined: {report:#}");
}

#[test]
fn a_form_sent_by_get_is_tried() {
    let form =
        "<form action=/set><button name=language value=de></button><button name=language value=en></button></form>";
    let report = report(form, |language| format!("/set?language={language}"));
    assert_eq!(report["vars"]["CHOICES"], "+ ?language", "{report:#}");
}

#[test]
fn a_form_sent_by_post_is_not_tried() {
    let form = "<form action=/set-language method=post><button name=code value=de></button></form>";
    let chosen = report(form, |_| "-".to_owned());
    assert_eq!(chosen["vars"]["CHOICES"], "+ /set-language", "{chosen:#}");
    assert!(chosen["notes"].to_string().contains("The doctor sends no forms by POST"), "{chosen:#}");
    let other =
        report("<form action=/cart method=post><button name=code value=de></button></form>", |_| "-".to_owned());
    assert_eq!(other["vars"].get("CHOICES"), None, "{other:#}");
}

/// A rule for the path of the page would hold for all its visits.
#[test]
fn a_form_to_its_own_page_keeps_visitors_with_a_session_from_shared_pages() {
    let form = "<form method=post><select name=lang><option value=de><option value=en></select></form>";
    let report = report(form, |_| "-".to_owned());
    assert_eq!(report["vars"].get("CHOICES"), None, "{report:#}");
    assert_eq!(report["vars"]["COOKIES_PERSONAL"], "+ sid", "it wins over COOKIES_HOLES: {report:#}");
    let notes = report["notes"].to_string();
    assert_eq!(notes.matches("No rule covers a choice that is sent to the address of a page").count(), 1, "{notes}");
}

#[test]
fn a_link_that_changes_nothing_is_no_choice() {
    let report = report("<a href=/set-language/en>EN</a><a href=/set-language/de>DE</a>", |_| "-".to_owned());
    assert_eq!(report["vars"].get("CHOICES"), None, "{report:#}");
}

/// Scripts fill in the account. With `COOKIES_IGNORED` alone, visitors who chose would get the pages of others.
#[test]
fn a_choice_in_the_session_belongs_in_a_cookie_before_visitors_with_an_account_share_pages() {
    for (action, rule) in [("?_action=currency", "?_action=currency"), ("/?/setCurrency", "?/setCurrency")] {
        let form = format!("<form method=post action='{action}'><button>USD</button></form>");
        let shop = Shop::start(move |_| Reply::html(form.clone() + &book_links(3)));
        let notes = shop.examine(&["--login", "sid=1"])["notes"].to_string();
        let expected = format!("keep the choice of {rule} in a cookie, and then set COOKIES_IGNORED");
        assert!(notes.contains(&expected) && notes.contains("without flash messages"), "{notes}");
    }
    let shop = Shop::start(|_| Reply::html(book_links(3)));
    let notes = shop.examine(&["--login", "sid=1"])["notes"].to_string();
    assert!(notes.contains("parts: set COOKIES_IGNORED"), "{notes}");
}

/// The home page has no prices, so a currency changes nothing there.
#[test]
fn a_choice_that_changes_only_products_is_found() {
    let report = Shop::start(|asked: &Asked| {
        let own = asked.cookies.split("; ").find_map(|pair| pair.strip_prefix("sid="));
        let chosen = ["EUR", "USD"].into_iter().find(|currency| asked.path.ends_with(&format!("/currency/{currency}")));
        let currency = chosen.or_else(|| own?.split('-').next()).unwrap_or("EUR");
        let price = if asked.path.starts_with("/books/") { format!("<p>5 {currency}</p>") } else { String::new() };
        let account = if own.is_some_and(|own| own.ends_with("ann")) { "Ann" } else { "Sign in" };
        let links = "<a rel=nofollow href=/currency/EUR>EUR</a><a rel=nofollow href=/currency/USD>USD</a>";
        let text = "<p>A long description.</p>".repeat(8);
        let page = format!("<header id=user>{account}</header>{links}{price}{}{text}", book_links(8));
        let reply = if chosen.is_some() { Reply::status(302).with("location", "/") } else { Reply::html(page) };
        let visitor =
            own.and_then(|own| own.split('-').nth(1)).map_or_else(|| format!("{:012}", asked.number), str::to_owned);
        if own.is_some() && chosen.is_none() {
            reply
        } else {
            reply.with("set-cookie", &format!("sid={currency}-{visitor}; Path=/"))
        }
    })
    .examine(&["--login", "sid=EUR-ann"]);
    assert_eq!(report["vars"]["CHOICES"], "+ /currency/*", "{report:#}");
    assert_eq!(report["vars"]["COOKIES_HOLES"], "+ sid", "{report:#}");
}
