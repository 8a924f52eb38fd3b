//! Tokens of a session in forms: each visitor gets the stored page with a placeholder. Its script fetches the token, and starts the
//! session, when the visitor uses a form. If a request carries the placeholder, edgefront does the same.

use std::time::Duration;

use http::{HeaderMap, Method};
use reqwest::{Body, RequestBuilder, Response};

use super::{asked_later, header, is_hit, name, visit};
use crate::support::{Asked, Reply, Shop, scenarios};

scenarios! {
    &[
        ("PAGE_MEMORY", "0"),
        ("HOLES_WAIT_MS", "4000"),
        ("HOLES", "/products/* [name=token] <- token; /products/* script:not([src]) <- token"),
        ("COOKIES_HOLES", "sid"),
        ("COOKIES_DROPPED", "sid@/products/*"),
        ("PATHS_SHARED", "/products/*"),
    ];
    a_visitor_without_cookies_gets_the_stored_page_with_a_script,
    a_visitor_with_a_session_gets_the_stored_page_without_a_request,
    a_copy_of_the_origins_page_is_not_the_page_with_the_script,
    a_confirmed_page_keeps_one_script,
    a_page_that_placeholders_make_too_large_is_not_stored,
    the_script_gets_the_token_and_the_session,
    another_site_requests_no_page_of_the_visitor,
    a_request_with_the_placeholder_gets_the_token_and_the_session,
    a_request_of_a_script_gets_the_token_and_the_session,
    a_form_gets_its_own_token,
    a_visitor_with_a_session_keeps_it,
    a_token_is_encoded_as_the_body_is,
    a_request_from_another_site_gets_no_token,
    a_text_with_a_placeholder_stays_as_it_is,
    a_prefilled_text_gets_no_token,
    a_placeholder_of_another_element_or_page_stays,
    a_page_that_fails_leaves_the_request_as_it_is,
    only_a_whole_header_is_replaced,
    a_late_page_holds_up_no_order,
    a_long_upload_is_not_searched,
}

/// A shop that starts a session on each page, and whose forms need a token of the session.
fn page(asked: &Asked) -> Reply {
    let token = if asked.header("cookie").contains("sid=") { name(asked) } else { "new" };
    let page = Reply::html(format!("<form><input name=token value={token}><button>Buy</button></form>"));
    let page = page.header("etag", "\"1\"").header("cache-control", "no-cache, private");
    if token == "new" { page.header("set-cookie", "sid=new; Path=/; HttpOnly") } else { page }
}

async fn body(shop: &Shop, cookie: &str) -> String {
    let answer = visit(shop, cookie).await;
    assert!(is_hit(&answer), "{:?}", answer.headers());
    assert!(!answer.headers().contains_key("set-cookie"));
    assert_eq!(answer.headers()["cache-control"], "private, no-cache");
    answer.text().await.unwrap()
}

/// `0 [name=token]`, `/products/mug` in base64url.
const PLACEHOLDER: &str = "edgefront-token-MCBbbmFtZT10b2tlbl0KL3Byb2R1Y3RzL211Zw";

/// The stored page, before the body of its form ends.
fn is_shared(body: &str) -> bool {
    let form =
        format!("<form><input name=token value={PLACEHOLDER}><script type=\"module\" src=\"/_edge/assets/holes.js");
    body.starts_with(&form)
        && body
            .ends_with("data-hole=\"[name=token]\" data-index=\"0\" data-on-use></script><button>Buy</button></form>")
        && body.matches("<script").count() == 1
}

async fn open(shop: &Shop) {
    shop.origin.answer_with(page);
    shop.visit("/products/mug").await;
    shop.settled().await;
}

async fn a_visitor_without_cookies_gets_the_stored_page_with_a_script(shop: &Shop) {
    open(shop).await;
    for cookie in ["", "_ga=1"] {
        let body = body(shop, cookie).await;
        assert!(is_shared(&body), "{body}");
    }
    assert_eq!(asked_later(shop), [""; 0]);
}

async fn a_visitor_with_a_session_gets_the_stored_page_without_a_request(shop: &Shop) {
    open(shop).await;
    for name in ["ada", "bob"] {
        let body = body(shop, &format!("sid={name}")).await;
        assert!(is_shared(&body), "{body}");
    }
    assert_eq!(asked_later(shop), [""; 0]);
}

