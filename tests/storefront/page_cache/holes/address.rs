//! Tokens of a session in the address of a form, and in an address in a script, as in `OpenCart` 4.

use http::{Method, StatusCode};

use super::{is_hit, visit};
use crate::support::{Asked, Reply, Shop, scenarios};

scenarios! {
    &[
        ("PAGE_MEMORY", "0"),
        ("HOLES_WAIT_MS", "20000"),
        ("HOLES", "/products/* form[action*='review_token='] <- token; /products/* script:not([src]) <- token"),
        ("COOKIES_HOLES", "sid"),
        ("COOKIES_DROPPED", "sid@/products/*"),
        ("PATHS_SHARED", "/products/*"),
    ];
    an_address_gets_the_token_of_its_visitor,
    a_parameter_of_another_name_gets_no_token,
    an_address_from_another_site_gets_no_token,
}

/// A shop that starts a session on each page, with two forms whose tokens differ.
fn page(asked: &Asked) -> Reply {
    let own = asked.header("cookie").split_once("sid=").map_or("new0", |(_, sid)| sid).to_owned();
    let token = |form: &str| format!("{own}{form}0123456789ab");
    let form =
        |name: &str| format!("<form method=post action='/write?form={name}&amp;review_token={}'></form>", token(name));
    let script = format!("<script>post('/write?review_token={}&form=c')</script>", token("c"));
    let page = Reply::html(["a", "b"].map(form).concat() + &script).header("cache-control", "private");
    if own == "new0" { page.header("set-cookie", "sid=new0; Path=/; HttpOnly") } else { page }
}

/// The addresses of the stored page.
async fn addresses(shop: &Shop) -> Vec<String> {
    shop.origin.answer_with(page);
    shop.visit("/products/mug").await;
    shop.settled().await;
    let answer = visit(shop, "sid=ada0").await;
    assert!(is_hit(&answer), "{:?}", answer.headers());
    let page = answer.text().await.unwrap();
    assert!(!page.contains("0123456789ab"), "{page}");
    page.split('\'').filter(|text| text.starts_with("/write")).map(|text| text.replace("&amp;", "&")).collect()
}

/// Sends a write, and returns the addresses for which the origin was asked.
async fn asked(shop: &Shop, path: &str, (site, cookie): (&str, &str)) -> Vec<String> {
    let before = shop.origin.asked().len();
    let request = shop.request(Method::POST, path).header("sec-fetch-site", site).header("cookie", cookie);
    assert_eq!(request.send().await.unwrap().status(), StatusCode::OK);
    shop.origin.asked().split_off(before).into_iter().map(|asked| asked.path).collect()
}

async fn an_address_gets_the_token_of_its_visitor(shop: &Shop) {
    let addresses = addresses(shop).await;
    for (cookie, own) in [("sid=ada0", "ada0"), ("sid=bob0", "bob0"), ("", "new0")] {
        let tokens = ["a", "b", "c"].map(|form| format!("{own}{form}0123456789ab"));
        let [a, b, c] = tokens;
        let expected = [
            format!("form=a&review_token={a}"),
            format!("form=b&review_token={b}"),
            format!("review_token={c}&form=c"),
        ];
        for (address, expected) in addresses.iter().zip(expected) {
            let asked = asked(shop, address, ("same-origin", cookie)).await;
            assert_eq!(asked, ["/products/mug".to_owned(), format!("/write?{expected}")]);
        }
    }
    assert_eq!(addresses.len(), 3);
}

/// A link of another site may have written the placeholder into the address of a page, to which a form of the page is sent.
async fn a_parameter_of_another_name_gets_no_token(shop: &Shop) {
    let address = addresses(shop).await.swap_remove(0).replace("review_token", "my_token");
    assert_eq!(asked(shop, &address, ("same-origin", "")).await.last(), Some(&address));
}

async fn an_address_from_another_site_gets_no_token(shop: &Shop) {
    let address = addresses(shop).await.swap_remove(0);
    assert_eq!(asked(shop, &address, ("cross-site", "sid=ada0")).await, [address]);
}
