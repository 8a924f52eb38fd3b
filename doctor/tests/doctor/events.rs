//! Shops whose pages have names, carts and forms of their own below them, as a ticket shop with one cart for each event.

use std::{sync::Mutex, time::Instant};

use serde_json::json;

use super::support::{Asked, Reply, Shop, kind};

const ANN: [&str; 2] = ["--login", "sid=ann"];
const EVENTS: [&str; 7] = ["autumn", "winter", "spring", "summer", "harbour", "river", "forest"];

fn links() -> String {
    let link = |event| format!("<a href='/hall/{event}/'>{event}</a><a href='/hall/{event}/resend/'>Resend</a>");
    EVENTS.map(link).concat() + "<a href='/hall/series/'>Series</a>"
}

/// Each event has a form with a masked CSRF token for its own cart. The series has dates instead, as the first event has no form.
fn hall(asked: &Asked) -> Reply {
    let path = asked.path.as_str();
    let page = format!("<header><b id='user'>Sign in</b></header>{}", links());
    if !path.starts_with("/hall/") || path == "/hall/series/" {
        let dates = [1, 2, 3, 4, 5, 6, 7].map(|date| format!("<a href='/hall/series/{date}/'>{date}</a>")).concat();
        return Reply::html(format!("{page}{dates}"));
    }
    let token = format!("{:064}", asked.number);
    let event = path.split('/').nth(2).unwrap_or_default();
    let action = if path.ends_with("/resend/") { path.to_owned() } else { format!("/hall/{event}/cart/add") };
    let form = format!(
        "<form method=post action='{action}'><input type=hidden name=csrfmiddlewaretoken value={token}></form><p>{event}</p>"
    );
    Reply::html(format!("{page}{form}")).with("set-cookie", &format!("csrftoken={token}; Path=/"))
}

#[test]
fn pages_that_are_refused_for_different_reasons_get_the_rules_for_each() {
    let report = Shop::start(hall).examine(&[]);
    let events = kind(&report, "/hall/*/");
    let reasons: Vec<_> = events["not_stored"].as_array().unwrap().iter().map(|why| why["reason"].clone()).collect();
    assert!(reasons.contains(&json!("set-cookie")) && reasons.contains(&json!("no-item")), "{events:#}");
    assert_eq!(
        (&events["remedy"], &events["hit_ratio_with_rules"]),
        (&json!("tried, and safe:"), &json!(1.0)),
        "{events:#}"
    );
    assert_eq!(
        (&report["vars"]["CSRF_COOKIE"], &report["vars"]["ITEM_ROUTES"]),
        (&json!("csrftoken"), &json!("/hall/{item}/"))
    );
}

#[test]
fn the_carts_of_all_events_have_one_rule() {
    let report = Shop::start(hall).examine(&[]);
    assert_eq!(report["vars"]["WRITES_PERSONAL"], "+ /hall/*/cart/*, /hall/*/resend/", "{report:#}");
    assert_eq!(kind(&report, "/hall/*/resend/")["pages"], 7, "it is no date of the series");
}

#[test]
fn what_robots_txt_forbids_stays_personal() {
    let with_robots = |asked: &Asked| match asked.path.as_str() {
        "/robots.txt" => {
            Reply::html("User-agent: *\nDisallow: */order/*\nDisallow: /media/\n").with("content-type", "text/plain")
        }
        _ => hall(asked),
    };
    let report = Shop::start(with_robots).examine(&[]);
    assert_eq!(report["vars"]["PATHS_PERSONAL"], "+ /*/order/*, /order/*", "{report:#}");
    assert!(
        report["notes"].to_string().contains("PATHS_PERSONAL /*/order/*, /order/* keeps them personal"),
        "{report:#}"
    );
}

fn is_ann(asked: &Asked) -> bool {
    asked.cookies.contains("sid=ann")
}

/// A shop with an account link on each page, and `more`.
fn with_account(asked: &Asked, more: &str, version: usize) -> Reply {
    let user = if is_ann(asked) { "Ann" } else { "Sign in" };
    let text = "<p>One of many events, with a long description.</p>".repeat(8);
    let head = format!(
        "<link rel=stylesheet href='/theme.css?version=7f53a1c2d4-{version}'><header><b id='user'>{user}</b></header>"
    );
    Reply::html(format!("{head}{}{more}{text}", links()))
}

#[test]
fn the_page_with_the_basket_decides_about_holes() {
    let report = Shop::start(|asked| {
        let more = if is_ann(asked) && asked.path == "/hall/forest/" { "<p>Your basket: 2</p>" } else { "" };
        with_account(asked, more, 0)
    })
    .examine(&ANN);
    let holes = report["vars"].get("HOLES").map(ToString::to_string).unwrap_or_default();
    assert!(!holes.contains("/hall/*/ "), "Ann would lose her basket: {report:#}");
    let warning = kind(&report, "/hall/*/")["warning"].to_string();
    assert!(warning.contains("Your basket: 2"), "{warning}");
}

#[test]
fn holes_need_a_page_that_shows_the_basket_of_this_page() {
    let with_form = |basket: &'static str| {
        move |asked: &Asked| {
            let event = asked.path.strip_prefix("/hall/").filter(|path| !path.contains("resend"));
            let Some(event) = event.map(|event| event.trim_matches('/')) else { return with_account(asked, "", 0) };
            let count = if is_ann(asked) && asked.path == basket { 2 } else { 0 };
            let form = format!("<form id=add method=post action='/hall/{event}/cart/add'><b>{count}</b></form>");
            with_account(asked, &form, 0)
        }
    };
    let report = Shop::start(with_form("")).examine(&ANN);
    let holes = |report: &serde_json::Value| report["vars"].get("HOLES").map(ToString::to_string).unwrap_or_default();
    assert!(!holes(&report).contains("/hall/*/ "), "{report:#}");
    let warning = kind(&report, "/hall/*/")["warning"].to_string();
    assert!(warning.contains("start the doctor at the page"), "{warning}");
    let report = Shop::start(with_form("/hall/river/")).examine(&ANN);
    assert!(holes(&report).contains("/hall/*/ #add <- ."), "{report:#}");
}

#[test]
fn a_value_that_changes_each_second_keeps_no_holes_away() {
    // The clock of the shop also advances between two visitors, so that a second never begins within a pair of renders alone.
    let start = Instant::now();
    let clock = Mutex::new((false, 0));
    let report = Shop::start(move |asked| {
        let is_ann = is_ann(asked);
        let steps = {
            let mut clock = clock.lock().unwrap();
            *clock = (is_ann, clock.1 + usize::from(clock.0 != is_ann));
            clock.1
        };
        with_account(asked, "", steps + usize::try_from(start.elapsed().as_secs()).unwrap())
    })
    .examine(&ANN);
    let holes = report["vars"]["HOLES"].as_str().unwrap_or_default();
    assert!(holes.contains("/hall/*/") && holes.contains("#user <- ."), "{report:#}");
}

#[test]
fn one_note_names_all_kinds_with_the_same_noise() {
    let report = Shop::start(|asked| with_account(asked, "", 1000 + asked.number)).examine(&[]);
    let notes = report["notes"].to_string();
    assert_eq!(notes.matches("contain an invisible value").count(), 1, "{notes}");
    assert!(notes.contains("pages of /, /hall/*/, /hall/*/resend/ contain"), "{notes}");
}
