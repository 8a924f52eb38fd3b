//! `/_edge/`: the operator's dashboard. Its data comes from the API; see `api` and `metrics`.

use edgefront_gateway::Fault;
use http::Method;

use crate::support::{SERVICE_KEY, Shop, scenarios};

scenarios!(&[];
    the_dashboard_works_in_front_of_any_origin_and_without_redis,
    the_dashboard_redirects_to_its_trailing_slash,
);

/// The paths of the style and the script in `page`.
fn assets(page: &str) -> Vec<String> {
    let links = page.split(" href=\"").chain(page.split(" src=\"")).skip(1).filter_map(|rest| rest.split('"').next());
    links.filter(|link| link.starts_with("/_edge/assets/")).map(str::to_owned).collect()
}

async fn the_dashboard_works_in_front_of_any_origin_and_without_redis(shop: &Shop) {
    shop.store.gateway.set_fault(Some(Fault::Refuse));
    let answer = shop.visit("/_edge/").await;
    assert_eq!(answer.status(), 200);
    let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("cache-control"), "no-store");
    assert_eq!(header("x-robots-tag"), "noindex");
    let policy = header("content-security-policy");
    for part in ["default-src 'self'", "frame-ancestors 'none'", "form-action 'none'"] {
        assert!(policy.contains(part) && !policy.contains("unsafe"), "{policy}");
    }
    let page = answer.text().await.unwrap();
    assert!(!page.contains(SERVICE_KEY) && !page.contains(" style=") && !page.contains("<script>"), "{page}");
    assert!(assets(&page).len() >= 3, "{page}");
    assert_eq!((shop.store.counts().requests, shop.origin.count()), (0, 0));
}

async fn the_dashboard_redirects_to_its_trailing_slash(shop: &Shop) {
    let answer = shop.visit("/_edge").await;
    assert_eq!((answer.status().as_u16(), &answer.headers()["location"]), (308, &"/_edge/".parse().unwrap()));
    let head = shop.request(Method::HEAD, "/_edge/").send().await.unwrap();
    assert!(head.status() == 200 && head.headers().contains_key("content-length"));
    let answer = shop.request(Method::POST, "/_edge/").send().await.unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["allow"]), (405, &"GET, HEAD".parse().unwrap()));
}

#[tokio::test]
async fn the_dashboards_style_and_script_are_immutable() {
    let shop = Shop::workerd(&[]).await;
    let page = shop.visit("/_edge/").await.text().await.unwrap();
    for address in assets(&page) {
        let file = shop.visit(&address).await;
        assert_eq!(file.status(), 200, "{address}");
        assert!(file.headers()["cache-control"].to_str().unwrap().contains("immutable"), "{address}");
        let text = file.text().await.unwrap();
        assert!(!text.is_empty() && !text.contains("https://") && !text.contains("@import"), "{address}");
    }
}

/// Reasons that no explanation gives: they belong to one request.
const OF_REQUESTS: [&str; 9] = [
    "cookie",
    "no-page",
    "spelling",
    "in-render",
    "invalidated",
    "method",
    "only-if-cached",
    "redis-down",
    "home-down",
];

#[test]
fn an_explanation_names_the_variables_of_its_remedy() {
    let script = include_str!("../../../assets/dashboard/explain.js");
    let (_, reasons) = include_str!("../../../docs/caching.md").split_once("### Reasons").unwrap();
    let (reasons, _) = reasons.split_once("### Explain").unwrap();
    let code = |cell: &'static str| cell.split('`').skip(1).step_by(2);
    for row in reasons.lines().filter(|line| line.starts_with("| `")).skip(1) {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").collect();
        let is_variable = |text: &&str| text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        for reason in code(cells[0]).filter(|reason| !OF_REQUESTS.contains(reason)) {
            let starts = [format!("\n  {reason}: "), format!("\n  '{reason}': ")];
            let text = starts.iter().find_map(|start| script.split_once(start)).map(|(_, text)| text);
            let text = text.unwrap_or_else(|| panic!("{reason} has no explanation"));
            let lines =
                text.split("\n  ").enumerate().take_while(|(number, line)| *number == 0 || line.starts_with(' '));
            let text: String = lines.map(|(_, line)| line.replace("SHARE", "PATHS_SHARED")).collect();
            for variable in code(cells[2]).filter(is_variable) {
                assert!(text.contains(variable), "{reason} does not name {variable}: {text}");
            }
        }
    }
}
