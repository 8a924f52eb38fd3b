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
