//! Shops whose pages differ for a visitor in a few elements.

use super::support::{Asked, Reply, Shop, book_links, hits, kind};

const ANN: [&str; 2] = ["--login", "sid=ann"];

/// A shop with an account link and a mini cart on each page. It says nothing about caching. `more`: for Ann only.
fn shop(asked: &Asked, more: &str) -> Reply {
    let is_ann = asked.cookies.contains("sid=ann");
    let (account, cart) = if is_ann { ("<b>Ann</b> <a href='/account'>Account</a>", "2") } else { ("Sign in", "0") };
    let more = if is_ann { more } else { "" };
    let text = "<p>One of many books, with a long description.</p>".repeat(8);
    let head = format!("<header><div id='user'>{account}</div><a class='cart' href='/cart'>{cart}</a></header>");
    Reply::html(format!("{head}{}{text}{more}", book_links(8)))
}

#[test]
fn the_personal_elements_of_a_page_become_holes() {
    let shop = Shop::start(|asked| shop(asked, ""));
    let report = shop.examine(&ANN);
    let books = kind(&report, "/books/*/");
    assert_eq!(books["remedy"], "tried, and safe:", "{books:#}");
    let holes = "+ /,/books/*/ #user <- .; /,/books/*/ a.cart <- .";
    assert_eq!(report["vars"]["HOLES"], holes, "{report:#}");
    assert_eq!(report["vars"]["COOKIES_HOLES"], "+ sid");
    // With the proposed variables, Ann gets the stored page.
    let vars = report["vars"].as_object().unwrap().iter();
    let vars: Vec<_> = vars.map(|(name, value)| format!("{name}={}", value.as_str().unwrap())).collect();
    let options: Vec<_> = vars.iter().flat_map(|var| ["--var", var]).chain(ANN).collect();
    let again = shop.examine(&options);
    assert_eq!(hits(kind(&again, "/books/{item}/"), "signed-in"), 8, "{again:#}");
    assert_eq!((&again["vars"], &again["dangers"]), (&report["vars"], &serde_json::json!([])));
}

#[test]
fn a_difference_that_no_element_covers_has_no_holes() {
    let report = Shop::start(|asked| shop(asked, "<p>Your price: 5</p>")).examine(&ANN);
    assert_eq!(report["vars"].get("HOLES"), None, "{report:#}");
    assert_eq!(report["vars"].get("COOKIES_HOLES"), None);
    assert_eq!(report["vars"]["ITEM_ROUTES"], "/books/{item}/", "visitors without cookies are not affected");
    let warning = kind(&report, "/books/*/")["warning"].as_str().unwrap();
    assert!(warning.contains("Your price: 5") && warning.contains("sid get pages of their own"), "{warning}");
}

#[test]
fn data_of_the_account_behind_an_id_of_the_request_have_no_holes() {
    let report = Shop::start(|asked: &Asked| {
        let name = if asked.cookies.contains("sid=ann") { "Ann" } else { "Guest" };
        let data = format!("{{\"request\":\"r{:08}\",\"currency\":\"EUR\",\"user\":\"{name}\"}}", asked.number * 7919);
        let text = "<p>One of many books, with a long description.</p>".repeat(8);
        let page = format!("<header><b id='user'>{name}</b></header>{}{text}", book_links(8));
        Reply::html(format!("{page}<script>window.data = {data}</script>"))
    })
    .examine(&ANN);
    assert_eq!(report["vars"].get("COOKIES_HOLES"), None, "Ann's page would have no user: {report:#}");
    let books = kind(&report, "/books/*/");
    assert_eq!(books["hit_ratio_with_rules"], 1.0, "the id alone is no visitor's: {books:#}");
    let excerpts = books["visitors"].to_string();
    assert!(excerpts.contains("Ann"), "{excerpts}");
}

#[test]
fn a_cookie_that_the_user_calls_personal_stays_personal() {
    let report = Shop::start(|asked| shop(asked, "")).examine(&[&ANN[..], &["--var", "COOKIES_PERSONAL=sid"]].concat());
    assert_eq!((report["vars"].get("HOLES"), &report["vars"]["COOKIES_PERSONAL"]), (None, &"sid".into()));
}

