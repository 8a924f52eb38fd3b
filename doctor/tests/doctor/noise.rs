//! Content that changes at each request of one visitor, and content that only seems to.

use serde_json::json;

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

/// As WooCommerce shows related products, in random order.
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
