//! Shops that would show one visitor's page to another one, or take a visitor's own page away.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::support::{Asked, Reply, Shop, book_links, doctor, hits, kind};

const PUBLIC: &str = "public, s-maxage=60";

/// A hostile shop: a page with the visitor's name is public.
fn greets_by_name(asked: &Asked) -> Reply {
    let name = if asked.cookies.contains("login=ann") { "Hello Ann" } else { "Sign in" };
    Reply::html(format!("{}<p>{name}</p>", book_links(8))).with("cache-control", PUBLIC)
}

#[test]
fn a_public_page_with_a_name_is_the_first_thing_that_is_printed() {
    let shop = Shop::start(greets_by_name);
    let run = doctor(&[&shop.url, "--login", "login=ann; theme=dark"]);
    assert_eq!(run.code, Some(0), "{}", run.errors);
    assert!(run.output.starts_with("DANGER "), "{}", run.output);
    let first = run.output.split("\n\n").next().unwrap();
    for part in ["The shop declares this page public", "signed-in visitors", "`Sign in` or `Hello Ann`"] {
        assert!(first.contains(part), "{part}: {first}");
    }
}

#[test]
fn a_public_page_with_a_name_is_a_danger_although_each_visit_validates_it() {
    let page = |asked: &Asked| {
        let name = if asked.cookies.contains("login=ann") { "Hello Ann" } else { "Sign in" };
        let page = Reply::html(format!("{}<p>{name}</p>", book_links(8)));
        page.with("cache-control", "public, max-age=0").with("etag", &format!("\"{}\"", name.len()))
    };
    let report = Shop::start(page).examine(&["--login", "login=ann"]);
    assert!(sentence(&report).contains("They would get the page for everybody"), "{report:#}");
    assert_eq!(report["vars"]["COOKIES_PERSONAL"], "+ login");
}

#[test]
fn public_pages_without_a_login_ask_for_a_run_with_one() {
    let shop = Shop::start(greets_by_name);
    let asks = |options: &[&str]| shop.examine(options)["notes"].to_string().contains("declares /, /books/*/ public");
    assert!(asks(&[]), "the doctor knows no cookie of an account");
    assert!(!asks(&["--login", "login=ann"]));
    assert!(!asks(&["--var", "COOKIES_PERSONAL=login"]));
    let private = Shop::start(|_| Reply::html(book_links(8)));
    assert!(!private.examine(&[])["notes"].to_string().contains("--login"));
}

#[test]
fn the_variables_protect_the_visitors_of_a_public_page_with_a_name() {
    let shop = Shop::start(greets_by_name);
    let report = shop.examine(&["--login", "login=ann"]);
    let books = kind(&report, "/books/*/");
    assert_eq!(hits(books, "signed-in"), 8, "edgefront obeys HTTP");
    let personal = report["vars"]["COOKIES_PERSONAL"].as_str().unwrap();
    assert_eq!(personal, "+ login");
    let protected = shop.examine(&["--login", "login=ann", "--var", &format!("COOKIES_PERSONAL={personal}")]);
    assert_eq!(hits(kind(&protected, "/books/*/"), "signed-in"), 0);
    assert_eq!(hits(kind(&protected, "/books/*/"), "with-analytics"), 8);
    assert!(sentence(&protected).contains("edgefront's rules protect them"), "{protected:#}");
}

