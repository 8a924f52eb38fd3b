//! ESI: pages whose origin marks the fragments of visitors.

mod from_redis;
mod late;
mod limits;
mod refused;
mod with_rules;

use std::io::Read;

use flate2::read::GzDecoder;
use http::Method;

use super::{cache_status, header, is_hit, make_popular, name, visit};
use crate::support::{Asked, Reply, Shop, eventually, scenarios};

scenarios! {
    // A busy machine must not leave a fragment unfilled.
    &[("COOKIES_PERSONAL", "staff"), ("HOLES_WAIT_MS", "20000")];
    a_visitor_without_cookies_gets_the_stored_page_without_a_request,
    a_visitor_with_any_cookie_gets_own_fragments,
    everything_before_a_fragment_is_sent_at_once,
    a_personal_request_asks_for_no_esi_but_gets_it_expanded,
    a_compressed_page_is_requested_again,
    a_range_of_a_page_is_requested_again_as_a_whole,
    a_page_that_the_origin_did_not_declare_stays_text,
    a_failed_fragment_is_replaced_or_refuses_the_page,
    a_fragment_that_fails_for_one_visitor_leaves_the_shared_content,
    a_private_fragment_is_not_stored_and_each_visitor_gets_an_own_one,
    a_page_that_is_not_stored_is_expanded,
    the_origin_fills_the_fragments_of_a_fragment,
    a_fragment_that_is_declared_shared_is_the_same_for_all,
    concurrent_visitors_get_their_own_fragments,
}

const SURROGATE_CONTROL: &str = r#"content="ESI/1.0""#;
const CAPABILITY: &str = r#"edgefront="ESI/1.0""#;

/// A page with ESI.
fn template(body: impl Into<String>) -> Reply {
    Reply::html(body.into()).header("surrogate-control", SURROGATE_CONTROL).header("etag", "\"template\"")
}

/// A storefront that fills in the fragments itself if the request does not announce ESI.
fn storefront(asked: &Asked) -> Reply {
    let name = name(asked);
    match asked.path.as_str() {
        "/_fragment?part=user&x=1" => Reply::html(format!("<b>{name}</b>")),
        "/_fragment?part=cart" => Reply::html(format!("<i>cart of {name}</i>")),
        path if asked.header("surrogate-capability") == CAPABILITY => template(format!(
            "<h1>{path}</h1><esi:include src=\"/_fragment?part=user&amp;x=1\"/><esi:remove>no ESI</esi:remove>\
             <esi:comment text=\"x\"/><esi:include src='/_fragment?part=cart' onerror='continue'></esi:include>\
             <!--esi <p>--><esi:include src='/_fragment?part=user&x=1'/>rest"
        )),
        _ => Reply::html(page_of(name)),
    }
}

/// A visit of the visitor `name`.
fn page_of(name: &str) -> String {
    format!("<h1>/products/mug</h1><b>{name}</b><i>cart of {name}</i> <p><b>{name}</b>rest")
}

/// Stores the mug's page.
async fn open(shop: &Shop, rule: impl Fn(&Asked) -> Reply + Send + 'static) {
    make_popular(shop, "mug").await;
    shop.origin.answer_with(rule);
    assert_eq!(cache_status(&shop.visit("/products/mug").await), "edgefront; fwd=uri-miss; stored");
    shop.settled().await;
}

/// The requests to the origin from number `first` on, sorted by path.
fn asked_from(shop: &Shop, first: usize) -> Vec<Asked> {
    let mut asked = shop.origin.asked().split_off(first);
    asked.sort_by(|one, other| one.path.cmp(&other.path));
    asked
}

