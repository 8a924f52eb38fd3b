//! Kinds of few pages: which of them have one template, and rules in common.

use serde_json::Value;

use super::support::{Asked, Reply, Shop, hits, kind};

/// A form with a token of the session.
const TOKEN_FORM: &str = "<form method=post action=/subscribe><input type=hidden name=_token value=";

fn categories(names: &[&str]) -> String {
    names.iter().map(|name| format!("<a href='/categories/{name}'>{name}</a>")).collect::<Vec<_>>().concat()
}

/// The page of a category, with as many products as its name has letters.
fn category(name: &str) -> String {
    let product = "<li class=card><a href=/><b class=price>5 EUR</b></a></li>".repeat(name.len());
    format!("<body class='list list-{name}'><h1>{name}</h1><ul class=products>{product}</ul>")
}

/// A shop whose pages start a session, and have no token. `home` is the text of its home page.
fn shop(home: String) -> impl Fn(&Asked) -> Reply + Send + Sync + 'static {
    move |asked: &Asked| {
        let page = Reply::html(match asked.path.strip_prefix("/categories/") {
            Some(name) => category(name),
            None => home.clone(),
        });
        page.with("set-cookie", &format!("sid=visitor-{}; Path=/", asked.number))
    }
}

fn kinds(report: &Value) -> Vec<&str> {
    let mut kinds: Vec<_> =
        report["kinds"].as_array().unwrap().iter().map(|kind| kind["kind"].as_str().unwrap()).collect();
    kinds.sort_unstable();
    kinds
}

fn options(report: &Value) -> Vec<String> {
    let vars = report["vars"].as_object().unwrap().iter();
    vars.flat_map(|(name, value)| ["--var".to_owned(), format!("{name}={}", value.as_str().unwrap())]).collect()
}

#[test]
fn three_categories_have_rules_that_cover_a_new_one() {
    let names = ["books", "tools", "toys", "garden"];
    let report = Shop::start(shop(categories(&names[..3]))).examine(&[]);
    assert_eq!(kinds(&report), ["/", "/categories/*"], "{report:#}");
    assert_eq!(report["vars"]["PATHS_SHARED"], "+ /, /categories/*");
    assert_eq!(report["vars"]["COOKIES_DROPPED"], "+ sid@/, sid@/categories/*");
    assert_eq!(report["vars"].get("ITEM_ROUTES"), None, "a category is no item");
    assert!(report["notes"].to_string().contains("3 pages of /categories/* have the same template"), "{report:#}");
    let options = options(&report);
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    let later = Shop::start(shop(categories(&names))).examine(&options);
    let of_kind = kind(&later, "/categories/*");
    assert_eq!((&of_kind["pages"], hits(of_kind, "with-analytics")), (&4.into(), 4), "{later:#}");
}

#[test]
fn pages_of_lists_are_joined_with_their_lists() {
    let names = ["books", "tools", "toys"];
    let pages = names.map(|name| format!("<a href='/categories/{name}?page=2'>2</a>")).concat();
    let report = Shop::start(shop(format!("{}{pages}", categories(&names)))).examine(&[]);
    assert_eq!(kinds(&report), ["/", "/categories/*", "/categories/*?page"], "{report:#}");
    assert_eq!(report["vars"]["PATHS_SHARED"], "+ /, /categories/*");
}

#[test]
fn two_pages_and_pages_of_other_templates_stay_apart() {
    let report = Shop::start(shop(categories(&["books", "tools"]))).examine(&[]);
    assert_eq!(kinds(&report), ["/", "/categories/books", "/categories/tools"]);
    let links = ["returns", "delivery", "sizes"].map(|name| format!("<a href='/help/{name}'>{name}</a>")).concat();
    let report = Shop::start(move |asked: &Asked| match asked.path.as_str() {
        "/help/sizes" => Reply::html("<table class=sizes><tr><td>S</td></tr></table>"),
        path if path.starts_with("/help/") => Reply::html("<h1>Help</h1><p>Text</p>"),
        _ => Reply::html(links.clone()),
    })
    .examine(&[]);
    assert_eq!(kinds(&report), ["/", "/help/delivery", "/help/returns", "/help/sizes"]);
    assert_eq!(report["vars"]["PATHS_SHARED"], "+ /, /help/delivery, /help/returns, /help/sizes");
}

#[test]
fn logins_and_pages_with_a_form_of_one_visitor_stay_apart() {
    for (names, field) in [(["login", "register", "help"], "email"), (["enter", "join", "renew"], "password")] {
        let links = names.map(|name| format!("<a href='/you/{name}'>{name}</a>")).concat();
        let report = Shop::start(move |asked: &Asked| match asked.path.as_str() {
            "/" => Reply::html(links.clone()),
            _ => Reply::html(format!("<h1>You</h1><form method=post><input name={field}></form>")),
        })
        .examine(&[]);
        assert_eq!(kinds(&report).len(), 4, "{report:#}");
    }
}

