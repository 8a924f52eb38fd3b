//! Stored or not and why, the rules that change it, and the variables to paste.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::support::{Asked, Reply, Shop, book_links, doctor, hits, kind};

/// As django-oscar answers: a masked CSRF token in each form, cookies on each page, `Vary: Cookie`.
fn django(asked: &Asked) -> Reply {
    let token = format!("{:064}", asked.number);
    let form = format!("<form><input type='hidden' name='csrfmiddlewaretoken' value='{token}'></form>");
    let links = [0, 1, 2, 3, 4, 5, 6, 7].map(|number| format!("<a href='/catalogue/book_{number}/'>Book</a>")).concat();
    let page = Reply::html(format!("{links}<a href='/basket/'>Basket</a><a href='/accounts/login/'>Sign in</a>{form}"));
    let page = page.with("vary", "Cookie").with("set-cookie", &format!("csrftoken={token}; Path=/"));
    match asked.path.as_str() {
        "/basket/" => page.with("set-cookie", "oscar_open_basket=7; Path=/"),
        path if path.starts_with("/catalogue/") => {
            page.with("set-cookie", &format!("oscar_history={}; Path=/", asked.number))
        }
        _ => page,
    }
}

#[test]
fn the_preset_of_a_django_shop_is_recognized_and_shares_its_products() {
    let report = Shop::start(django).examine(&[]);
    assert_eq!(report["preset"]["name"], "django-oscar");
    assert_eq!(report["vars"]["PRESET"], "django-oscar");
    assert_eq!(report["dangers"], json!([]));
    let products = kind(&report, "/catalogue/{item}/");
    assert_eq!(products["stored"], products["pages"]);
    assert_eq!(products["hit_ratio"], 1.0);
    for (visitor, expected) in [("without-cookies", 8), ("with-analytics", 8), ("with-own-cookies", 0)] {
        assert_eq!(hits(products, visitor), expected, "{visitor}");
    }
    assert_eq!(kind(&report, "/basket/")["not_stored"][0]["reason"], "path");
}

#[test]
fn without_a_preset_the_doctor_finds_the_rules_for_a_django_shop() {
    let report = Shop::start(django).examine(&["--preset", "default"]);
    let products = kind(&report, "/catalogue/*/");
    assert_eq!(products["not_stored"][0]["cause"], "set-cookie: csrftoken, oscar_history");
    assert_eq!((&products["hit_ratio"], &products["hit_ratio_with_rules"]), (&json!(0.0), &json!(1.0)));
    let rules = products["rules"].as_array().unwrap();
    assert!(rules.iter().all(|rule| rule["risk"].as_str().unwrap().ends_with('.')), "{rules:#?}");
    assert_eq!(report["vars"]["CSRF_COOKIE"], "csrftoken");
    assert_eq!(report["vars"]["COOKIES_DROPPED"], "+ oscar_history@/catalogue/*/");
    assert_eq!(report["vars"]["ITEM_ROUTES"], "/catalogue/{item}/");
    assert!(report["notes"][0].as_str().unwrap().contains("--preset django-oscar"));
}

/// Pages with these freshness directives and a validator.
fn with_validator(control: &'static str) -> Shop {
    Shop::start(move |_| Reply::html(book_links(8)).with("cache-control", control).with("etag", "\"1\""))
}

#[test]
fn a_page_that_each_visit_validates_is_no_hit() {
    for control in ["public, max-age=0", "public, no-cache"] {
        let report = with_validator(control).examine(&[]);
        let books = kind(&report, "/books/*/");
        let found =
            (&books["stored"], hits(books, "without-cookies"), &books["hit_ratio"], &books["hit_ratio_with_rules"]);
        assert_eq!(found, (&json!(0), 0, &json!(0.0), &json!(1.0)), "{control}: {books:#}");
        assert_eq!(report["vars"]["PATHS_SHARED"], "+ /, /books/*/", "{control}");
    }
    let report = with_validator("public, max-age=0, stale-while-revalidate=60").examine(&[]);
    assert_eq!(kind(&report, "/books/*/")["hit_ratio"], 1.0, "the stale page answers");
}

/// As a shop with a language in the path: a proposed route would replace the default, which names the other language.
#[test]
fn a_new_route_of_items_keeps_the_default_ones_in_use() {
    let report = Shop::start(|_: &Asked| {
        let paths = ["/products", "/de/products"].into_iter();
        let links = paths.flat_map(|path| (0..8).map(move |id| format!("<a href='{path}/{id}'>{id}</a>")));
        Reply::html(format!("<h1>Things</h1>{}", links.collect::<Vec<_>>().concat()))
    })
    .examine(&[]);
    assert_eq!(report["vars"]["ITEM_ROUTES"], "/products/{item}, /de/products/{item}", "{report:#}");
    assert_eq!(report["vars"]["PATHS_SHARED"], "+ /");
}