#[test]
fn the_cookie_of_holes_is_not_personal_although_the_shop_sets_it_on_each_page() {
    let set = |asked: &Asked| {
        let page = shop(asked, "");
        if asked.cookies.contains("sid") { page } else { page.with("set-cookie", "sid=new; Path=/") }
    };
    let report = Shop::start(set).examine(&ANN);
    assert_eq!(report["vars"].get("COOKIES_PERSONAL"), None, "{report:#}");
    assert_eq!(report["vars"]["COOKIES_HOLES"], "+ sid");
    assert_eq!(report["vars"]["COOKIES_DROPPED"], "+ sid@/, sid@/books/*/");
}

#[test]
fn a_cookie_of_holes_that_each_page_renews_is_dropped() {
    let renew = |asked: &Asked| {
        let page = shop(asked, "");
        let renewed = format!("sid=ann{}; Path=/", asked.number);
        if asked.cookies.contains("sid=ann") { page.with("set-cookie", &renewed) } else { page }
    };
    let report = Shop::start(renew).examine(&ANN);
    assert_eq!(report["vars"]["COOKIES_HOLES"], "+ sid", "{report:#}");
    assert_eq!(report["vars"]["COOKIES_DROPPED"], "+ sid@/, sid@/books/*/");
}

#[test]
fn one_pattern_covers_cookies_with_the_ids_of_sessions_as_names() {
    const ID: &str = "86b60841-6334-4c68-a951-5270fd6784c8";
    let adonis = |asked: &Asked| {
        let is_ann = asked.cookies.contains(&format!("{ID}=data"));
        let mut asked = asked.clone();
        asked.cookies = if is_ann { "sid=ann".to_owned() } else { String::new() };
        let page = shop(&asked, "");
        let id = if is_ann { ID.to_owned() } else { format!("{:08x}{}", asked.number, &ID[8..]) };
        page.with("set-cookie", &format!("session={id}; Path=/"))
            .with("set-cookie", &format!("{id}=data{}; Path=/", asked.number))
    };
    let login = format!("session={ID}; {ID}=data");
    let report = Shop::start(adonis).examine(&["--login", &login]);
    assert_eq!(report["vars"]["COOKIES_HOLES"], "+ session, *-*-*-*-*", "{report:#}");
    let dropped = "+ session@/, *-*-*-*-*@/, session@/books/*/, *-*-*-*-*@/books/*/";
    assert_eq!(report["vars"]["COOKIES_DROPPED"], dropped);
}

#[test]
fn a_cookie_that_only_adds_a_list_may_be_ignored() {
    let report = Shop::start(|asked: &Asked| {
        let seen = if asked.cookies.contains("history=") { "<p>You viewed: Mug</p>" } else { "" };
        let page = Reply::html(format!("{}{seen}", book_links(8)));
        if asked.path == "/" { page } else { page.with("set-cookie", "history=1; Path=/") }
    })
    .examine(&[]);
    assert_eq!(report["vars"]["COOKIES_PERSONAL"], "+ history");
    let notes = report["notes"].to_string();
    assert!(notes.contains("see on /books/*/: `You viewed: Mug`") && notes.contains("COOKIES_IGNORED"), "{notes}");
}

/// As Laravel answers: a session for each visitor, whose token is in each form and in the head.
fn laravel(asked: &Asked, more: &str) -> Reply {
    let own = asked.cookies.split("laravel_session=").nth(1).and_then(|rest| rest.split(';').next());
    let session = own.map_or_else(|| format!("visitor{}", asked.number), str::to_owned);
    let form = format!("<form><input type='hidden' name='_token' value='of-{session}'><button>Buy</button></form>");
    let page = Reply::html(format!("<meta name='csrf-token' content='of-{session}'>{}{more}{form}", book_links(8)));
    let page = page.with("cache-control", "no-cache, private");
    page.with("set-cookie", &format!("laravel_session={session}; Path=/; HttpOnly"))
}