/// A browser has the page from a visit with a session that has ended since.
async fn a_copy_of_the_origins_page_is_not_the_page_with_the_script(shop: &Shop) {
    let modified = "Sat, 21 Nov 2026 15:00:00 GMT";
    shop.origin.answer_with(move |asked| page(asked).header("last-modified", modified));
    shop.visit("/products/mug").await;
    shop.settled().await;
    for (name, value) in [("if-none-match", "\"1\""), ("if-modified-since", modified)] {
        let answer = shop.get("/products/mug").header(name, value).send().await.unwrap();
        assert_eq!((is_hit(&answer), answer.status().as_u16()), (true, 200), "{name}");
        assert!(is_shared(&answer.text().await.unwrap()), "{name}");
    }
    let own = visit(shop, "").await.headers()["etag"].clone();
    let again = shop.get("/products/mug").header("if-none-match", own).send().await.unwrap();
    assert_eq!(again.status(), 304);
    assert_eq!(asked_later(shop), [""; 0]);
}

async fn a_confirmed_page_keeps_one_script(shop: &Shop) {
    open(shop).await;
    shop.origin.answer_with(|asked| match asked.header("if-none-match") {
        "\"1\"" => Reply::status(304).header("etag", "\"1\"").header("cache-control", "no-cache, private"),
        _ => page(asked),
    });
    let reload = shop.request(Method::GET, "/products/mug").header("cache-control", "no-cache").send().await.unwrap();
    assert!(is_shared(&reload.text().await.unwrap()));
    assert!(is_shared(&body(shop, "").await));
    assert!(is_shared(&body(shop, "sid=ada").await));
}

async fn a_page_that_placeholders_make_too_large_is_not_stored(shop: &Shop) {
    let page = ["<input name=token value=1>", &" ".repeat((1 << 20) - 26)].concat();
    shop.origin.answer(Reply::html(page.clone()));
    for status in ["edgefront; fwd=uri-miss; detail=too-large", "edgefront; fwd=bypass; detail=too-large"] {
        let answer = visit(shop, "").await;
        assert_eq!(header(&answer, "cache-status"), status);
        assert!(answer.text().await.unwrap() == page);
        shop.settled().await;
    }
}

async fn the_script_gets_the_token_and_the_session(shop: &Shop) {
    open(shop).await;
    let answer = shop.get("/_edge/v1/holes?page=/products/mug").send().await.unwrap();
    let cookies = |headers: &HeaderMap| headers["set-cookie"].to_str().unwrap().to_owned();
    assert_eq!(cookies(answer.headers()), "sid=new; Path=/; HttpOnly");
    assert_eq!(answer.text().await.unwrap(), "{\"[name=token]\":[\"<input name=token value=new>\"]}");
}

/// The origin may refuse such a request by `Sec-Fetch-Site`, which a request for holes does not have.
async fn another_site_requests_no_page_of_the_visitor(shop: &Shop) {
    open(shop).await;
    let foreign =
        [("sec-fetch-site", "cross-site"), ("sec-fetch-site", "same-site"), ("origin", "https://evil.example")];
    for (header, status) in
        foreign.map(|header| (header, 403)).into_iter().chain([(("sec-fetch-site", "same-origin"), 200)])
    {
        let request = shop.get("/_edge/v1/holes?page=/cart/add").header(header.0, header.1).header("cookie", "sid=ada");
        assert_eq!(request.send().await.unwrap().status(), status, "{header:?}");
    }
    assert_eq!(asked_later(shop), ["/cart/add"]);
}

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// An addition to the cart, sent by the product's page.
fn add(shop: &Shop) -> RequestBuilder {
    shop.request(Method::POST, "/cart").header("sec-fetch-site", "same-origin").header(FORM.0, FORM.1)
}

/// Sends the request. Returns its answer and the requests that the origin got for it.
async fn sent(shop: &Shop, request: RequestBuilder) -> (Response, Vec<Asked>) {
    let before = shop.origin.asked().len();
    let answer = request.send().await.unwrap();
    (answer, shop.origin.asked().split_off(before))
}

fn text(asked: &Asked) -> &str {
    std::str::from_utf8(&asked.body).unwrap()
}