/// A double-submit shop: each form repeats the cookie `shop_csrf`.
fn double_submit(asked: &Asked) -> Reply {
    let own = asked.cookies.split("; ").find_map(|cookie| cookie.strip_prefix("shop_csrf="));
    let token = own.map_or_else(|| format!("token-of-visitor-{}", asked.number), str::to_owned);
    let form = format!("<form><input type='hidden' name='csrf' value='{token}'></form>");
    let form = if asked.path == "/about" { String::new() } else { form };
    let links = "<a href='/cart'>Cart</a><a href='/about'>About</a>";
    let page = Reply::html(format!("{}{links}{form}", book_links(8)));
    if own.is_some() { page } else { page.with("set-cookie", &format!("shop_csrf={token}; Path=/; HttpOnly")) }
}

#[test]
fn the_token_that_repeats_a_cookie_becomes_a_hole_because_the_shop_may_have_signed_it() {
    let report = Shop::start(double_submit).examine(&[]);
    let books = kind(&report, "/books/*/");
    assert_eq!(books["remedy"], "tried, and safe:", "{books:#}");
    assert_eq!((&books["hit_ratio_with_rules"], &report["dangers"]), (&json!(1.0), &json!([])));
    assert_eq!((report["vars"].get("CSRF_COOKIE"), &report["vars"]["COOKIES_IGNORED"]), (None, &json!("+ shop_csrf")));
    assert_eq!(report["vars"]["ITEM_ROUTES"], "/books/{item}/");
    assert_eq!(report["vars"]["HOLES"], "+ /,/books/*/ input[name='csrf'] <- token");
    let cart = kind(&report, "/cart");
    assert_eq!((&cart["renders_differ"], &report["vars"]["PATHS_PERSONAL"]), (&json!(1), &json!("+ /cart")));
    assert_eq!(cart["remedy"], "The page differs between visitors. Add /cart to PATHS_PERSONAL.");
    assert_eq!(report["vars"]["PATHS_SHARED"], "+ /, /about");
}

#[test]
fn a_single_page_that_differs_between_visitors_is_kept_personal() {
    let page = |asked: &Asked| match asked.path.as_str() {
        "/desk" => Reply::html(format!("<p>Your number: {}</p>", asked.number)),
        "/own" => Reply::html(format!("<p>{}</p>", asked.number)).with("cache-control", "private"),
        _ => Reply::html("<a href='/desk'>Desk</a><a href='/own'>Own</a>"),
    };
    let report = Shop::start(page).examine(&[]);
    assert_eq!(report["vars"], json!({"PATHS_PERSONAL": "+ /desk", "PATHS_SHARED": "+ /"}));
    assert_eq!(kind(&report, "/desk")["remedy"], "The page differs between visitors. Add /desk to PATHS_PERSONAL.");
    let run = Shop::start(page).examine(&["--var", "PATHS_PERSONAL=/desk"]);
    assert_eq!(run["vars"], json!({"PATHS_PERSONAL": "/desk", "PATHS_SHARED": "+ /"}), "known already");
}

#[test]
fn a_token_that_the_shop_renews_is_no_csrf_cookie_although_the_form_repeats_it() {
    let page = |asked: &Asked| {
        let form = format!("<form><input type='hidden' name='csrf' value='signed-{}'></form>", asked.number);
        let cookie = format!("shop_csrf=signed-{}; Path=/", asked.number);
        Reply::html(format!("{}{form}", book_links(8))).with("set-cookie", &cookie)
    };
    let report = Shop::start(page).examine(&[]);
    let books = kind(&report, "/books/*/");
    assert_eq!(books["remedy"], "tried, and safe:", "{books:#}");
    assert_eq!(report["vars"]["HOLES"], "+ /,/books/*/ input[name='csrf'] <- token");
    assert_eq!((report["vars"].get("CSRF_COOKIE"), &report["vars"]["COOKIES_IGNORED"]), (None, &json!("+ shop_csrf")));
}