#[test]
fn a_name_in_a_hole_is_no_danger_and_a_name_beside_it_is() {
    let holes = ["--login", "login=ann", "--var", "HOLES=/books/* p <- .", "--var", "COOKIES_HOLES=login"];
    let report = Shop::start(greets_by_name).examine(&holes);
    let books = kind(&report, "/books/*/");
    assert_eq!((hits(books, "signed-in"), hits(books, "with-analytics")), (8, 8), "{report:#}");
    let is_of_books = |danger: &&Value| danger["kind"] == "/books/*/";
    assert_eq!(report["dangers"].as_array().unwrap().iter().filter(is_of_books).count(), 0, "{report:#}");
    let twice = |asked: &Asked| {
        let name = if asked.cookies.contains("login=ann") { "Hello Ann" } else { "Sign in" };
        Reply::html(format!("{}<p>{name}</p><b>{name}</b>", book_links(8))).with("cache-control", PUBLIC)
    };
    let report = Shop::start(twice).examine(&holes);
    let danger = report["dangers"].as_array().unwrap().iter().find(is_of_books).unwrap();
    assert!(danger["remedy"].as_str().unwrap().starts_with("add the parts that differ to HOLES"), "{danger:#}");
    assert!(report["vars"].get("COOKIES_PERSONAL").is_none(), "the holes would stay empty: {}", report["vars"]);
}

#[test]
fn a_session_of_holes_and_a_csrf_cookie_are_no_danger() {
    let page = |asked: &Asked| {
        let cookie = |name: &str| asked.cookies.split("; ").find_map(|cookie| cookie.strip_prefix(name));
        let token = cookie("shop_csrf=").map_or_else(|| format!("token-{}", asked.number), str::to_owned);
        let session = cookie("shop_session=").map_or_else(|| format!("session-{}", asked.number), str::to_owned);
        let cart = format!("<div id='mini-cart'>Cart of {session}</div>");
        let form = format!("<form><input type='hidden' name='csrf' value='{token}'></form>");
        let page = Reply::html(format!("{}{cart}{form}", book_links(8)));
        let page = page.with("set-cookie", &format!("shop_csrf={token}; Path=/"));
        page.with("set-cookie", &format!("shop_session={session}; Path=/; HttpOnly"))
    };
    let rules = ["HOLES=/books/* #mini-cart <- .", "COOKIES_HOLES=shop_session", "CSRF_COOKIE=shop_csrf"];
    let options: Vec<_> = rules.iter().flat_map(|rule| ["--var", rule]).collect();
    let report = Shop::start(page).examine(&options);
    let books = kind(&report, "/books/*/");
    assert_eq!((&report["dangers"], &books["hit_ratio_with_rules"]), (&json!([]), &json!(1.0)), "{books:#}");
    assert_eq!(report["vars"].get("COOKIES_PERSONAL"), None, "{}", report["vars"]);
    assert!(!report["notes"].to_string().contains("lose"), "{}", report["notes"]);
    let vars = report["vars"].as_object().unwrap();
    let vars: Vec<_> = vars.iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap())).collect();
    let options: Vec<_> = vars.iter().flat_map(|rule| ["--var", rule]).collect();
    let report = Shop::start(page).examine(&options);
    let books = kind(&report, "/books/{item}/");
    assert_eq!((&report["dangers"], hits(books, "with-own-cookies")), (&json!([]), 8), "{report:#}");
}

#[test]
fn analytics_cookies_are_never_proposed_as_personal() {
    let page = |asked: &Asked| {
        let banner = if asked.cookies.contains("_ga=") { "<p>Welcome back</p>" } else { "" };
        let page = Reply::html(format!("{}{banner}<a href='/start'>Start</a>", book_links(8)));
        if asked.path == "/start" { page.with("set-cookie", "_ga=1.2.3; Path=/") } else { page }
    };
    let report = Shop::start(page).examine(&["--var", "ITEM_ROUTES=/books/{item}/"]);
    let text = format!("{} {}", report["notes"], report["vars"]);
    assert!(text.contains("lose on /books/{item}/: `Welcome back`") && !text.contains("COOKIES_PERSONAL"), "{text}");
    let public = move |asked: &Asked| page(asked).with("cache-control", PUBLIC);
    let report = Shop::start(public).examine(&[]);
    assert!(sentence(&report).contains("get another one"), "{report:#}");
    assert_eq!(report["vars"], json!({}));
}

