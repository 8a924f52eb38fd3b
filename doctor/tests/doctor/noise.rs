//! Content that changes at each request of one visitor, and content that only seems to.

use serde_json::{Value, json};

use super::support::{Asked, Reply, Shop, book_links, kind};

/// A shop whose pages have the time in a script and the id of the request in an attribute, as many applications do.
#[test]
fn invisible_values_of_a_request_do_not_prevent_sharing() {
    let shop = Shop::start(|asked: &Asked| {
        let time = 1_795_000_000 + asked.number;
        let forms = "<form method=post><button>Review</button></form><form method=POST action='/basket/add/1/'></form>";
        let form = if asked.path == "/" { "" } else { forms };
        Reply::html(format!(
            "<body data-now='{time}'>{}<a href='/login'>Sign in</a>{form}<script>var id = 'r{time}';</script>",
            book_links(8)
        ))
    });
    let report = shop.examine(&[]);
    let books = kind(&report, "/books/*/");
    assert_eq!((&books["remedy"], &books["renders_differ"]), (&json!("tried, and safe:"), &json!(0)), "{books:#}");
    let note = report["notes"].to_string();
    assert!(note.contains("an invisible value that changes at each request") && note.contains("17950000"), "{note}");
    assert_eq!(report["vars"]["ITEM_ROUTES"], "/books/{item}/");
    assert_eq!(report["vars"]["WRITES_PERSONAL"], "+ /books/*/, /basket/*");
    assert_eq!(report["vars"].get("LOGIN_ROUTES"), None, "the default has /login");
}

#[test]
fn a_value_of_the_session_is_no_noise_although_nobody_sees_it() {
    let shop = Shop::start(|asked: &Asked| {
        let own = asked.cookies.split("sid=").nth(1).map_or_else(|| asked.number.to_string(), str::to_owned);
        let page = Reply::html(format!("{}<script>var visitor = '{own}';</script>", book_links(8)));
        page.with("set-cookie", &format!("sid={own}; Path=/"))
    });
    let books = kind(&shop.examine(&[]), "/books/*/").clone();
    assert_eq!(books["rules"], json!([]), "{books:#}");
}

/// The rules for the pages of books.
fn rules_of(page: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Value {
    kind(&Shop::start(page).examine(&[]), "/books/*/")["rules"].clone()
}

#[test]
fn the_id_of_a_new_cart_is_no_noise() {
    let page = |name: &'static str| {
        move |asked: &Asked| {
            let data =
                format!("<script>window.__S={{\"now\":{0},\"{name}\":\"5b{0}\",\"lines\":[]}}</script>", asked.number);
            Reply::html(format!("{}{data}", book_links(8)))
        }
    };
    assert_eq!(rules_of(page("cartId")), json!([]));
    let rules = rules_of(page("requestId"));
    assert!(rules.to_string().contains("the same page in every country"), "{rules}");
}

#[test]
fn nonces_are_named_with_their_remedy() {
    let page = |asked: &Asked| {
        let script = format!("<script nonce='n{}'>buy()</script>", asked.number);
        Reply::html(format!("{}{script}<a href='/about'>About</a>", book_links(8)))
    };
    let report = Shop::start(page).examine(&[]);
    for name in ["/books/*/", "/about", "/"] {
        let remedy = kind(&report, name)["remedy"].as_str().unwrap();
        assert!(remedy.contains("by hashes or 'self' instead of nonces"), "{name}: {remedy}");
    }
    assert_eq!(report["vars"].get("PATHS_PERSONAL"), None);
    let report = Shop::start(page).examine(&["--var", "ITEM_ROUTES=/books/{item}/"]);
    let remedy = report["dangers"][0]["remedy"].as_str().unwrap();
    assert!(remedy.contains("by hashes or 'self' instead of nonces"), "{remedy}");
    assert_eq!(report["vars"].get("PATHS_PERSONAL"), None);
}

#[test]
fn a_session_whose_cookie_is_not_sent_says_nothing_about_noise() {
    // The doctor sends `theme` only, so each of its requests starts another session. A `Secure` cookie over http is not sent, either.
    let page = |asked: &Asked| {
        let own = asked.cookies.split("sid=").nth(1).map_or_else(|| asked.number.to_string(), str::to_owned);
        let page = Reply::html(format!("{}<script>var visitor = '{own}';</script>", book_links(8)));
        let page = page.with("set-cookie", &format!("sid={own}; Path=/account"));
        if asked.path == "/" { page.with("set-cookie", "theme=dark; Path=/") } else { page }
    };
    assert_eq!(rules_of(page), json!([]));
}