#[test]
fn all_visitors_send_the_common_csrf_cookie_as_behind_edgefront() {
    let shop = Shop::start(double_submit);
    let rules = ["--var", "CSRF_COOKIE=shop_csrf", "--var", "ITEM_ROUTES=/books/{item}/"];
    let report = shop.examine(&[&["--login", "shop_csrf=of-ann; login=ann"], &rules[..]].concat());
    let books = kind(&report, "/books/{item}/");
    assert_eq!(
        (&books["renders_differ"], &books["hit_ratio"], &report["dangers"]),
        (&json!(0), &json!(1.0), &json!([]))
    );
    assert!(!report.to_string().contains("csrf-token"), "{report:#}");
    // The value of the Worker comes with the shared renders.
    let asked = shop.requests().into_iter().map(|asked| asked.cookies);
    let as_ann: Vec<_> = asked.filter(|cookies| cookies.contains("login=ann")).collect();
    assert!(!as_ann.is_empty());
    for cookies in as_ann {
        assert_eq!(cookies, "login=ann; shop_csrf=edgefrontverifiestheoriginheader");
    }
}

/// A shop that states no freshness and gives every visitor a session.
fn silent(asked: &Asked, body: &str) -> Reply {
    let page = Reply::html(format!("{}{body}", book_links(8)));
    if asked.cookies.contains("shopsession") {
        return page;
    }
    page.with("set-cookie", &format!("shopsession=visitor-{}; Path=/; HttpOnly", asked.number))
}

#[test]
fn a_session_cookie_is_dropped_where_the_page_does_not_depend_on_it() {
    let shop = Shop::start(|asked| silent(asked, ""));
    let report = shop.examine(&[]);
    assert_eq!(report["preset"], json!(null));
    let books = kind(&report, "/books/*/");
    assert_eq!(books["not_stored"][0]["cause"], "set-cookie: shopsession");
    assert_eq!(books["set_cookies"][0], json!({"name": "shopsession", "rule": "no rule", "is_dropped": false}));
    assert_eq!(report["vars"]["COOKIES_DROPPED"], "+ shopsession@/, shopsession@/books/*/");
    assert_eq!(report["vars"]["COOKIES_PERSONAL"], "+ shopsession");
    // With the proposed variables, the decision is as promised.
    let vars = report["vars"].as_object().unwrap();
    let vars: Vec<_> = vars.iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap())).collect();
    let options: Vec<_> = vars.iter().flat_map(|var| ["--var", var]).collect();
    let again = shop.examine(&options);
    let books = kind(&again, "/books/{item}/");
    assert_eq!((books["stored"].as_u64(), &again["dangers"]), (books["pages"].as_u64(), &json!([])));
    assert_eq!((hits(books, "with-analytics"), hits(books, "with-own-cookies")), (8, 0));
}

#[test]
fn a_rule_that_could_not_be_tried_is_not_proposed() {
    // The first page of the kind gets one request of the crawl and four of the examination. All later ones belong to
    // the trial of the rules.
    for answered in 5..9 {
        let seen = AtomicUsize::new(0);
        let shop = Shop::start(move |asked| {
            let page = silent(asked, "");
            let is_trial = asked.path == "/books/0/" && seen.fetch_add(1, Ordering::SeqCst) >= answered;
            if is_trial { Reply::status(503) } else { page }
        });
        let books = kind(&shop.examine(&[]), "/books/*/").clone();
        assert_eq!((&books["pages"], &books["rules"]), (&json!(8), &json!([])), "{answered}");
        assert!(books["remedy"].as_str().unwrap().starts_with("Not verified: "), "{}", books["remedy"]);
    }
}

#[test]
fn sharing_is_never_proposed_where_the_page_depends_on_the_session() {
    let shop = Shop::start(|asked| silent(asked, &format!("<p>Your number: {}</p>", asked.number)));
    let report = shop.examine(&[]);
    let books = kind(&report, "/books/*/");
    assert_eq!((&books["rules"], &books["renders_differ"]), (&json!([]), &books["pages"]));
    assert!(books["remedy"].as_str().unwrap().ends_with("so it must not be shared."), "{}", books["remedy"]);
    assert_eq!(books["differences"][0]["kind"], "visible-text");
    assert!(books["differences"][0]["one"].as_str().unwrap().starts_with("Your number: "));
    assert!(report["vars"].get("COOKIES_DROPPED").is_none() && report["vars"].get("ITEM_ROUTES").is_none());
}