#[test]
fn tokens_of_the_session_become_holes() {
    let report = Shop::start(|asked| laravel(asked, "")).examine(&[]);
    let books = kind(&report, "/books/*/");
    assert_eq!(books["remedy"], "tried, and safe:", "{books:#}");
    let holes = "+ /,/books/*/ meta[name='csrf-token'] <- token; /,/books/*/ input[name='_token'] <- token";
    assert_eq!(report["vars"]["HOLES"], holes, "{report:#}");
    assert_eq!(report["vars"]["COOKIES_PERSONAL"], "+ laravel_session", "only --login shows what else it changes");
    assert_eq!((report["vars"].get("COOKIES_HOLES"), &books["hit_ratio_with_rules"]), (None, &1.0.into()));
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("visitors get laravel_session with their first form") && notes.contains("--login"),
        "{notes}"
    );
}

#[test]
fn a_token_that_repeats_a_cookie_with_any_name_becomes_a_hole() {
    let report = Shop::start(|asked: &Asked| {
        let own = asked.cookies.split("guard=").nth(1).and_then(|rest| rest.split(';').next());
        let token = own.map_or_else(|| format!("guard-of-visitor-{}", asked.number), str::to_owned);
        let form = format!("<form><input type='hidden' name='guard' value='{token}'><button>Buy</button></form>");
        Reply::html(format!("{}{form}", book_links(8))).with("set-cookie", &format!("guard={token}; Path=/; HttpOnly"))
    })
    .examine(&[]);
    assert_eq!(report["vars"]["HOLES"], "+ /,/books/*/ input[name='guard'] <- token", "{report:#}");
    assert_eq!(report["vars"].get("CSRF_COOKIE"), None, "the cookie may be a session");
    assert_eq!(kind(&report, "/books/*/")["hit_ratio_with_rules"], 1.0);
}

#[test]
fn a_token_in_a_script_becomes_a_hole() {
    let report = Shop::start(|asked: &Asked| {
        let own = asked.cookies.split("laravel_session=").nth(1).and_then(|rest| rest.split(';').next());
        let session = own.map_or_else(|| format!("visitor{}", asked.number), str::to_owned);
        let script = format!("<script>var shop = {{ csrf_token: \"of-{session}\", debug: false }};</script>");
        let page = Reply::html(format!("{script}{}", book_links(8)));
        page.with("set-cookie", &format!("laravel_session={session}; Path=/; HttpOnly"))
    })
    .examine(&[]);
    assert_eq!(report["vars"]["HOLES"], "+ /,/books/*/ script:not([src]) <- token", "{report:#}");
    assert_eq!(kind(&report, "/books/*/")["hit_ratio_with_rules"], 1.0, "{report:#}");
}

/// As `OpenCart` 4 answers: the review has a token in its address.
#[test]
fn a_token_in_the_address_of_a_form_becomes_a_hole() {
    let report = |parameter: &'static str| {
        let shop = move |asked: &Asked| {
            let own = asked.cookies.split("sid=").nth(1).and_then(|rest| rest.split(';').next());
            let session = own.map_or_else(|| format!("visitor-{:08}", asked.number), str::to_owned);
            let name = if session == "ann-1234567890" { "Ann" } else { "Sign in" };
            let form = format!("<form method=post action='/write?id=1&amp;{parameter}=of-{session}'></form>");
            let text = "<p>One of many books, with a long description.</p>".repeat(8);
            let page = Reply::html(format!("<b id=user>{name}</b>{}{form}{text}", book_links(8)));
            if own.is_some() { page } else { page.with("set-cookie", &format!("sid={session}; Path=/")) }
        };
        Shop::start(shop).examine(&["--login", "sid=ann-1234567890"])
    };
    let tokens = report("review_token");
    let holes = "+ /,/books/*/ form[action*='review_token='] <- token; /,/books/*/ #user <- .";
    assert_eq!(tokens["vars"]["HOLES"], holes, "{tokens:#}");
    assert_eq!(tokens["vars"]["COOKIES_HOLES"], "+ sid");
    let ids = report("sid");
    assert_eq!((ids["vars"].get("HOLES"), &ids["hit_ratio_with_rules"]), (None, &0.0.into()), "{ids:#}");
}

