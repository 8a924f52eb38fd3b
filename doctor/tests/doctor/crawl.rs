//! Which pages the doctor requests, and how often.

use std::time::{Duration, Instant};

use serde_json::json;

use super::support::{Asked, Reply, Shop, book_links, doctor, kind};

const ROBOTS: &str = "User-agent: *\nDisallow: /books/3/\n";

fn robots(text: &str) -> Reply {
    Reply::html(text).with("content-type", "text/plain")
}

#[test]
fn robots_txt_is_obeyed() {
    let shop = Shop::start(|asked: &Asked| match asked.path.as_str() {
        "/robots.txt" => robots(ROBOTS),
        _ => Reply::html(book_links(5)),
    });
    let report = shop.examine(&[]);
    assert_eq!(kind(&report, "/books/*/")["pages"], 4);
    assert!(shop.requests().iter().all(|asked| asked.path != "/books/3/"));
    assert!(report["notes"][0].as_str().unwrap().starts_with("robots.txt forbids"));
}

#[test]
fn redirects_of_robots_txt_are_followed() {
    // RFC 9309, section 2.3.1.2: at least five.
    let shop = |redirects: usize| {
        Shop::start(move |asked: &Asked| match asked.path.as_str() {
            path if path.contains("robots") && asked.number < redirects => {
                let target = format!("/robots-{}.txt", asked.number);
                Reply::status(301).with("location", &target).with("content-type", "text/plain")
            }
            path if path.contains("robots") => robots(ROBOTS),
            _ => Reply::html(book_links(5)),
        })
    };
    for (redirects, pages) in [(1, 4), (5, 4), (6, 5)] {
        assert_eq!(kind(&shop(redirects).examine(&[]), "/books/*/")["pages"], pages, "{redirects} redirects");
    }
}

#[test]
fn a_shop_that_forbids_everything_is_not_examined() {
    let shop = Shop::start(|_| robots("User-agent: *\nDisallow: /\n"));
    let run = doctor(&[&shop.url]);
    assert_eq!((run.code, run.output.as_str()), (Some(1), ""));
    assert!(run.errors.contains("robots.txt forbids http://127.0.0.1"), "{}", run.errors);
    assert_eq!(shop.requests().len(), 1);
}

#[test]
fn a_failing_robots_txt_forbids_everything() {
    let shop = Shop::start(|_| Reply::status(503).with("content-type", "text/plain"));
    let run = doctor(&[&shop.url]);
    assert_eq!(run.code, Some(1));
    assert!(run.errors.contains("robots.txt answers 503"), "{}", run.errors);
}

#[test]
fn an_endless_chain_of_links_ends() {
    let shop = Shop::start(|asked: &Asked| {
        let path = asked.path.trim_end_matches('/');
        Reply::html(format!(
            "<a href='{path}/more'>More</a><a href='/trap/{0}'>1</a><a href='/trap?n{0}=1'>2</a>",
            asked.number
        ))
    });
    let report = shop.examine(&["--pages", "15"]);
    assert!(report["pages"].as_u64().unwrap() <= 15);
    // Two renders, two visits and a repetition for each page, and about as many for the trials of rules; the crawl asks at most
    // twice as often as it needs pages; 20 comparisons by language and device.
    assert!(shop.requests().len() <= 15 * (5 + 5 + 2) + 20, "{}", shop.requests().len());
    assert_eq!(report["requests"], shop.requests().len());
}

#[test]
fn requests_come_one_at_a_time() {
    let shop = Shop::start(|_| Reply::html(book_links(5)));
    shop.examine(&[]);
    assert_eq!(shop.at_once(), 1);
}