async fn a_visitor_without_cookies_gets_the_stored_page_without_a_request(shop: &Shop) {
    open(shop, storefront).await;
    let asked = asked_from(shop, 0);
    let paths: Vec<_> = asked.iter().map(|asked| asked.path.as_str()).collect();
    assert_eq!(paths, ["/_fragment?part=cart", "/_fragment?part=user&x=1", "/products/mug"], "each fragment once");
    for asked in &asked {
        assert_eq!((asked.header("surrogate-capability"), asked.header("cookie")), (CAPABILITY, ""));
    }
    let answer = visit(shop, "_ga=1").await;
    assert!(is_hit(&answer), "{}", cache_status(&answer));
    assert_eq!(header(&answer, "surrogate-control"), "");
    assert_eq!(header(&answer, "cache-control"), "private, no-cache", "other visitors see another page");
    let etag = header(&answer, "etag");
    assert!(!etag.is_empty() && etag != "\"template\"", "{etag}");
    assert_eq!(answer.text().await.unwrap(), page_of("guest"));
    let again = shop.get("/products/mug").header("if-none-match", &etag).send().await.unwrap();
    assert_eq!(again.status(), 304);
    assert_eq!(shop.origin.count(), 3);
}

async fn a_visitor_with_any_cookie_gets_own_fragments(shop: &Shop) {
    open(shop, storefront).await;
    for name in ["ada", "bob"] {
        let before = shop.origin.count();
        let answer = visit(shop, &format!("_ga=1; sid={name}")).await;
        assert!(is_hit(&answer), "{}", cache_status(&answer));
        assert_eq!((header(&answer, "etag"), header(&answer, "last-modified")), Default::default());
        assert_eq!(header(&answer, "cache-control"), "private, no-cache");
        assert_eq!(answer.text().await.unwrap(), page_of(name));
        let asked = asked_from(shop, before);
        assert_eq!(asked.len(), 2, "each fragment once");
        for asked in asked {
            assert!(asked.path.starts_with("/_fragment?"), "{}", asked.path);
            assert_eq!(asked.header("cookie"), format!("_ga=1; sid={name}"));
            assert_eq!((asked.header("surrogate-capability"), asked.header("edge-shared")), ("", ""));
        }
    }
    assert_eq!(visit(shop, "").await.text().await.unwrap(), page_of("guest"), "nothing is stored");
}

async fn everything_before_a_fragment_is_sent_at_once(shop: &Shop) {
    open(shop, storefront).await;
    shop.origin.hold();
    let mut answer = visit(shop, "sid=ada").await;
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "<h1>/products/mug</h1>");
    eventually("both fragments are requested", async || shop.origin.count() == 5).await;
    shop.origin.release();
    let rest = answer.text().await.unwrap();
    assert_eq!(format!("<h1>/products/mug</h1>{rest}"), page_of("ada"));
}

async fn a_personal_request_asks_for_no_esi_but_gets_it_expanded(shop: &Shop) {
    open(shop, storefront).await;
    let before = shop.origin.count();
    let claimed = shop.get("/products/mug").header("cookie", "staff=1; sid=ada");
    let answer = claimed.header("surrogate-capability", CAPABILITY).send().await.unwrap();
    assert_eq!(cache_status(&answer), "edgefront; fwd=bypass; detail=cookie");
    assert_eq!(answer.text().await.unwrap(), page_of("ada"));
    let asked = asked_from(shop, before);
    assert_eq!((asked.len(), asked[0].header("surrogate-capability")), (1, ""));
    // An origin that sends ESI although the request does not announce it.
    shop.origin.answer_with(|asked| match asked.path.as_str() {
        "/_fragment" => Reply::html(format!("<b>{}</b>", name(asked))).header("set-cookie", "seen=1; Path=/"),
        "/alt" => Reply::html("alt"),
        "/gone" => Reply::status(404),
        _ => template(
            "<esi:include src='/_fragment'/><esi:include src='/gone' alt='/alt'/>\
             <esi:include src='/gone' onerror='continue'/>rest",
        )
        .header("cache-control", "public, max-age=60")
        .header("cdn-cache-control", "max-age=60")
        .header("cloudflare-cdn-cache-control", "max-age=60")
        .header("last-modified", "Sat, 21 Nov 2026 15:00:00 GMT"),
    });
    for (method, path) in [(Method::GET, "/products/mug"), (Method::GET, "/account"), (Method::POST, "/account")] {
        let answer = shop.request(method, path).header("cookie", "staff=1; sid=ada").send().await.unwrap();
        assert_eq!((answer.status().as_u16(), header(&answer, "set-cookie").as_str()), (200, "seen=1; Path=/"));
        assert_eq!(header(&answer, "cache-control"), "private, no-cache", "the page holds a visitor's fragments");
        for name in ["cdn-cache-control", "cloudflare-cdn-cache-control", "etag", "last-modified", "surrogate-control"]
        {
            assert_eq!(header(&answer, name), "", "{name}");
        }
        assert_eq!(answer.text().await.unwrap(), "<b>ada</b>altrest");
    }
    let head = shop.request(Method::HEAD, "/account").header("cookie", "staff=1").send().await.unwrap();
    assert_eq!((head.status().as_u16(), header(&head, "etag").as_str()), (200, ""));
}

