//! Browser tests: the demo shop in workerd with a real D1, and headless Chromium driven by Playwright. Each scenario is
//! a file of the same name in this folder; `support.mjs` and `shop.mjs` contain the common code. Without Chromium,
//! `cargo xtask test` skips this module.

use std::{
    env,
    process::Stdio,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio::{process::Command, sync::Mutex, time};

use crate::{
    page_cache::make_popular,
    support::{Asked, Reply, SERVICE_KEY, Shop},
};

/// Only one browser runs at a time: two would slow each other down on a small machine.
static ONE_BROWSER: Mutex<()> = Mutex::const_new(());
/// A scenario takes 5 to 90 s on 2 cores beside the other tests, and several times as long on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(10);

macro_rules! scenarios {
    ($($name:ident),+ $(,)?) => {$(
        #[tokio::test]
        async fn $name() {
            run(stringify!($name)).await;
        }
    )+};
}

scenarios!(
    a_flash_sale_sells_out,
    a_guest_places_an_order,
    a_piece_of_a_flash_sale_is_reserved_and_bought,
    a_user_signs_out_on_all_devices,
    an_account_keeps_addresses_and_resets_its_password,
    an_operator_works_with_the_dashboard,
    clumsy_visitors_lose_nothing,
    every_page_is_accessible,
    signing_in_keeps_the_cart,
    the_cart_changes_in_place,
    the_dashboard_shows_activity,
    the_own_fonts_are_shown_on_the_first_visit,
    the_shop_is_searched,
    the_shop_works_without_javascript,
);

/// In front of an origin that answers a visitor with a session after two seconds.
#[tokio::test]
async fn a_late_hole_is_filled_and_its_form_waits() {
    let variables = [
        ("HOLES", "/products/* #mini <- .; /products/* mini-cart <- .; /products/* [name=token] <- ."),
        ("COOKIES_HOLES", "sid"),
        ("HOLES_WAIT_MS", "200"),
    ];
    let _alone = ONE_BROWSER.lock().await;
    let shop = Shop::workerd(&variables).await;
    make_popular(&shop, "mug").await;
    shop.origin.answer_with(|asked| {
        if asked.path == "/login" {
            let redirect = Reply::status(303).header("location", "/products/mug");
            return redirect.header("set-cookie", "sid=ada; Path=/");
        }
        let is_ada = asked.header("cookie").contains("sid=ada");
        let (name, delay) = if is_ada { ("ada", Duration::from_secs(2)) } else { ("guest", Duration::ZERO) };
        let form = format!("<form action=/buy><input name=token value={name}><button>Buy</button></form>");
        let cart = format!("<mini-cart><template shadowrootmode=open><b>{name}</b></template></mini-cart>");
        Reply::html(format!("<!doctype html><title>Mug</title><p id=mini>{name}</p>{cart}{form}")).after(delay)
    });
    run_in(&shop, "a_late_hole_is_filled_and_its_form_waits").await;
}

/// The rules for an origin that starts a session for each visitor.
const fn with_sessions(holes: &str) -> [(&str, &str); 4] {
    [
        ("PATHS_SHARED", "/products/*"),
        ("HOLES", holes),
        ("COOKIES_HOLES", "sid"),
        ("COOKIES_DROPPED", "sid@/products/*"),
    ]
}

/// Starts the sessions of such an origin.
#[derive(Default)]
struct Sessions(AtomicUsize);

/// A visitor's session.
struct Session {
    id: String,
    is_new: bool,
}

impl Sessions {
    fn of(&self, asked: &Asked) -> Session {
        let own = session_id(asked);
        let is_new = own.is_none();
        Session { id: own.unwrap_or_else(|| format!("s{}", self.0.fetch_add(1, Ordering::SeqCst))), is_new }
    }
}

impl Session {
    /// The reply to the visitor. Sets the cookie of a new session.
    fn reply(&self, reply: Reply) -> Reply {
        let reply = reply.header("cache-control", "no-cache, private");
        if !self.is_new {
            return reply;
        }
        reply.header("set-cookie", format!("sid={}; Path=/; HttpOnly", self.id))
    }
}

fn session_id(asked: &Asked) -> Option<String> {
    asked.header("cookie").split("sid=").nth(1).map(str::to_owned)
}

/// In front of an origin that starts a session for each visitor, as most frameworks do, and checks its token.
#[tokio::test]
async fn a_form_gets_the_token_of_a_new_session() {
    let variables = with_sessions("/products/* [name=token] <- token");
    let _alone = ONE_BROWSER.lock().await;
    let shop = Shop::workerd(&variables).await;
    let sessions = Sessions::default();
    shop.origin.answer_with(move |asked| {
        if let Some(form) = asked.path.strip_prefix("/buy?") {
            let rest = session_id(asked).and_then(|own| form.strip_prefix(&format!("token=of-{own}&")));
            let bought = |rest: &str| Reply::status(303).header("location", format!("/bought?{rest}"));
            return rest.map_or_else(|| Reply::status(419), bought);
        }
        if !asked.path.starts_with("/products/") {
            return Reply::html("<!doctype html><title>Shop</title>");
        }
        let session = sessions.of(asked);
        let sid = &session.id;
        // The script of the second button and of the link reads the token when they are pressed.
        let page = format!(
            "<!doctype html><title>Mug</title><form action=/buy><input type=hidden name=token value=of-{sid}>\
             <input id=quantity name=quantity value=1><button id=form>Buy</button>\
             <button id=script type=button>Buy</button><a id=link href=#>Buy</a></form><script>\
             for (const id of ['#script', '#link']) document.querySelector(id).addEventListener('click', (event) => {{\
             event.preventDefault(); location = '/buy?' + new URLSearchParams(new FormData(document.forms[0])); }})</script>"
        );
        session.reply(Reply::html(page))
    });
    run_in(&shop, "a_form_gets_the_token_of_a_new_session").await;
}

/// In front of such an origin, whose page sends a request when it is loaded. It starts a session of its own if the visitor has none.
#[tokio::test]
async fn a_form_survives_a_session_that_starts_meanwhile() {
    let variables = with_sessions("/products/* [name=token] <- token");
    let _alone = ONE_BROWSER.lock().await;
    let shop = Shop::workerd(&variables).await;
    let sessions = Sessions::default();
    shop.origin.answer_with(move |asked| {
        if let Some(token) = asked.path.strip_prefix("/buy?") {
            let is_own = session_id(asked).is_some_and(|own| token == format!("token=of-{own}"));
            return if is_own { Reply::status(303).header("location", "/bought") } else { Reply::status(419) };
        }
        let session = sessions.of(asked);
        let sid = &session.id;
        let reply = match asked.path.as_str() {
            "/seen" => Reply::html("seen").after(Duration::from_secs(1)),
            "/products/mug" => Reply::html(format!(
                "<!doctype html><title>Mug</title><form action=/buy><input type=hidden name=token value=of-{sid}>\
                 <button>Buy</button></form><script>fetch('/seen')</script>"
            )),
            _ => return Reply::html("<!doctype html><title>Shop</title>"),
        };
        session.reply(reply)
    });
    run_in(&shop, "a_form_survives_a_session_that_starts_meanwhile").await;
}

/// In front of such an origin. No form waits for the script of the holes.
#[tokio::test]
async fn a_form_without_the_script_gets_its_token() {
    let variables = with_sessions("/products/* [name=token] <- token");
    let _alone = ONE_BROWSER.lock().await;
    let shop = Shop::workerd(&variables).await;
    let sessions = Sessions::default();
    shop.origin.answer_with(move |asked| {
        if asked.path == "/buy" {
            return Reply::status(303).header("location", "/bought");
        }
        if !asked.path.starts_with("/products/") {
            return Reply::html("<!doctype html><title>Shop</title>");
        }
        let session = sessions.of(asked);
        let sid = &session.id;
        // Only a press on a button waits.
        let page = format!(
            "<!doctype html><title>Mug</title><form action=/buy method=post><input type=hidden name=token value='of/{sid}&#x3D;&#x3D;'>\
             <button id=form>Buy</button></form><p id=submit>Buy<p id=fetch>Buy<script>\
             const token = document.querySelector('[name=token]').value, on = (id, buy) => document.querySelector(id).onclick = buy;\
             on('#submit', () => document.forms[0].submit());\
             on('#fetch', async () => {{\
             const answer = await fetch('/buy', {{ method: 'POST', headers: {{ 'x-token': token }} }});\
             if (answer.ok) location = '/bought'; }})</script>"
        );
        session.reply(Reply::html(page))
    });
    run_in(&shop, "a_form_without_the_script_gets_its_token").await;
    let bought: Vec<_> = shop.origin.asked().into_iter().filter(|asked| asked.path == "/buy").collect();
    assert_eq!(bought.len(), 6);
    for asked in bought {
        let sid = session_id(&asked).expect("a session");
        let is_own =
            asked.body == format!("token=of%2F{sid}%3D%3D") || asked.header("x-token") == format!("of/{sid}==");
        assert!(is_own, "{sid}: {:?} {:?}", asked.body, asked.headers);
    }
}

/// In front of a shop whose script replaces the page at a click on a link, as Turbo does. Each form has a token of its own, and the
/// name of a visitor with a session comes with a cookie, so the browser requests it.
#[tokio::test]
async fn a_page_without_a_load_gets_its_holes() {
    let variables = with_sessions("/products/* [name=token] <- token; /products/* #name <- .");
    let _alone = ONE_BROWSER.lock().await;
    let shop = Shop::workerd(&variables).await;
    let sessions = Sessions::default();
    shop.origin.answer_with(move |asked| {
        // Browsers request the icon at a time of their own. It must not start the session.
        if asked.path == "/favicon.ico" {
            return Reply::status(204);
        }
        let session = sessions.of(asked);
        let sid = &session.id;
        if let Some(rest) = asked.path.strip_prefix("/buy?") {
            let page = asked.header("referer").rsplit_once("/products/").map_or("", |(_, page)| page);
            return Reply::status(if rest == format!("token={sid}-{page}") { 200 } else { 422 });
        }
        let name = if session.is_new { "guest" } else { "visitor" };
        let (path, token) = (&asked.path, format!("{sid}-{}", asked.path.replace("/products/", "")));
        let links = ["mug", "cup", "jug"].map(|item| format!("<a href=/products/{item}>{item}</a> ")).concat();
        let page = format!(
            "<!doctype html><html><head><meta name=token content={token}></head><body><h1>{path}</h1>{links}<p id=name>{name}</p>\
             <form><input type=hidden name=token value={token}><button id=form>Buy</button></form>\
             <button id=script>Buy</button><output></output>{TURBO}</body></html>"
        );
        session.reply(Reply::html(page))
    });
    run_in(&shop, "a_page_without_a_load_gets_its_holes").await;
}

/// A script that replaces pages, and sends the form and the token of the head by `fetch`.
const TURBO: &str = r"<script>
if (!window.hasTurbo) {
    window.hasTurbo = true;
    const buy = async (button, token) => {
        const answer = await fetch('/buy?token=' + token);
        document.querySelector('output').textContent = `${location.pathname} #${button} ${answer.status}`;
    };
    const activate = (script) => {
        const active = document.createElement('script');
        for (const { name, value } of script.attributes) active.setAttribute(name, value);
        active.textContent = script.textContent;
        return active;
    };
    const visit = async (path) => {
        const answer = await fetch(path, { headers: { accept: 'text/html, application/xhtml+xml' } });
        const next = new DOMParser().parseFromString(await answer.text(), 'text/html');
        history.pushState({}, '', path);
        const known = [...document.head.querySelectorAll('script')].map((script) => script.outerHTML);
        for (const script of next.head.querySelectorAll('script')) {
            if (!known.includes(script.outerHTML)) document.head.append(activate(script));
        }
        for (const meta of document.head.querySelectorAll('meta')) meta.remove();
        document.head.append(...next.head.querySelectorAll('meta'));
        document.body.replaceWith(next.body);
        for (const script of document.body.querySelectorAll('script')) script.replaceWith(activate(script));
    };
    document.addEventListener('submit', (event) => {
        event.preventDefault();
        buy('form', event.target.elements.token.value);
    });
    document.addEventListener('click', ({ target }) => {
        if (target.id === 'script') buy('script', document.querySelector('meta[name=token]').content);
    });
    document.addEventListener('click', (event) => {
        if (!event.target.closest('a')) return;
        event.preventDefault();
        visit(event.target.getAttribute('href'));
    });
}
</script>";

async fn run(scenario: &str) {
    let _alone = ONE_BROWSER.lock().await;
    let variables = [
        ("ORIGIN_URL", ""),
        ("ROWS_TABLE", "inventory"),
        ("DEMO_MAIL", "log"),
        ("DEMO_URL", "https://shop.example"),
        ("REDIS_TIMEOUT_MS", "10000"),
        ("TRAFFIC_INTERVAL", "1"),
    ];
    run_in(&Shop::workerd(&variables).await, scenario).await;
}

/// Runs a scenario in front of `shop`. The caller holds [`ONE_BROWSER`].
async fn run_in(shop: &Shop, scenario: &str) {
    let chromium =
        env::var_os("EDGEFRONT_CHROMIUM").expect("EDGEFRONT_CHROMIUM: run `cargo xtask test`, which finds it");
    let node = env::var_os("EDGEFRONT_NODE").unwrap_or_else(|| "node".into());
    let script = format!("tests/storefront/system/browser/{scenario}.mjs");
    let mut node = Command::new(node);
    node.arg(script).env("CHROMIUM", chromium).env("SERVICE_KEY", SERVICE_KEY).kill_on_drop(true);
    // The name, not the IP address: a browser accepts `Secure` cookies over plain HTTP from `localhost`.
    node.env("SHOP", shop.url.replace("127.0.0.1", "localhost"));
    let output = node.stdin(Stdio::null()).output();
    let output = time::timeout(TIMEOUT, output).await.expect("the scenario ends in time").expect("node starts");
    let printed = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success(), "{scenario}:\n{printed}\nthe Worker's log:\n{}", shop.logs().join("\n"));
    print!("{printed}");
}
