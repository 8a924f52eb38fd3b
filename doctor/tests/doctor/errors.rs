//! Shops that the doctor cannot examine. Each error names the cause and the remedy, and the exit status is 1.

use std::net::{Ipv4Addr, TcpListener};

use super::support::{Reply, Shop, doctor, doctor_with_login};

fn fails(arguments: &[&str], expected: &[&str]) {
    let run = doctor(arguments);
    assert_eq!((run.code, run.output.as_str()), (Some(1), ""), "{arguments:?}: {}", run.errors);
    for part in expected {
        assert!(run.errors.contains(part), "{part}: {}", run.errors);
    }
}

#[test]
fn an_unreachable_shop_is_named() {
    // Bound, so that no other process gets the port, and closed before the doctor connects.
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/");
    fails(&[&url], &[&format!("error: {url} is unreachable: "), "check the address"]);
}

#[test]
fn a_shop_that_is_not_html_is_refused() {
    let shop = Shop::start(|_| Reply::html("{}").with("content-type", "application/json"));
    fails(&[&shop.url], &["is not HTML (application/json)", "start at a page of the shop"]);
}

#[test]
fn a_shop_that_answers_with_an_error_is_refused() {
    let shop = Shop::start(|_| Reply::status(404));
    fails(&[&shop.url], &["answers 404 Not Found"]);
}

#[test]
fn a_shop_that_lets_nobody_in_has_its_own_remedy() {
    for (status, remedy) in [(401, "without a password"), (429, "longer --pause"), (503, "try again")] {
        let shop = Shop::start(move |asked| Reply::status(if asked.path == "/robots.txt" { 404 } else { status }));
        fails(&[&shop.url], &[&format!("answers {status}"), remedy]);
    }
}

#[test]
fn a_redirect_to_another_host_is_named_and_not_followed() {
    let shop = Shop::start(|_| Reply::status(301).with("location", "https://www.shop.invalid/"));
    fails(&[&shop.url], &["redirects to another host", "cargo xtask doctor https://www.shop.invalid/"]);
}

#[test]
fn a_redirect_on_the_same_host_is_followed() {
    let shop = Shop::start(|asked| match asked.path.as_str() {
        "/" => Reply::status(302).with("location", "/en/"),
        _ => Reply::html("<p>Shop</p>"),
    });
    assert_eq!(shop.examine(&[])["kinds"][0]["kind"], "/en/");
}

#[test]
fn endless_redirects_end() {
    let shop = Shop::start(|asked| Reply::status(302).with("location", &format!("/{}", asked.number)));
    fails(&[&shop.url], &["redirects more than 5 times"]);
}

#[test]
fn a_wrong_setting_is_refused_before_the_shop_is_asked() {
    let shop = Shop::start(|_| Reply::html("<p>Shop</p>"));
    fails(&[&shop.url, "--preset", "oscar"], &["--preset oscar", "django-oscar, evershop, magento"]);
    fails(&[&shop.url, "--var", "COOKIES_PERSONEL=a"], &["COOKIES_PERSONEL", "docs/configuration.md"]);
    fails(&[&shop.url, "--var", "ITEM_ROUTES=books"], &["ITEM_ROUTES has the pattern \"books\""]);
    fails(&[&shop.url, "--login", "secret"], &["--login has no name=value"]);
    assert_eq!(shop.requests().len(), 0);
}

#[test]
fn an_empty_login_is_refused_before_the_shop_is_asked() {
    let shop = Shop::start(|_| Reply::html("<p>Shop</p>"));
    for login in ["", "  ", "Cookie: "] {
        fails(&[&shop.url, "--login", login], &["--login or DOCTOR_LOGIN is empty", "leave out --login"]);
    }
    let run = doctor_with_login(Some(""), &[&shop.url]);
    assert_eq!(run.code, Some(1));
    assert!(run.errors.contains("--login or DOCTOR_LOGIN is empty"), "{}", run.errors);
    assert_eq!(shop.requests().len(), 0);
}

#[test]
fn a_wrong_command_line_is_explained() {
    for (arguments, expected) in [
        (&["shop.example", "--var", "PAGE_TTL"][..], "write NAME=VALUE"),
        (&["shop.example", "--pages", "0"], "--pages"),
        (&["ftp://shop.example"], "https://shop.example"),
    ] {
        let run = doctor(arguments);
        assert_eq!(run.code, Some(1), "{arguments:?}");
        assert!(run.errors.contains(expected), "{arguments:?}: {}", run.errors);
    }
}

#[test]
fn edgefront_itself_is_not_examined() {
    let shop = Shop::start(|_| Reply::html("<p>Shop</p>").with("cache-status", "edgefront; fwd=uri-miss; stored"));
    fails(&[&shop.url], &["is edgefront itself (Cache-Status: edgefront", "examine the shop's own address"]);
    let shop = Shop::start(|_| Reply::status(503).with("cache-status", "cdn; hit, edgefront; fwd=bypass"));
    fails(&[&shop.url], &["is edgefront itself"]);
    let shop = Shop::start(|_| Reply::html("<p>Shop</p>").with("cache-status", "edgefronts; hit"));
    shop.examine(&[]);
}

#[test]
fn an_address_without_a_scheme_may_need_http() {
    let shop = Shop::start(|_| Reply::html("<p>Shop</p>"));
    let address = shop.url.strip_prefix("http://").unwrap();
    fails(&[address], &[&format!("error: https://{address}/ is unreachable: "), &format!("write {}/", shop.url)]);
}
