//! Products at the top of the site, and single pages that look like them.

use serde_json::json;

use super::support::{Asked, Reply, Shop, kind};

#[test]
fn many_products_at_the_top_are_items_and_known_names_stay_personal() {
    let page = |cookie: bool| {
        move |asked: &Asked| {
            let links =
                ('a'..='z').map(|name| format!("<a href='/blue-{name}-mug'>Mug</a>")).collect::<Vec<_>>().concat();
            let page = Reply::html(format!("{links}<a href='/cart'>Cart</a>"));
            if cookie { page.with("set-cookie", &format!("sid=of-{}; Path=/", asked.number)) } else { page }
        }
    };
    let report = Shop::start(page(false)).examine(&[]);
    let mugs = kind(&report, "/*");
    assert_eq!(
        (&report["vars"]["ITEM_ROUTES"], &mugs["hit_ratio_with_rules"]),
        (&json!("/{item}"), &json!(1.0)),
        "{report:#}"
    );
    let personal = format!("{},", report["vars"]["PATHS_PERSONAL"].as_str().unwrap());
    assert!(["/cart", "/account", "/login"].iter().all(|path| personal.contains(&format!(" {path},"))), "{personal}");
    assert_eq!(kind(&report, "/cart")["hit_ratio_with_rules"], json!(0.0));
    let report = Shop::start(page(true)).examine(&[]);
    assert_eq!(report["vars"].get("ITEM_ROUTES"), None, "a rule for the cookie would hold for all pages");
}

/// A rule for `/{item}` would hold for each page at the top.
#[test]
fn one_page_with_a_number_at_the_top_is_no_item() {
    let shop = |numbers: &'static [u32]| {
        let page = move |asked: &Asked| {
            let links: String =
                numbers.iter().map(|number| format!("<a href='/sale-{number}'>Sale</a>")).collect::<Vec<_>>().concat();
            let own = asked.path.trim_matches('/').split('-').next().unwrap_or_default();
            Reply::html(format!("<main class={own}>{links}<a href='/about'>About us</a></main>"))
        };
        Shop::start(page).examine(&[])
    };
    let report = shop(&[50]);
    assert_eq!(report["vars"].get("ITEM_ROUTES"), None, "{report:#}");
    assert_eq!(report["vars"]["PATHS_SHARED"], "+ /, /about, /sale-50", "{report:#}");
    assert_eq!(shop(&[50, 60, 70])["vars"]["ITEM_ROUTES"], "/{item}");
}

/// Pages of many kinds have a number, and no template in common.
#[test]
fn pages_at_the_top_without_a_common_template_are_no_items() {
    let report = Shop::start(|asked: &Asked| {
        let links = "<a href='/sale-50'>Sale</a><a href='/error404'>Map</a><a href='/page2'>More</a>";
        Reply::html(match asked.path.as_str() {
            "/sale-50" => "<h1>Sale</h1><table><tr><td>Mug</td></tr></table>".to_owned(),
            "/error404" => "<nav><ol><li>Mugs</li></ol></nav><em>Map</em>".to_owned(),
            "/page2" => "<article><q>News</q></article><footer><b>End</b></footer>".to_owned(),
            _ => links.to_owned(),
        })
    })
    .examine(&[]);
    assert_eq!(report["vars"].get("ITEM_ROUTES"), None, "{report:#}");
}
