//! Browser tests: the demo shop in workerd with a real D1, and headless Chromium driven by Playwright. Each scenario is
//! a file of the same name in this folder; `support.mjs` and `shop.mjs` contain what they share. Without Chromium,
//! `cargo xtask test` skips this module.

use std::{env, process::Stdio, time::Duration};

use tokio::{process::Command, sync::Mutex, time};

use crate::support::{SERVICE_KEY, Shop};

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
    every_page_is_accessible,
    signing_in_keeps_the_cart,
    the_dashboard_shows_activity,
    the_shop_works_without_javascript,
);

async fn run(scenario: &str) {
    let chromium =
        env::var_os("EDGEFRONT_CHROMIUM").expect("EDGEFRONT_CHROMIUM: run `cargo xtask test`, which finds it");
    let _alone = ONE_BROWSER.lock().await;
    let variables =
        [("ORIGIN_URL", ""), ("ROWS_TABLE", "inventory"), ("REDIS_TIMEOUT_MS", "10000"), ("TRAFFIC_INTERVAL", "1")];
    let shop = Shop::workerd(&variables).await;
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