async fn a_request_with_the_placeholder_gets_the_token_and_the_session(shop: &Shop) {
    open(shop).await;
    let page = body(shop, "_ga=1").await;
    let token = page.split("value=").nth(1).unwrap().split('>').next().unwrap();
    let requests = [
        add(shop).body(format!("item=mug&token={token}")),
        add(shop).body("item=mug").header("x-csrf-token", token),
        shop.request(Method::POST, "/cart")
            .header("sec-fetch-site", "same-origin")
            .json(&serde_json::json!({"item": "mug", "token": token})),
    ];
    for request in requests {
        let (answer, asked) = sent(shop, request.header("cookie", "_ga=1; lang=de")).await;
        let [page, add] = asked.as_slice() else { panic!("{} requests", asked.len()) };
        assert_eq!(
            (&page.method, page.path.as_str(), page.header("cookie")),
            (&Method::GET, "/products/mug", "_ga=1; lang=de")
        );
        assert_eq!(
            (&add.method, add.path.as_str(), add.header("cookie")),
            (&Method::POST, "/cart", "_ga=1; lang=de; sid=new")
        );
        let all = format!("{}{}", add.header("x-csrf-token"), text(add));
        assert!(all.contains("new") && !all.contains("edgefront"), "{all}");
        let length = add.header("content-length");
        assert_eq!(length, add.body.len().to_string());
        assert!(header(&answer, "set-cookie").starts_with("sid=new; Path=/; HttpOnly"), "{:?}", answer.headers());
    }
}

/// As Odoo answers: scripts read the token of a global variable. A signed-in visitor's page has one more script.
fn page_with_script(asked: &Asked) -> Reply {
    let is_known = asked.header("cookie").contains("sid=");
    let (token, more) = if is_known { (name(asked), "<script>log('own')</script>") } else { ("new", "") };
    let script = format!("<script>var shop = {{debug: 0, csrf_token: \"{token}\"}};</script>");
    let reply = Reply::html(format!("{more}{script}<button>Buy</button>")).header("cache-control", "private");
    if is_known { reply } else { reply.header("set-cookie", "sid=new; Path=/; HttpOnly") }
}

async fn a_request_of_a_script_gets_the_token_and_the_session(shop: &Shop) {
    shop.origin.answer_with(page_with_script);
    shop.visit("/products/mug").await;
    shop.settled().await;
    let page = body(shop, "").await;
    let token = page.split("csrf_token: \"").nth(1).unwrap().split('"').next().unwrap();
    let expected = format!("<script>var shop = {{debug: 0, csrf_token: \"{token}\"}};</script><button>Buy</button>");
    assert_eq!((page.as_str(), token.starts_with("edgefront-token-")), (expected.as_str(), true));
    for (cookie, own) in [("", "new"), ("sid=ada", "ada")] {
        let (answer, asked) =
            sent(shop, add(shop).header("cookie", cookie).body(format!("item=mug&csrf_token={token}"))).await;
        assert_eq!(text(asked.last().unwrap()), format!("item=mug&csrf_token={own}"));
        assert_eq!(header(&answer, "set-cookie").contains("sid=new"), cookie.is_empty());
    }
}

/// As Rails answers: a token is valid for the `action` of its form only. A signed-in visitor's page has other forms, too.
fn page_with_forms(asked: &Asked) -> Reply {
    let name = name(asked);
    let form = |action: &str| format!("<form action='{action}'><input name=token value={name}{action}></form>");
    let forms = match name {
        "ada" => ["/logout", "/cart", "/reviews?a&amp;b"].map(form).concat(),
        "bob" => ["/logout", "/reviews?a&amp;b"].map(form).concat(),
        _ => ["/cart", "/reviews?a&amp;b"].map(form).concat(),
    };
    Reply::html(forms).header("cache-control", "private")
}