#[test]
fn a_value_that_changes_hides_no_other_one_of_the_same_tag() {
    for group in [" data-user-group='", " data-page='{\"now\":1,\"auth\":"] {
        let shop = Shop::start(move |asked: &Asked| {
            let user = if asked.cookies.contains("sid=ann") { "gold" } else { "guest" };
            let body = format!("<body data-request-id='9f{}'{group}{user}'>", asked.number);
            Reply::html(format!("{body}{}", book_links(8)))
        });
        let report = shop.examine(&["--login", "sid=ann", "--var", "COOKIES_IGNORED=+ sid"]);
        let books = kind(&report, "/books/*/");
        let signed_in = books["visitors"].as_array().unwrap().iter().find(|visitor| visitor["visitor"] == "signed-in");
        assert_eq!(signed_in.unwrap()["own_page_differs"], json!(8), "{books:#}");
    }
}

#[test]
fn tokens_side_by_side_and_images_of_a_captcha_are_no_noise() {
    let hash = |asked: &Asked| format!("b1946ac92492d2347c6235b4d2611184{}", asked.number);
    let tokens = move |asked: &Asked| {
        let field = |name: &str| format!("<input type=hidden name={name} value={}>", hash(asked));
        let form = format!("<form method=post>{}{}</form>", field("a"), field("b"));
        let page = Reply::html(format!("{}{form}", book_links(8)));
        page.with("set-cookie", &format!("sid=of-{}; Path=/", asked.number))
    };
    let report = Shop::start(tokens).examine(&[]);
    let holes = report["vars"]["HOLES"].as_str().unwrap_or_default();
    assert!(holes.contains("input[name='a'] <- token") && holes.contains("input[name='b'] <- token"), "{report:#}");
    let captcha = move |form: &'static str| {
        move |asked: &Asked| Reply::html(format!("{}{form}<img src='/captcha/{}'></form>", book_links(8), hash(asked)))
    };
    assert_eq!(rules_of(captcha("<form method=post>")), json!([]));
    assert_ne!(rules_of(captcha("<form>")), json!([]));
}

/// As django-contrib-comments signs the time of a form.
#[test]
fn a_field_that_a_token_signs_is_in_a_hole_too() {
    let report = Shop::start(|asked: &Asked| {
        let field = |name: &str, value: String| format!("<div><input type=hidden name={name} value={value}></div>");
        let time = field("timestamp", (1_795_000_000 + asked.number).to_string());
        let hash = field("security_hash", format!("b1946ac92492d2347c6235b4d2611184{}", asked.number));
        Reply::html(format!("{}<form method=post>{time}{hash}<p>Comment</p></form>", book_links(8)))
    })
    .examine(&[]);
    let holes = report["vars"]["HOLES"].as_str().unwrap_or_default();
    assert!(holes.contains("input[name='timestamp'] <- token"), "{report:#}");
    assert!(holes.contains("input[name='security_hash'] <- token"), "{report:#}");
}

/// As `WooCommerce` shows related products, in random order.
#[test]
fn random_products_are_a_warning_and_cost_no_hits() {
    let page = |asked: &Asked| {
        let names = ["Red cup", "Blue jug", "Green vase", "White bowl", "Black pot", "Grey dish", "Pink tray"];
        let product = |at: usize| format!("<li><a href='/books/{at}/'><b>{}</b></a></li>", names[at % names.len()]);
        let related: String = [1, 3].iter().map(|step| product(asked.number * step)).collect();
        let account = if asked.cookies.contains("sid=ann") { "Ann" } else { "Sign in" };
        let related = if asked.path == "/" { String::new() } else { related };
        Reply::html(format!("{}<i>{account}</i><p>Related</p><ul>{related}</ul><p>End</p>", book_links(7)))
    };
    let options = ["--var", "ITEM_ROUTES=/books/{item}/", "--login", "sid=ann"];
    let report = Shop::start(page).examine(&options);
    let books = kind(&report, "/books/{item}/");
    assert_eq!((report["vars"].get("PATHS_PERSONAL"), &report["dangers"]), (None, &json!([])), "{report:#}");
    assert_eq!(books["hit_ratio_with_rules"], json!(1.0), "{books:#}");
    let warning = books["warning"].as_str().unwrap();
    assert!(warning.contains("changes at each request, also for one visitor"), "{warning}");
}