#[test]
fn differences_without_an_element_have_a_remedy() {
    let report = Shop::start(|asked: &Asked| {
        let (class, id, name) = if asked.cookies.contains("sid=ann") { ("user", 7, "Ann") } else { ("", 0, "Guest") };
        let text = "<p>One of many books, with a long description.</p>".repeat(8);
        let script = format!("<script>user = {id}</script>");
        let page = Reply::html(format!("{script}<body class='{class}'>{}{text}<p>{name}</p>", book_links(8)));
        if asked.cookies.contains("sid=") { page } else { page.with("set-cookie", "sid=1; Path=/") }
    })
    .examine(&["--login", "sid=ann"]);
    let warning = kind(&report, "/books/*/")["warning"].as_str().unwrap_or_else(|| panic!("{report:#}"));
    for part in [
        "no holes cover",
        "same attributes of html and body",
        "same scripts",
        "element with an id",
        "sid get pages of their own",
    ] {
        assert!(warning.contains(part), "{warning}");
    }
}

/// A page of Sails, whose locals are in a script.
#[test]
fn a_name_beside_a_token_in_a_script_is_no_part_of_the_token() {
    let report = Shop::start(|asked: &Asked| {
        let own = asked.cookies.split("sid=").nth(1).and_then(|rest| rest.split(';').next());
        let session = own.map_or_else(|| format!("visitor{}", asked.number), str::to_owned);
        let user = if session == "ann" { "Ann" } else { "nobody" };
        let script =
            format!("<script>locals = {{ _csrf: unescape('of-{session}'), me: unescape('{user}') }};</script>");
        let page = Reply::html(format!("{script}{}", book_links(8)));
        page.with("set-cookie", &format!("sid={session}; Path=/; HttpOnly"))
    })
    .examine(&["--login", "sid=ann"]);
    assert_eq!(report["vars"]["HOLES"], "+ /,/books/*/ script:not([src]) <- token", "{report:#}");
    assert_eq!(report["vars"].get("COOKIES_HOLES"), None, "{report:#}");
    assert_eq!(report["vars"]["COOKIES_PERSONAL"], "+ sid");
}

#[test]
fn an_account_gets_tokens_and_personal_elements_with_the_stored_page() {
    let report = Shop::start(|asked: &Asked| {
        let name = if asked.cookies.contains("laravel_session=ann") { "Ann" } else { "Guest" };
        let text = "<p>One of many books, with a long description.</p>".repeat(20);
        laravel(asked, &format!("<header><b id='user'>{name}</b></header>{text}"))
    })
    .examine(&["--login", "laravel_session=ann"]);
    let holes = report["vars"]["HOLES"].as_str().unwrap_or_else(|| panic!("{report:#}"));
    assert!(holes.contains("/,/books/*/ #user <- .") && holes.contains("input[name='_token'] <- token"), "{report:#}");
    assert_eq!(report["vars"]["COOKIES_HOLES"], "+ laravel_session");
    assert_eq!(report["vars"].get("COOKIES_PERSONAL"), None);
    assert!(!report["notes"].to_string().contains("first form"), "{report:#}");
}

#[test]
fn a_shop_with_many_kinds_of_pages_is_examined_to_the_end() {
    let links: Vec<_> = ('a'..='g').map(|letter| format!("<a href='/{letter}-page/'>{letter}</a>")).collect();
    let report = Shop::start(move |asked: &Asked| {
        let page = Reply::html(format!("{}<p>{}</p>", links.concat(), asked.path));
        if asked.cookies.contains("one=") {
            return page;
        }
        ["one=1", "two=2", "three=3"].into_iter().fold(page, |page, cookie| page.with("set-cookie", cookie))
    })
    .examine(&[]);
    assert!(report["vars"]["COOKIES_DROPPED"].as_str().unwrap().matches('@').count() > 20, "{report:#}");
}

/// The cookies of `--login` are those of a visitor who filled a basket and did not sign in.
#[test]
fn a_login_that_still_sees_the_link_to_sign_in_is_doubted() {
    let shop = |asked: &Asked| {
        let account = if asked.cookies.contains("user=ann") { "Ann" } else { "<a href=/login>Sign in</a>" };
        let lines = u8::from(asked.cookies.contains("basket=1"));
        Reply::html(format!("<div id=account>{account}</div><div id=basket>{lines}</div>{}", book_links(8)))
    };
    let notes = |login| Shop::start(shop).examine(&["--login", login])["notes"].to_string();
    let guest = notes("basket=1");
    assert!(guest.contains("still links the visitor of --login to /login"), "{guest}");
    let account = notes("user=ann; basket=1");
    assert!(!account.contains("still links"), "{account}");
}