#[test]
fn sharing_is_never_proposed_where_no_hole_covers_a_token_of_the_session() {
    let element = |asked: &Asked| format!("<p data-csrf='t{}'></p>", asked.number);
    let report = Shop::start(move |asked| silent(asked, &element(asked))).examine(&[]);
    let books = kind(&report, "/books/*/");
    assert_eq!((&books["rules"], &books["differences"][0]["kind"]), (&json!([]), &json!("csrf-token")));
    assert!(books["remedy"].as_str().unwrap().starts_with("No rule covers the token of the session"), "{books:#}");
    assert!(report["vars"].get("COOKIES_DROPPED").is_none());
}

#[test]
fn a_shop_that_declares_its_pages_shared_needs_only_a_rule_for_purges() {
    let page = |_: &Asked| Reply::html(book_links(8)).with("cache-control", "public, s-maxage=60");
    let report = Shop::start(page).examine(&[]);
    assert_eq!((&report["hit_ratio"], &report["dangers"]), (&json!(1.0), &json!([])));
    assert_eq!(report["vars"], json!({ "ITEM_ROUTES": "/books/{item}/" }));
}

/// As PHP answers if each page starts a session. The basket shows the number of the visitor.
fn php(asked: &Asked) -> Reply {
    let own = if asked.path == "/basket" { format!("<p>Visitor {}</p>", asked.number) } else { String::new() };
    let page = Reply::html(format!("{}<a href='/basket'>Basket</a>{own}", book_links(8)));
    let page = page.with("cache-control", "no-store, no-cache, must-revalidate").with("pragma", "no-cache");
    page.with("set-cookie", &format!("PHPSESSID=visitor-{}; path=/", asked.number))
}

#[test]
fn equal_pages_are_shared_although_the_shop_forbids_it() {
    let shop = Shop::start(php);
    let report = shop.examine(&[]);
    let books = kind(&report, "/books/*/");
    assert_eq!((&books["remedy"], &books["hit_ratio_with_rules"]), (&json!("tried, and safe:"), &json!(1.0)));
    assert!(books["rules"].to_string().contains("the shop forbids caches to store these pages"), "{books:#}");
    let expected = json!({
        "COOKIES_DROPPED": "+ PHPSESSID@/, PHPSESSID@/books/*/",
        "COOKIES_PERSONAL": "+ PHPSESSID",
        "ITEM_ROUTES": "/books/{item}/",
        "PATHS_PERSONAL": "+ /basket",
        "PATHS_SHARED": "+ /, /books/*/",
    });
    assert_eq!(report["vars"], expected);
    let options =
        expected.as_object().unwrap().iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap()));
    let options: Vec<_> = options.flat_map(|option| ["--var".to_owned(), option]).collect();
    let again = shop.examine(&options.iter().map(String::as_str).collect::<Vec<_>>());
    let books = kind(&again, "/books/{item}/");
    assert_eq!((&books["stored"], &again["dangers"]), (&books["pages"], &json!([])));
    assert_eq!((hits(books, "with-analytics"), hits(books, "with-own-cookies")), (8, 0));
}

#[test]
fn the_text_names_each_risk_once() {
    let shop = Shop::start(php);
    let text = doctor(&[&shop.url]).output;
    assert!(text.matches("PATHS_SHARED: ").count() > 1, "{text}");
    let mut risks: Vec<_> = text.lines().filter(|line| line.contains("Risk: ")).collect();
    let all = risks.len();
    risks.sort_unstable();
    risks.dedup();
    assert!(all > 1 && all == risks.len(), "{text}");
}

#[test]
fn a_forbidden_page_that_differs_is_not_shared() {
    let report = Shop::start(|asked: &Asked| {
        Reply::html(format!("{}<p>{}</p>", book_links(8), asked.number)).with("cache-control", "private, max-age=60")
    })
    .examine(&[]);
    let books = kind(&report, "/books/*/");
    assert_eq!((&books["not_stored"][0]["reason"], &books["rules"]), (&json!("private"), &json!([])));
    assert!(books["remedy"].as_str().unwrap().ends_with("so it must not be shared."), "{}", books["remedy"]);
    assert_eq!((report["vars"].get("PATHS_SHARED"), &report["hit_ratio_with_rules"]), (None, &json!(0.0)));
}

#[test]
fn the_examined_address_is_not_proposed_as_the_origin() {
    let shop = Shop::start(|asked| silent(asked, ""));
    let run = doctor(&[&shop.url]);
    let (_, vars) = run.output.split_once("\n[vars]\n").unwrap();
    assert!(vars.contains("# ORIGIN_URL = \"https://origin.shop.example\"\n"), "{vars}");
    assert!(!vars.contains(&shop.url) && vars.contains("\nITEM_ROUTES = "), "{vars}");
    for line in vars.lines().filter(|line| line.contains("ORIGIN_URL")) {
        assert!(line.starts_with("# "), "{line}");
    }
}