#[test]
fn a_page_in_danger_keeps_its_siblings_apart() {
    let page = |asked: &Asked, own: &str| match asked.path.as_str() {
        "/" => Reply::html(categories(&["books", "tools", "toys"])),
        path => {
            let own = if path.ends_with("toys") { own } else { "Sign in" };
            Reply::html(format!("<p>{own}</p>")).with("cache-control", "public, s-maxage=60")
        }
    };
    let numbered = Shop::start(move |asked| page(asked, &format!("Visitor {}", asked.number))).examine(&[]);
    let greeting = move |asked: &Asked| page(asked, if asked.cookies == "login=ann" { "Hello Ann" } else { "Sign in" });
    let greeting = Shop::start(greeting).examine(&["--login", "login=ann"]);
    for report in [&numbered, &greeting] {
        assert_eq!(kinds(report), ["/", "/categories/books", "/categories/tools", "/categories/toys"]);
    }
    assert_eq!(numbered["vars"]["PATHS_PERSONAL"], "+ /categories/toys");
    assert_eq!(greeting["vars"]["COOKIES_PERSONAL"], "+ login");
}

#[test]
fn a_linked_page_that_was_not_examined_keeps_its_siblings_apart() {
    let names = ["books", "tools", "toys"];
    for link in ["<a rel=nofollow href='/categories/mine'>Mine</a>", "<form action='/categories/toys/vote'></form>"] {
        let report = Shop::start(shop(format!("{}{link}", categories(&names)))).examine(&[]);
        assert_eq!(kinds(&report).len(), 4, "{report:#}");
    }
}

#[test]
fn holes_of_joined_pages_cover_the_tokens_that_only_other_pages_have() {
    let names = ["books", "tools", "toys", "garden"];
    // Only the categories in `with_token` have the token that the home page has.
    let shop = |listed: usize, with_token: &'static [&'static str]| {
        Shop::start(move |asked: &Asked| {
            let form = format!("{TOKEN_FORM}t{}></form>", asked.number);
            let page = Reply::html(match asked.path.strip_prefix("/categories/") {
                Some(name) if with_token.contains(&name) => format!("{}{form}", category(name)),
                Some(name) => category(name),
                None => format!("{}{form}", categories(&names[..listed])),
            });
            page.with("set-cookie", &format!("sid=visitor-{}; Path=/", asked.number))
        })
    };
    for with_token in [&[][..], &["books", "tools", "toys"]] {
        let report = shop(3, with_token).examine(&[]);
        assert_eq!(kinds(&report), ["/", "/categories/*"], "{report:#}");
        assert_eq!(report["vars"]["HOLES"], "+ /,/categories/* input[name='_token'] <- token");
        let options = options(&report);
        let options: Vec<_> = options.iter().map(String::as_str).collect();
        let later = shop(4, &["garden"]).examine(&options);
        let new = kind(&later, "/categories/garden");
        assert_eq!((&later["dangers"], hits(new, "with-analytics")), (&serde_json::json!([]), 1), "{later:#}");
    }
    // A selector cannot have this name.
    let odd = Shop::start(move |asked: &Asked| {
        let page = Reply::html(match asked.path.strip_prefix("/categories/") {
            Some(name) => category(name),
            None => format!("{}<input type=hidden name='csrf token' value=1>", categories(&names[..3])),
        });
        page.with("set-cookie", &format!("sid=visitor-{}; Path=/", asked.number))
    });
    assert_eq!(kinds(&odd.examine(&[])).len(), 4);
}

/// A rule for the products drops the session of the login, too, if no other rule keeps the login personal first.
#[test]
fn a_login_beside_the_products_does_not_prevent_their_rules() {
    let report = Shop::start(|asked: &Asked| {
        let token = format!("b1946ac92492d2347c6235b4d26111{:08}", asked.number);
        let links = (0..8).map(|number| format!("<a href='/shop/item-{number}'>Item</a>")).collect::<Vec<_>>().concat();
        let form =
            format!("<form method=post><input type=hidden name=_token value={token}><input type=password></form>");
        let body = if asked.path == "/shop/login" { form } else { "<button>Add</button>".to_owned() };
        let page = format!("<meta name=csrf-token content={token}>{links}<a href=/shop/login>Sign in</a>{body}");
        Reply::html(page).with("set-cookie", &format!("sid=of-{}; Path=/", asked.number))
    })
    .examine(&[]);
    let holes = report["vars"]["HOLES"].as_str().unwrap_or_default();
    assert!(holes.contains("/shop/* meta[name='csrf-token'] <- token"), "{report:#}");
    assert!(report["vars"]["PATHS_PERSONAL"].as_str().unwrap_or_default().contains("/shop/login"), "{report:#}");
}