async fn a_form_gets_its_own_token(shop: &Shop) {
    shop.origin.answer_with(page_with_forms);
    shop.visit("/products/mug").await;
    shop.settled().await;
    let page = body(shop, "").await;
    let tokens: Vec<_> = page.split("value=").skip(1).map(|rest| rest.split('>').next().unwrap()).collect();
    assert!(page.contains(r#" data-index="0" data-form="/reviews?a&amp;b" data-on-use></script></form>"#), "{page}");
    for (cookie, expected) in [
        ("", ["guest/cart", "guest/reviews?a&b"]),
        ("sid=ada", ["ada/cart", "ada/reviews?a&b"]),
        // The shop refuses the token of another form, and names the reason.
        ("sid=bob", ["bob/logout", "bob/reviews?a&b"]),
    ] {
        let browser = shop.get("/_edge/v1/holes?page=/products/mug").header("cookie", cookie).send().await.unwrap();
        let own: serde_json::Value = browser.json().await.unwrap();
        assert_eq!(own["[name=token]\n/reviews?a&b"].as_array().unwrap().len(), 1, "{own}");
        for (token, expected) in tokens.iter().zip(expected) {
            let request = add(shop).header("cookie", cookie).header("x-csrf-token", *token);
            let (_, asked) = sent(shop, request.body("item=mug")).await;
            assert_eq!(asked.last().unwrap().header("x-csrf-token"), expected, "{cookie}");
        }
    }
}

async fn a_visitor_with_a_session_keeps_it(shop: &Shop) {
    open(shop).await;
    let (answer, asked) = sent(shop, add(shop).header("cookie", "sid=ada").body(format!("token={PLACEHOLDER}"))).await;
    assert_eq!(asked.iter().map(|asked| asked.header("cookie")).collect::<Vec<_>>(), ["sid=ada"; 2]);
    assert_eq!(text(&asked[1]), "token=ada");
    assert!(!header(&answer, "set-cookie").contains("sid="));

    // The cookie of the answer itself is newer than the page's.
    shop.origin.answer_with(|asked| match asked.method {
        Method::POST => Reply::html("added").header("set-cookie", "sid=newer"),
        _ => page(asked),
    });
    let (answer, _) = sent(shop, add(shop).body(format!("token={PLACEHOLDER}"))).await;
    let cookies: Vec<_> =
        answer.headers().get_all("set-cookie").iter().filter(|line| line.to_str().unwrap().contains("sid=")).collect();
    assert_eq!(cookies, ["sid=newer"]);
}

async fn a_token_is_encoded_as_the_body_is(shop: &Shop) {
    let form = "<form><input name=token value='a+b/c&#x3D;&quot;'></form>";
    shop.origin.answer_with(move |_| Reply::html(form).header("cache-control", "no-cache, private"));
    shop.visit("/products/mug").await;
    shop.settled().await;
    let part = |token: &str| format!("--x\r\nContent-Disposition: form-data; name=\"token\"\r\n\r\n{token}\r\n--x--");
    for (media, before, after) in [
        (
            "application/x-www-form-urlencoded; charset=utf-8",
            format!("token={PLACEHOLDER}&a=b"),
            "token=a%2Bb%2Fc%3D%22&a=b".to_owned(),
        ),
        ("application/json", format!("{{\"token\": \"{PLACEHOLDER}\"}}"), "{\"token\": \"a+b/c=\\\"\"}".to_owned()),
        ("multipart/form-data; boundary=x", part(PLACEHOLDER), part("a+b/c=\"")),
    ] {
        let request = shop.request(Method::POST, "/cart").header("sec-fetch-site", "same-origin");
        let (_, asked) = sent(shop, request.header("content-type", media).body(before)).await;
        assert_eq!(text(asked.last().unwrap()), after);
    }
}

async fn a_request_from_another_site_gets_no_token(shop: &Shop) {
    open(shop).await;
    let (own, body) = (shop.url.as_str(), format!("token={PLACEHOLDER}"));
    for (name, value, is_own) in [
        ("sec-fetch-site", "same-origin", true),
        ("sec-fetch-site", "same-site", false),
        ("sec-fetch-site", "cross-site", false),
        ("origin", own, true),
        ("origin", "https://evil.example", false),
        ("origin", "null", false),
        ("referer", &format!("{own}/products/mug"), true),
        ("referer", "https://evil.example/", false),
        ("x-nothing", "1", false),
    ] {
        let request = shop.request(Method::POST, "/cart").header(name, value).header(FORM.0, FORM.1);
        let (_, asked) = sent(shop, request.body(body.clone())).await;
        let expected = if is_own { "token=new" } else { &body };
        assert_eq!((text(asked.last().unwrap()), asked.len()), (expected, 1 + usize::from(is_own)), "{name}: {value}");
    }
}

async fn a_text_with_a_placeholder_stays_as_it_is(shop: &Shop) {
    open(shop).await;
    for body in
        [format!("review=see+{PLACEHOLDER}"), format!("review={PLACEHOLDER}.&a=b"), "token=edgefront-token-".to_owned()]
    {
        let (_, asked) = sent(shop, add(shop).body(body.clone())).await;
        assert_eq!((asked.len(), text(&asked[0])), (1, body.as_str()));
    }
}

/// The link of another site has filled in the review, and the shop publishes reviews.
async fn a_prefilled_text_gets_no_token(shop: &Shop) {
    open(shop).await;
    let (_, asked) = sent(shop, add(shop).body(format!("review={PLACEHOLDER}&token={PLACEHOLDER}"))).await;
    assert_eq!(text(&asked[1]), format!("review={PLACEHOLDER}&token=new"));
}

async fn a_placeholder_of_another_element_or_page_stays(shop: &Shop) {
    open(shop).await;
    // `0 button`, `/products/mug` and `0 [name=token]`, `/account`: no rule names them.
    for other in ["edgefront-token-MCBidXR0b24KL3Byb2R1Y3RzL211Zw", "edgefront-token-MCBbbmFtZT10b2tlbl0KL2FjY291bnQ"] {
        let body = format!("token={other}");
        let (_, asked) = sent(shop, add(shop).body(body.clone())).await;
        assert_eq!(asked.iter().map(text).collect::<Vec<_>>(), [&body], "the origin renders no page for it");
    }
}

async fn a_page_that_fails_leaves_the_request_as_it_is(shop: &Shop) {
    open(shop).await;
    shop.origin.answer_with(|asked| match asked.method {
        Method::POST => Reply::status(419),
        _ => Reply::status(500),
    });
    let body = format!("token={PLACEHOLDER}");
    let (answer, asked) = sent(shop, add(shop).body(body.clone())).await;
    assert_eq!((answer.status().as_u16(), text(&asked[1])), (419, body.as_str()));
}

/// A shop may redirect to the `Referer`, so its URL must not get a token.
async fn only_a_whole_header_is_replaced(shop: &Shop) {
    open(shop).await;
    let referer = format!("{}/products/mug?token={PLACEHOLDER}", shop.url);
    let cookie = format!("a=1; token={PLACEHOLDER}");
    let request = || add(shop).header("referer", &referer).header("cookie", &cookie);
    let (_, asked) = sent(shop, request().body("item=mug")).await;
    assert_eq!(
        (asked.len(), asked[0].header("referer"), asked[0].header("cookie")),
        (1, referer.as_str(), cookie.as_str())
    );
    let (_, asked) = sent(shop, request().body("item=mug").header("x-csrf-token", PLACEHOLDER)).await;
    assert_eq!((asked[1].header("referer"), asked[1].header("x-csrf-token")), (referer.as_str(), "new"));
}

async fn a_late_page_holds_up_no_order(shop: &Shop) {
    open(shop).await;
    shop.origin.answer_with(|asked| match asked.method {
        Method::POST => Reply::html("ordered"),
        _ => page(asked).after(Duration::from_secs(20)),
    });
    let body = format!("token={PLACEHOLDER}");
    let (answer, asked) = sent(shop, add(shop).body(body.clone())).await;
    assert_eq!((answer.status().as_u16(), text(&asked[1])), (200, body.as_str()));
}

async fn a_long_upload_is_not_searched(shop: &Shop) {
    open(shop).await;
    let long = format!("token={PLACEHOLDER}&file={}", "a".repeat(1 << 20));
    let (_, asked) = sent(shop, add(shop).body(long.clone())).await;
    assert_eq!((asked.len(), asked[0].body.len()), (1, long.len()));
    // Without a length, a body may never end.
    let chunks = futures_util::stream::iter([Ok::<_, std::io::Error>(format!("token={PLACEHOLDER}"))]);
    let (_, asked) = sent(shop, add(shop).body(Body::wrap_stream(chunks))).await;
    assert_eq!((asked.len(), text(&asked[0])), (1, format!("token={PLACEHOLDER}").as_str()));
}
