//! What a person sees, in a real browser: the demo shop in workerd with a real D1, and headless Chromium driven by Playwright. Each
//! scenario is a file of its name in this folder; `support.mjs` has what they share. `cargo xtask test` leaves this module out where
//! there is no Chromium.

use std::{env, path::Path, process::Stdio, time::Duration};

use tokio::{process::Command, sync::Mutex, time};

use crate::support::{SERVICE_KEY, Shop};

/// One browser at a time: two of them take each other's time on a small machine.
static BROWSER: Mutex<()> = Mutex::const_new(());
/// A scenario takes 5 to 90 s on 2 cores beside the other tests, and several times that where something else takes them.
const PATIENCE: Duration = Duration::from_mins(10);

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
    a_guest_buys_something,
    a_piece_of_a_flash_sale_is_reserved_and_bought,
    every_page_is_accessible,
    nothing_needs_javascript,
    signing_in_keeps_the_cart,
    somebody_logs_out_everywhere,
    the_dashboard_shows_what_happens,
);

async fn run(scenario: &str) {
    let chromium =
        env::var_os("EDGEFRONT_CHROMIUM").expect("EDGEFRONT_CHROMIUM: run `cargo xtask test`, which finds it");
    let _alone = BROWSER.lock().await;
    let variables =
        [("ORIGIN_URL", ""), ("ROWS_TABLE", "inventory"), ("REDIS_TIMEOUT_MS", "10000"), ("TRAFFIC_INTERVAL", "1")];
    let shop = Shop::workerd(&variables).await;
    let node = env::var_os("EDGEFRONT_NODE").unwrap_or_else(|| "node".into());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/storefront/system/browser/{scenario}.mjs"));
    let mut node = Command::new(node);
    node.arg(script).env("CHROMIUM", chromium).env("SERVICE_KEY", SERVICE_KEY).kill_on_drop(true);
    // By its name and not its number: a browser takes `Secure` cookies over plain HTTP from there.
    node.env("SHOP", shop.url.replace("127.0.0.1", "localhost"));
    let ended = node.stdin(Stdio::null()).output();
    let ended = time::timeout(PATIENCE, ended).await.expect("the scenario ends in time").expect("node starts");
    let said = [ended.stdout, ended.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
    assert!(ended.status.success(), "{scenario}:\n{said}\nthe Worker's log:\n{}", shop.logs().join("\n"));
    print!("{said}");
}