#[test]
fn a_public_page_that_is_different_for_each_visitor_is_a_leak() {
    let page = |asked: &Asked| {
        let visitor = format!("<p>Welcome, visitor {}</p>", asked.number);
        Reply::html(format!("{}{visitor}", book_links(8))).with("cache-control", PUBLIC)
    };
    let report = Shop::start(page).examine(&[]);
    assert!(sentence(&report).starts_with("Possible leak: the shop declares this page public"), "{report:#}");
    assert_eq!(report["dangers"][0]["differences"][0]["kind"], "visible-text");
    assert_eq!(report["vars"]["PATHS_PERSONAL"], "+ /, /books/*/");
    assert_eq!(report["hit_ratio_with_rules"], 0.0);
}

#[test]
fn a_shared_nonce_is_named() {
    let page = |asked: &Asked| {
        let script = format!("<script nonce='n{}'>buy()</script>", asked.number);
        Reply::html(format!("{}{script}", book_links(8))).with("cache-control", PUBLIC)
    };
    let report = Shop::start(page).examine(&[]);
    assert_eq!(report["dangers"][0]["differences"][0]["kind"], "nonce");
    assert_eq!(report["vars"].get("PATHS_PERSONAL"), None, "the pages belong to no visitor: {}", report["vars"]);
    let differing = |visitor: &Value| visitor["own_page_differs"].as_u64().unwrap();
    let visitors = kind(&report, "/books/*/")["visitors"].as_array().unwrap();
    assert_eq!(visitors.iter().map(differing).sum::<u64>(), 0, "a nonce says nothing about a visitor");
}

#[test]
fn a_public_page_that_shows_a_basket_is_found_with_the_shops_own_cookies() {
    let page = |asked: &Asked| {
        let basket = if asked.cookies.contains("basket=") { "1 item" } else { "no items" };
        let page = Reply::html(format!("{}<a href='/start'>Start</a><b>{basket}</b>", book_links(3)));
        let page = if asked.path == "/start" { page.with("set-cookie", "basket=7; Path=/") } else { page };
        page.with("cache-control", PUBLIC)
    };
    let report = Shop::start(page).examine(&[]);
    assert!(sentence(&report).contains("visitors with the shop's own cookies get another one"), "{report:#}");
    assert_eq!(report["vars"]["COOKIES_PERSONAL"], "+ basket");
}

#[test]
fn a_public_page_that_varies_by_cookie_is_no_danger() {
    let page = |asked: &Asked| greets_by_name(asked).with("vary", "Cookie");
    let report = Shop::start(page).examine(&["--login", "login=ann"]);
    let books = kind(&report, "/books/*/");
    assert_eq!((hits(books, "with-analytics"), hits(books, "signed-in")), (8, 0));
    assert_eq!(report["dangers"], json!([]));
}

#[test]
fn a_silent_shop_with_names_is_no_danger_because_cookies_make_visitors_personal() {
    let page = |asked: &Asked| {
        let name = if asked.cookies.contains("login=ann") { "Hello Ann" } else { "Sign in" };
        Reply::html(format!("{}<p>{name}</p>", book_links(8)))
    };
    let report = Shop::start(page).examine(&["--login", "login=ann", "--var", "ITEM_ROUTES=/books/{item}/"]);
    let books = kind(&report, "/books/{item}/");
    assert_eq!((hits(books, "with-analytics"), hits(books, "signed-in")), (8, 0));
    assert_eq!(report["dangers"], json!([]));
}

#[test]
fn the_advice_to_share_a_page_names_the_cookie_of_visitors_who_see_another_one() {
    let page = |asked: &Asked| {
        let name = if asked.cookies.contains("login=ann") { "Hello Ann" } else { "Sign in" };
        Reply::html(format!("<a href='/about?color=us'>About</a><p>{name}</p>"))
    };
    let report = Shop::start(page).examine(&["--login", "login=ann"]);
    let remedy = kind(&report, "/about?color")["remedy"].as_str().unwrap();
    assert!(remedy.ends_with("see a different page: first add COOKIES_PERSONAL = \"+ login\"."), "{remedy}");
    let report = Shop::start(page).examine(&["--login", "login=ann", "--var", "COOKIES_PERSONAL=login"]);
    let remedy = kind(&report, "/about?color")["remedy"].as_str().unwrap();
    assert!(remedy.ends_with("s-maxage=60."), "{remedy}");
}