#[test]
fn links_that_change_something_are_not_followed() {
    let links = "<a href='/logout'>1</a><a href='/?add-to-cart=1'>2</a><a rel='nofollow' href='/compare'>3</a>\
        <a href='/photo.jpg'>4</a><a href='http://localhost:1/elsewhere'>5</a><a href='/about'>6</a><a href='/abmelden'>7</a>\
        <a href='/cart?add=1'>8</a>";
    let shop = Shop::start(move |_| Reply::html(links));
    let report = shop.examine(&["--login", "login=ann"]);
    assert_eq!(report["pages"], 2);
    let paths: std::collections::BTreeSet<_> = shop.requests().into_iter().map(|asked| asked.path).collect();
    assert_eq!(paths.into_iter().collect::<Vec<_>>(), ["/", "/about", "/robots.txt"]);
}

#[test]
fn the_signed_in_visitor_never_requests_personal_paths() {
    let shop = Shop::start(|_| Reply::html("<a href='/account/orders'>Orders</a><a href='/about'>About</a>"));
    shop.examine(&["--login", "login=ann", "--var", "PATHS_PERSONAL=/account/*"]);
    let asked = |path: &str| shop.requests().iter().any(|asked| asked.path == path && asked.cookies.contains("login"));
    assert!(asked("/about") && !asked("/account/orders"));
}

#[test]
fn a_shop_that_is_overloaded_ends_the_crawl() {
    let shop = Shop::start(
        |asked: &Asked| {
            if asked.path == "/books/1/" { Reply::status(429) } else { Reply::html(book_links(8)) }
        },
    );
    let report = shop.examine(&[]);
    assert_eq!(report["pages"], 2);
    assert!(report["notes"][0].as_str().unwrap().contains("429"), "{}", report["notes"]);
    assert_eq!(report["dangers"], json!([]));
}

#[test]
fn the_doctor_waits_as_long_as_the_shop_asks() {
    let shop = Shop::start(|asked: &Asked| match asked.number {
        1 => Reply::html("<a href='/a'>A</a><a href='/b'>B</a>"),
        2 => Reply::status(503).with("retry-after", "2"),
        _ => Reply::html("<p>Shop</p>"),
    });
    let began = Instant::now();
    shop.examine(&["--pages", "3"]);
    assert!(began.elapsed() >= Duration::from_secs(2));
}

#[test]
fn a_path_that_no_rule_can_name_does_not_end_the_run() {
    let long = format!("/about/{}", "x".repeat(120));
    let page = format!("<a href='{long}'>Long</a>");
    let shop = Shop::start(move |asked: &Asked| Reply::html(format!("{page}<p>{}</p>", asked.number)));
    assert_eq!(shop.examine(&[])["pages"], 2);
}

#[test]
fn a_page_without_links_is_named_and_only_scripts_without_text_suggest_javascript() {
    let report = Shop::start(|_| Reply::html("<div id='root'></div><script>start()</script>")).examine(&[]);
    let note = report["notes"][0].as_str().unwrap();
    assert!(note.contains("has no links") && note.contains("JavaScript, which the doctor does not run"), "{note}");
    let text = "<p>One page with much to read.</p>".repeat(20);
    for page in ["<p>One page</p>".to_owned(), format!("{text}<script>start()</script>")] {
        let report = Shop::start(move |_| Reply::html(page.clone())).examine(&[]);
        let note = report["notes"][0].as_str().unwrap();
        assert!(note.contains("has no links") && !note.contains("JavaScript"), "{note}");
    }
    let linked = Shop::start(|_| Reply::html(book_links(5))).examine(&["--pages", "1"]);
    assert_eq!(linked["notes"], json!([]));
}

#[test]
fn a_copy_that_links_the_public_shop_is_named() {
    let links = [1, 2, 3].map(|book| format!("<a href='https://shop.example/books/{book}/'>Book</a>")).concat();
    let shop = Shop::start(move |_| Reply::html(format!("{links}<a href='https://social.example/shop'>Us</a>")));
    let notes = shop.examine(&[])["notes"].to_string();
    let expected = format!("3 to https://shop.example: set the address {} in the shop", shop.url);
    assert!(notes.contains(&expected), "{notes}");
}