async fn a_compressed_page_is_requested_again(shop: &Shop) {
    shop.origin.answer_with(|asked| match asked.path.as_str() {
        "/fragment" => Reply::html(name(asked).to_owned()),
        _ if asked.header("accept-encoding") == "identity" => template("1<esi:include src='/fragment'/>2"),
        _ => template("compressed").header("content-encoding", "gzip"),
    });
    for (cookies, expected) in [("staff=1; sid=ada", "1ada2"), ("", "1guest2")] {
        let request = shop.get("/products/mug").header("cookie", cookies).header("accept-encoding", "gzip");
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200);
        // workerd compresses the response.
        let is_compressed = header(&answer, "content-encoding") == "gzip";
        let body = answer.bytes().await.unwrap();
        let mut text = String::new();
        let read = if is_compressed {
            GzDecoder::new(&*body).read_to_string(&mut text)
        } else {
            (&*body).read_to_string(&mut text)
        };
        assert_eq!((read.is_ok(), text.as_str()), (true, expected));
    }
    for asked in shop.origin.asked() {
        // A page without ESI must not be stored in place of one with ESI.
        assert_eq!(asked.header("surrogate-capability").is_empty(), asked.header("edge-shared").is_empty());
    }
}

async fn a_range_of_a_page_is_requested_again_as_a_whole(shop: &Shop) {
    shop.origin.answer_with(|asked| match (asked.path.as_str(), asked.header("range")) {
        ("/fragment", _) => Reply::html(name(asked).to_owned()),
        (_, "") if asked.header("if-range").is_empty() => template("1<esi:include src='/fragment'/>2"),
        _ => template("1<esi").with_status(206).header("content-range", "bytes 0-4/31"),
    });
    let request = shop.get("/products/mug").header("cookie", "staff=1; sid=ada").header("range", "bytes=0-4");
    let answer = request.header("if-range", "\"template\"").send().await.unwrap();
    assert_eq!((answer.status().as_u16(), header(&answer, "content-range").as_str()), (200, ""));
    assert_eq!(answer.text().await.unwrap(), "1ada2");
}

async fn a_page_that_the_origin_did_not_declare_stays_text(shop: &Shop) {
    let text = "<esi:include src='/account'/><!--esi text -->";
    shop.origin.answer(Reply::html(text).header("cache-control", "public, max-age=60"));
    let claims = [("surrogate-control", SURROGATE_CONTROL), ("surrogate-capability", CAPABILITY)];
    for cookies in ["", "staff=1", "sid=ada", ""] {
        let mut request = shop.get("/about").header("cookie", cookies);
        for (name, value) in claims {
            request = request.header(name, value);
        }
        assert_eq!(request.send().await.unwrap().text().await.unwrap(), text);
        shop.settled().await;
    }
    assert!(shop.origin.asked().iter().all(|asked| asked.path == "/about"));
}