#[test]
fn what_an_ignored_cookie_shows_is_a_note_and_the_page_stays_shared() {
    let shop = Shop::start(|asked| {
        let links = book_links(8).replace("/books/", "/catalogue/");
        let history = "<h2>Products you recently viewed</h2><p>A Book</p>";
        let history = if asked.cookies.contains("oscar_history=") { history } else { "" };
        let page = Reply::html(format!("{links}{history}")).with("set-cookie", "csrftoken=abcdefgh; Path=/");
        let page = page.with("vary", "Cookie");
        let cookie = "oscar_history=7; Path=/";
        if asked.path.starts_with("/catalogue/") { page.with("set-cookie", cookie) } else { page }
    });
    let report = shop.examine(&["--preset", "django-oscar"]);
    assert_eq!(report["dangers"], json!([]));
    let products = kind(&report, "/catalogue/{item}/");
    assert_eq!((hits(products, "with-own-cookies"), &products["hit_ratio_with_rules"]), (8, &json!(1.0)));
    assert!(report["vars"].get("PATHS_PERSONAL").is_none(), "{}", report["vars"]);
    let notes = report["notes"].to_string();
    for part in [
        "visitors with oscar_history lose on /catalogue/{item}/: `Products you recently viewed A Book`",
        "COOKIES_PERSONAL = \\\"+ oscar_history\\\", at the cost of hits",
    ] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    // The note's rule protects the list.
    let kept = shop.examine(&["--preset", "django-oscar", "--var", "COOKIES_PERSONAL=+ oscar_history"]);
    assert_eq!(hits(kind(&kept, "/catalogue/{item}/"), "with-own-cookies"), 0);
    assert!(!kept["notes"].to_string().contains("lose"), "{}", kept["notes"]);
}

#[test]
fn a_public_page_that_an_ignored_cookie_changes_is_a_danger_but_stays_shared() {
    let page = |asked: &Asked| {
        let seen = if asked.cookies.contains("seen=") { "Seen by you" } else { "New" };
        let page = Reply::html(format!("{}<a href='/start'>Start</a><b>{seen}</b>", book_links(3)));
        let page = if asked.path == "/start" { page.with("set-cookie", "seen=7; Path=/") } else { page };
        page.with("cache-control", PUBLIC)
    };
    let report = Shop::start(page).examine(&["--var", "COOKIES_IGNORED=+ seen"]);
    assert!(sentence(&report).contains("visitors with the shop's own cookies get another one"), "{report:#}");
    assert_eq!((&report["vars"]["COOKIES_PERSONAL"], report["vars"].get("PATHS_PERSONAL")), (&json!("+ seen"), None));
}

#[test]
fn a_signed_in_visitor_with_an_ignored_cookie_is_in_danger() {
    let page = |asked: &Asked| {
        let name = if asked.cookies.contains("login=ann") { "Hello Ann" } else { "Sign in" };
        Reply::html(format!("{}<p>{name}</p>", book_links(8)))
    };
    let rules = ["--var", "ITEM_ROUTES=/books/{item}/", "--var", "COOKIES_IGNORED=+ login"];
    let report = Shop::start(page).examine(&[&["--login", "login=ann"], &rules[..]].concat());
    assert!(sentence(&report).starts_with("edgefront would store this page, but signed-in"), "{report:#}");
    let remedy = report["dangers"][0]["remedy"].as_str().unwrap();
    assert!(remedy.contains("private") && !remedy.contains("is public"), "the shop states nothing: {remedy}");
}

