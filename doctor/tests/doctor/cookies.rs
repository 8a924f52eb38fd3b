//! The rules for cookies that each page sets for new visitors.

use serde_json::json;

use super::support::{Asked, Reply, Shop, book_links, kind};

/// As Remix answers if the root's loader commits the session: each page renews the cookie, and an empty session has one value.
fn renews_the_session(asked: &Asked) -> Reply {
    let own = asked.cookies.split("; ").find_map(|cookie| cookie.strip_prefix("__session="));
    let session = own.unwrap_or("e30%3D.c2lnbmF0dXJl").to_owned();
    let name = if session.contains("ann") { "Ann" } else { "null" };
    let data = format!("<script>var data = {{\"user\": \"{name}\"}}</script>");
    let page = Reply::html(format!("{}{data}<a href='/about'>About</a>", book_links(8)));
    page.with("set-cookie", &format!("__session={session}; Max-Age=86400; Path=/; HttpOnly"))
}

#[test]
fn visitors_with_an_empty_session_get_shared_pages() {
    let report = Shop::start(renews_the_session).examine(&[]);
    assert_eq!(report["vars"]["COOKIES_VARIED"], "+ __session=e30%3D.c2lnbmF0dXJl", "{report:#}");
    assert_eq!(report["vars"].get("COOKIES_PERSONAL"), None);
    assert_eq!(report["vars"]["COOKIES_DROPPED"], "+ __session@/, __session@/about, __session@/books/*/");
    assert_eq!(kind(&report, "/books/*/")["hit_ratio_with_rules"], json!(1.0));
}

#[test]
fn a_cookie_with_one_value_for_each_page_is_personal() {
    let report = Shop::start(|asked: &Asked| {
        let page = Reply::html(format!("{}<a href='/about'>About</a>", book_links(8)));
        page.with("set-cookie", &format!("last={}; Path=/", asked.path.replace('/', "-")))
    })
    .examine(&[]);
    assert_eq!((&report["vars"]["COOKIES_PERSONAL"], report["vars"].get("COOKIES_VARIED")), (&json!("+ last"), None));
}

#[test]
fn a_cookie_of_a_token_makes_no_visitor_personal() {
    let page = |asked: &Asked| {
        let page = Reply::html(book_links(8)).with("set-cookie", &format!("XSRF-TOKEN=of-{}; Path=/", asked.number));
        page.with("set-cookie", &format!("sid=of-{}; Path=/", asked.number))
    };
    let report = Shop::start(page).examine(&[]);
    assert_eq!(report["vars"]["COOKIES_IGNORED"], "+ XSRF-TOKEN", "{report:#}");
    assert_eq!(report["vars"]["COOKIES_PERSONAL"], "+ sid");
    assert!(report["vars"]["COOKIES_DROPPED"].as_str().unwrap().contains("XSRF-TOKEN@/books/*/"));
}

#[test]
fn a_note_names_the_cookie_that_may_hold_nothing_but_a_count_of_visitors() {
    let page = |asked: &Asked| {
        let page = Reply::html(book_links(8)).with("set-cookie", &format!("visitor=of-{}; Path=/", asked.number));
        page.with("set-cookie", &format!("sid=of-{}; Path=/", asked.number))
    };
    let notes = Shop::start(page).examine(&[])["notes"].to_string();
    assert!(notes.contains("If visitor keeps no session, basket or choice, name it in COOKIES_IGNORED"), "{notes}");
}

#[test]
fn a_signed_token_is_no_csrf_cookie_although_the_home_page_has_no_form() {
    let page = |asked: &Asked| {
        let form = format!("<form><input type='hidden' name='csrf' value='signed-{}'></form>", asked.number);
        let form = if asked.path == "/" { String::new() } else { form };
        let page = Reply::html(format!("{}{form}", book_links(8)));
        page.with("set-cookie", &format!("shop_csrf=signed-{}; Path=/", asked.number))
    };
    let report = Shop::start(page).examine(&[]);
    assert_eq!(
        (report["vars"].get("CSRF_COOKIE"), &report["vars"]["PATHS_SHARED"]),
        (None, &json!("+ /")),
        "{report:#}"
    );
    assert_eq!(report["vars"]["HOLES"], "+ /books/*/ input[name='csrf'] <- token");
    assert_eq!(report["vars"]["COOKIES_IGNORED"], "+ shop_csrf");
}