#[test]
fn the_session_of_a_public_page_is_personal_unless_the_account_sees_the_same_page() {
    let shop = Shop::start(|asked| silent(asked, "").with("cache-control", "s-maxage=60"));
    let report = shop.examine(&[]);
    assert_eq!(report["vars"]["COOKIES_DROPPED"], "+ shopsession@/, shopsession@/books/*/");
    assert_eq!(report["vars"]["COOKIES_PERSONAL"], "+ shopsession", "{}", report["vars"]);
    // The page is the same for a visitor with an account and a basket.
    let report = shop.examine(&["--login", "shopsession=ann"]);
    assert_eq!(report["vars"]["COOKIES_DROPPED"], "+ shopsession@/, shopsession@/books/*/");
    assert!(report["vars"].get("COOKIES_PERSONAL").is_none(), "{}", report["vars"]);
    let other =
        |_: &Asked| Reply::html(book_links(8)).with("cache-control", "s-maxage=60").with("set-cookie", "seen=1");
    let report = Shop::start(other).examine(&[]);
    assert_eq!(report["vars"]["COOKIES_DROPPED"], "+ seen@/, seen@/books/*/");
    assert!(report["vars"].get("COOKIES_PERSONAL").is_none(), "{}", report["vars"]);
}

#[test]
fn paths_of_logins_are_proposed() {
    let report =
        Shop::start(|_: &Asked| Reply::html("<a href='/accounts/login/'>Sign in</a><form method=post></form>"))
            .examine(&[]);
    assert_eq!(report["vars"]["LOGIN_ROUTES"], "/login, /signup, /accounts/login/", "{report:#}");
    for (page, expected) in [("/session/new", "/session"), ("/users/sign_in", "/users/sign_in")] {
        let report = Shop::start(move |_: &Asked| Reply::html(format!("<a href='{page}'>Sign in</a>"))).examine(&[]);
        assert_eq!(report["vars"]["LOGIN_ROUTES"], format!("/login, /signup, {expected}"), "{report:#}");
        assert_eq!(report["vars"]["PATHS_PERSONAL"], format!("+ {page}"), "{report:#}");
    }
}

/// As express-session answers: each response without a session starts one, also that of a script.
fn express(asked: &Asked) -> Reply {
    let page = if asked.path == "/static/app.js" {
        let script = Reply::html("let cart;".repeat(200)).with("content-type", "text/javascript");
        script.with("cache-control", "public, max-age=31536000")
    } else {
        Reply::html(format!("<script src='/static/app.js'></script>{}", book_links(8)))
    };
    let has_session = asked.cookies.contains("sid=");
    if has_session { page } else { page.with("set-cookie", &format!("sid=of-{}; Path=/", asked.number)) }
}

#[test]
fn a_script_that_starts_the_session_gets_a_rule_if_it_can_be_stored() {
    let examine = |shop: fn(&Asked) -> Reply, variables: &[&str]| {
        let options: Vec<_> = variables.iter().flat_map(|variable| ["--var", variable]).collect();
        let report = Shop::start(shop).examine(&options);
        assert_eq!(kind(&report, "/books/*/")["hit_ratio_with_rules"], 1.0, "{report:#}");
        (report["notes"].to_string(), report["vars"]["COOKIES_DROPPED"].to_string())
    };
    let (notes, rules) = examine(express, &[]);
    assert!(notes.contains("/static/app.js sets sid, too: COOKIES_DROPPED sid@/static/*"), "{notes}");
    assert!(rules.contains("sid@/static/*"), "{rules}");
    let without_freshness = |asked: &Asked| {
        let page = Reply::html(format!("<script src='/static/app.js'></script>{}", book_links(8)));
        page.with("set-cookie", &format!("sid=of-{}; Path=/", asked.number))
    };
    let (notes, rules) = examine(without_freshness, &[]);
    assert!(notes.contains("/static/app.js sets sid, too: only a visitor's first page"), "{notes}");
    assert!(!rules.contains("static"), "{rules}");
    let dropped = "COOKIES_DROPPED=sid@/static/*";
    let (notes, _) = examine(express, &[dropped]);
    assert!(!notes.contains("app.js"), "{notes}");
    let (notes, _) = examine(express, &[dropped, "PAGE_MAX_BYTES=1500"]);
    assert!(
        notes.contains("/static/app.js sets sid and is too large") && notes.contains("PAGE_MAX_BYTES to 2048"),
        "{notes}"
    );
}