#[test]
fn a_leak_of_a_silent_shop_is_not_called_public() {
    let page = |asked: &Asked| Reply::html(format!("{}<p>Visitor {}</p>", book_links(8), asked.number));
    let report = Shop::start(page).examine(&["--var", "ITEM_ROUTES=/books/{item}/"]);
    assert!(sentence(&report).starts_with("Possible leak: edgefront would store this page"), "{report:#}");
    assert!(!report["dangers"][0]["remedy"].as_str().unwrap().contains("is public"));
    assert_eq!(report["vars"]["PATHS_PERSONAL"], "+ /, /books/*/");
}

#[test]
fn a_kind_in_danger_gets_no_rule_that_shares_it() {
    let page = |asked: &Asked| {
        let name = asked.cookies.split("; ").find_map(|cookie| cookie.strip_prefix("name=")).unwrap_or("Guest");
        let page = Reply::html(format!("{}<p>Hello {name}</p>", book_links(8))).with("cache-control", "public");
        page.with("set-cookie", &format!("name=Visitor{}; Path=/", asked.number))
    };
    let report = Shop::start(page).examine(&[]);
    assert!(sentence(&report).contains("visitors with the shop's own cookies get another one"), "{report:#}");
    let books = kind(&report, "/books/*/");
    assert_eq!(books["rules"], json!([]), "{books:#}");
    assert!(books["remedy"].as_str().unwrap().starts_with("None: "), "{books:#}");
    assert_eq!((report["vars"].get("COOKIES_DROPPED"), report["vars"].get("ITEM_ROUTES")), (None, None));
    assert_eq!(report["hit_ratio_with_rules"], 0.0);
}

#[test]
fn a_rule_for_one_kind_shares_no_other_kind_that_is_in_danger() {
    // The rule for /books/*/ would drop the cookie of /books/*/reviews/, too.
    let page = |asked: &Asked| {
        let reviews = book_links(6).replace("/'>", "/reviews/'>");
        let page = Reply::html(format!("{}{reviews}<p>Books</p>", book_links(6)));
        let page = if asked.cookies.contains("sid=") { page } else { page.with("set-cookie", "sid=1; Path=/") };
        if !asked.path.ends_with("/reviews/") {
            return page;
        }
        let name = if asked.cookies.contains("login=ann") { "Hello Ann" } else { "Sign in" };
        let page = Reply::html(format!("<p>{name}</p>")).with("cache-control", PUBLIC);
        page.with("set-cookie", "sid=1; Path=/")
    };
    let report = Shop::start(page).examine(&["--login", "login=ann; sid=1"]);
    assert!(sentence(&report).contains("signed-in visitors get another one"), "{report:#}");
    assert_eq!(kind(&report, "/books/*/reviews/")["rules"], json!([]));
    assert_eq!(
        (&report["vars"]["COOKIES_DROPPED"], &report["vars"]["PATHS_SHARED"]),
        (&json!("+ sid@/"), &json!("+ /"))
    );
}