#[test]
fn a_script_beside_pages_gets_a_rule_for_itself_only() {
    let page = |asked: &Asked| {
        let page = if asked.path == "/books/app.js" {
            let script = Reply::html("let cart;").with("content-type", "text/javascript");
            script.with("cache-control", "public, max-age=31536000")
        } else {
            Reply::html(format!("<script src='/books/app.js'></script>{}", book_links(8)))
        };
        let has_session = asked.cookies.contains("sid=");
        if has_session { page } else { page.with("set-cookie", &format!("sid=of-{}; Path=/", asked.number)) }
    };
    let report = Shop::start(page).examine(&[]);
    let rules = report["vars"]["COOKIES_DROPPED"].as_str().unwrap();
    assert!(rules.ends_with(", sid@/books/app.js"), "{rules}");
}

#[test]
fn a_session_without_holes_is_noted_with_a_login_too() {
    let page = |asked: &Asked| {
        let name = if asked.cookies.contains("sid=ann") { "Ann" } else { "null" };
        let data = format!("<script>var data = {{\"user\": \"{name}\"}}</script>");
        let page = Reply::html(format!("{}{data}", book_links(8)));
        if asked.cookies.contains("sid=") { page } else { page.with("set-cookie", &format!("sid=of-{}", asked.number)) }
    };
    let report = Shop::start(page).examine(&["--login", "sid=ann"]);
    let notes = report["notes"].to_string();
    assert!(notes.contains("visitors get sid with their first form") && !notes.contains("--login"), "{report:#}");
}

#[test]
fn a_login_that_only_scripts_show_is_noted_with_the_rule_that_shares_pages() {
    let shop = Shop::start(|_| Reply::html(book_links(3)).with("cache-control", "public, max-age=0"));
    let notes = shop.examine(&["--login", "sid=1"])["notes"].to_string();
    assert!(notes.contains("COOKIES_IGNORED = \\\"+ sid\\\""), "{notes}");
}

/// An A/B test. The group of a visitor changes a part of each page.
fn shop_with_ab_test(asked: &Asked) -> Reply {
    let own = asked.cookies.split("; ").find_map(|cookie| cookie.strip_prefix("ab="));
    let group = own.unwrap_or_else(|| ["a", "b"][asked.number * 7 / 3 % 2]);
    let account = if asked.cookies.contains("sid=ann") { "Ann" } else { "Sign in" };
    let text = format!("<p>A long description for {group}.</p>").repeat(8);
    let page = Reply::html(format!("<header id=user>{account}</header>{}{text}", book_links(8)));
    if own.is_some() { page } else { page.with("set-cookie", &format!("ab={group}; Path=/")) }
}

#[test]
fn each_group_of_a_test_gets_shared_pages() {
    for options in [&[][..], &["--login", "sid=ann; ab=b"]] {
        let report = Shop::start(shop_with_ab_test).examine(options);
        assert_eq!(report["vars"]["COOKIES_VARIED"], "+ ab=a|b", "{report:#}");
        assert_eq!(report["vars"].get("COOKIES_DROPPED"), None, "{report:#}");
        assert_eq!(report["vars"]["ITEM_ROUTES"], "/books/{item}/", "{report:#}");
        assert_eq!(kind(&report, "/books/*/")["hit_ratio_with_rules"], json!(1.0), "{report:#}");
        assert!(report["notes"].to_string().contains("into one of 2 groups by chance"), "{report:#}");
        if !options.is_empty() {
            assert_eq!(report["vars"]["HOLES"], "+ /,/books/*/ #user <- .", "{report:#}");
            assert_eq!(report["vars"]["COOKIES_HOLES"], "+ sid", "{report:#}");
        }
    }
}