async fn a_failed_fragment_is_replaced_or_refuses_the_page(shop: &Shop) {
    for (item, attributes, expected) in [
        ("alt", "alt='/alt'", Some("alt")),
        ("continue", "onerror='continue'", Some("")),
        ("both", "alt='/gone' onerror='continue'", Some("")),
        ("no-alt", "alt='/gone'", None),
        ("nothing", "", None),
    ] {
        let failing = [
            Reply::status(500),
            Reply::html("compressed").header("content-encoding", "gzip"),
            Reply::truncated("half"),
            template("<esi:include src='/alt'/>"),
        ];
        for (index, fragment) in failing.into_iter().enumerate() {
            let item = format!("{item}{index}");
            make_popular(shop, &item).await;
            shop.origin.answer_with(move |asked| match asked.path.as_str() {
                "/alt" => Reply::html("alt"),
                "/gone" => Reply::status(404),
                "/failing" => fragment.clone(),
                _ => template(format!("1<esi:include src='/failing' {attributes}/>2")),
            });
            let answer = shop.visit(&format!("/products/{item}")).await;
            match expected {
                Some(fragment) => assert_eq!(answer.text().await.unwrap(), format!("1{fragment}2"), "{item}"),
                None => assert_eq!(answer.status(), 502, "{item}"),
            }
        }
    }
}

async fn a_fragment_that_fails_for_one_visitor_leaves_the_shared_content(shop: &Shop) {
    open(shop, storefront).await;
    shop.origin.answer(Reply::status(500));
    let answer = visit(shop, "sid=ada").await;
    assert!(is_hit(&answer), "{}", cache_status(&answer));
    assert_eq!(answer.text().await.unwrap(), page_of("guest"));
    // The head of the page is already sent, so it cannot set the cookie.
    shop.origin.answer_with(|asked| storefront(asked).header("set-cookie", "seen=1; Path=/"));
    let answer = visit(shop, "sid=ada").await;
    assert_eq!(header(&answer, "set-cookie"), "");
    assert_eq!(answer.text().await.unwrap(), page_of("ada"));
    shop.logged("sets the cookie seen").await;
}

async fn a_private_fragment_is_not_stored_and_each_visitor_gets_an_own_one(shop: &Shop) {
    let personal: [fn(Reply) -> Reply; 6] = [
        |reply| reply.header("cache-control", "no-cache").header("etag", "\"1\""),
        |reply| reply.header("cache-control", "private"),
        |reply| reply.header("cache-control", "no-store"),
        |reply| reply.header("set-cookie", "token=1"),
        |reply| reply.header("vary", "x-region"),
        |reply| reply.header("edge-logout", "1"),
    ];
    for (index, personal) in personal.into_iter().enumerate() {
        let path = format!("/products/private{index}");
        make_popular(shop, &format!("private{index}")).await;
        shop.origin.answer_with(move |asked| match asked.path.as_str() {
            "/token" => personal(Reply::html(format!("token of {}", name(asked)))),
            "/alt" => Reply::html("alt"),
            _ => template("1<esi:include src='/token' alt='/alt'/>2"),
        });
        assert_eq!(shop.visit(&path).await.text().await.unwrap(), "1token of guest2");
        shop.settled().await;
        let answer = shop.get(&path).header("cookie", "sid=ada").send().await.unwrap();
        assert!(is_hit(&answer), "{}", cache_status(&answer));
        assert_eq!((header(&answer, "etag"), answer.text().await.unwrap()), (String::new(), "1token of ada2".into()));
        shop.origin.answer(Reply::status(500));
        let answer = shop.visit(&path).await;
        assert!(is_hit(&answer), "{}", cache_status(&answer));
        assert_eq!(answer.text().await.unwrap(), "1alt2", "the token is not stored");
    }
}