#[test]
fn the_excerpt_is_the_visitors_text_and_no_clock() {
    let page = |asked: &Asked| {
        let (clock, space) = (format!("12:30:{}", asked.number), " \n".repeat(80));
        let own = format!("{space}<div><span>{clock}</span>{space}<b>Hello Ann</b>{space}</div>");
        let (blank, own) = if asked.cookies.contains("login=ann") { ("\n\n", own) } else { ("\n", String::new()) };
        Reply::html(format!("{}{blank}<h1>A shop</h1>{own}<h2>Books</h2>", book_links(8))).with("cache-control", PUBLIC)
    };
    let report = Shop::start(page).examine(&["--login", "login=ann"]);
    let differences = report["dangers"][0]["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 1, "{differences:#?}");
    let text = |name: &str| differences[0][name].as_str().unwrap();
    assert_eq!((text("one"), text("other")), ("", "Hello Ann"));
    assert!(text("before").ends_with("Book A shop") && text("after") == "Books", "{differences:#?}");
    assert!(text("before").chars().count() <= 60);
}

#[test]
fn a_clock_is_no_difference_of_visitors() {
    // It changes between the requests of the first visitors and those of the others, as a clock with seconds does.
    let page = |asked: &Asked| {
        let links = if asked.path == "/" { "<a href='/start'>Start</a>" } else { "" };
        Reply::html(format!("{links}<b>{}</b>", asked.number / 3)).with("cache-control", PUBLIC)
    };
    let report = Shop::start(page).examine(&["--login", "login=ann"]);
    let visitors = report["dangers"].to_string();
    assert!(!visitors.contains("get another one"), "{visitors}");
}

/// As `SolidStart` streams a page: a part whose data are late comes after the rest.
#[test]
fn a_page_whose_parts_come_in_the_order_of_their_data_is_no_danger() {
    let shop = Shop::start(|asked: &Asked| {
        let (links, id) = (book_links(8), asked.number);
        let is_late = asked.number % 5 == 1;
        let page =
            if is_late { format!("<i></i><p>A shop</p>{links}") } else { format!("{links}<i></i><p>A shop</p>") };
        Reply::html(format!("<body data-id='{id}'>{page}")).with("cache-control", PUBLIC)
    });
    let report = shop.examine(&["--login", "login=ann"]);
    assert_eq!((&report["dangers"], &report["hit_ratio_with_rules"]), (&json!([]), &json!(1.0)), "{report:#}");
}

/// As Marko streams a page: parts that arrive at the same time share a script.
#[test]
fn a_page_whose_parts_share_a_script_by_chance_is_no_danger() {
    let shop = Shop::start(|asked: &Asked| {
        let script = if asked.number % 5 == 1 { "" } else { "<script>M.w()</script>" };
        let page = format!("<p>A shop</p>{script}{}<script>M.w()</script>", book_links(8));
        Reply::html(page).with("cache-control", PUBLIC)
    });
    let report = shop.examine(&["--login", "login=ann"]);
    assert_eq!((&report["dangers"], &report["hit_ratio_with_rules"]), (&json!([]), &json!(1.0)), "{report:#}");
}

#[test]
fn a_shop_in_trouble_leaks_nothing() {
    for status in [429, 500, 503] {
        // The crawl requests the page once. The examination requests it for each visitor.
        let seen = AtomicUsize::new(0);
        let shop = Shop::start(move |asked: &Asked| {
            let page = Reply::html(book_links(8)).with("cache-control", PUBLIC);
            let is_second = asked.path == "/books/1/" && seen.fetch_add(1, Ordering::SeqCst) == 2;
            if is_second { Reply::status(status) } else { page }
        });
        let report = shop.examine(&[]);
        assert_eq!((&report["dangers"], &report["pages"]), (&json!([]), &json!(8)), "{status}");
        assert!(
            report["notes"][0].as_str().unwrap().contains("1 of 9 pages did not answer again"),
            "{}",
            report["notes"]
        );
    }
}

fn sentence(report: &Value) -> &str {
    report["dangers"][0]["sentence"].as_str().unwrap_or_default()
}

#[test]
fn a_login_that_changes_no_page_is_noted_with_both_causes() {
    let shop = Shop::start(|_| Reply::html(book_links(3)).with("cache-control", "public, s-maxage=60"));
    let notes = shop.examine(&["--login", "sid=1"])["notes"].to_string();
    assert!(notes.contains("cripts may fill in the account's parts") && notes.contains("have expired"), "{notes}");
    assert!(!notes.contains("COOKIES_IGNORED"), "the visitor gets the stored page");
}

#[test]
fn a_cookie_with_the_name_of_edgefronts_own_is_noted() {
    let notes = |cookie: &'static str| {
        let shop = Shop::start(move |_| Reply::html(book_links(3)).with("set-cookie", cookie));
        shop.examine(&[])["notes"].to_string()
    };
    assert!(notes("__Host-session=1; Path=/; Secure").contains("give the shop's cookie another name"));
    assert!(!notes("__Host-sid=1; Path=/; Secure").contains("another name"));
}