async fn a_page_that_is_not_stored_is_expanded(shop: &Shop) {
    shop.origin.answer_with(|asked| match asked.path.as_str() {
        "/fragment" => Reply::html(name(asked).to_owned()),
        "/failing" => template("3<esi:include src='/fragment'/>4").with_status(503),
        _ => template("1<esi:include src='/fragment'/>2").header("cache-control", "no-store"),
    });
    for cookies in ["", "sid=ada"] {
        let name = cookies.strip_prefix("sid=").unwrap_or("guest");
        for (path, status, expected) in [("/about", 200, format!("1{name}2")), ("/failing", 503, format!("3{name}4"))] {
            let answer = shop.get(path).header("cookie", cookies).send().await.unwrap();
            assert_eq!((answer.status().as_u16(), answer.text().await.unwrap()), (status, expected));
        }
    }
}

async fn the_origin_fills_the_fragments_of_a_fragment(shop: &Shop) {
    let include = |asked: &Asked, path: &str, content: String| {
        let reply = if asked.header("surrogate-capability") == CAPABILITY {
            template(format!("({content}<esi:include src='{path}'/>)"))
        } else {
            Reply::html(format!("({content}cart of {})", name(asked)))
        };
        reply.header("cache-control", "public, s-maxage=60")
    };
    open(shop, move |asked| match asked.path.as_str() {
        "/header" => include(asked, "/cart", "menu, ".to_owned()),
        _ => include(asked, "/header", String::new()),
    })
    .await;
    for (cookies, name) in [("", "guest"), ("sid=ada", "ada")] {
        let answer = visit(shop, cookies).await;
        assert!(is_hit(&answer), "{}", cache_status(&answer));
        assert_eq!(answer.text().await.unwrap(), format!("((menu, cart of {name}))"));
    }
}

async fn a_fragment_that_is_declared_shared_is_the_same_for_all(shop: &Shop) {
    let public = |reply: Reply| reply.header("cache-control", "public, s-maxage=60");
    open(shop, move |asked| match asked.path.as_str() {
        "/menu" => public(Reply::html("menu")),
        "/cart" => public(Reply::html(format!("cart of {}", name(asked)))).header("vary", "cookie"),
        "/failing" => Reply::status(500),
        "/products/mug" => template(
            "<esi:include src='/menu'/>;<esi:include src='/cart'/>;<esi:include src='/failing' alt='/menu'/>;rest",
        ),
        _ => public(template("<esi:include src='/menu'/>;rest")),
    })
    .await;
    let before = shop.origin.count();
    let answer = visit(shop, "sid=ada").await;
    assert!(is_hit(&answer), "{}", cache_status(&answer));
    assert_eq!(answer.text().await.unwrap(), "menu;cart of ada;menu;rest");
    let paths: Vec<_> = asked_from(shop, before).into_iter().map(|asked| asked.path).collect();
    assert_eq!(paths, ["/cart", "/failing", "/menu"], "the menu replaces the fragment that fails");
    shop.visit("/about").await;
    shop.settled().await;
    let before = shop.origin.count();
    let answer = shop.get("/about").header("cookie", "sid=ada").send().await.unwrap();
    assert!(is_hit(&answer), "{}", cache_status(&answer));
    assert_eq!((answer.text().await.unwrap().as_str(), shop.origin.count()), ("menu;rest", before));
}

async fn concurrent_visitors_get_their_own_fragments(shop: &Shop) {
    open(shop, storefront).await;
    let names: Vec<_> = (0..40).map(|number| format!("visitor{}", number % 20)).collect();
    let visits = names.iter().map(async |name| visit(shop, &format!("sid={name}")).await.text().await.unwrap());
    for (name, body) in names.iter().zip(futures_util::future::join_all(visits).await) {
        assert_eq!(body, page_of(name));
    }
}
