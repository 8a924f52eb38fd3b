//! Shops that vary their pages by language and device.

use std::{collections::BTreeSet, sync::Mutex};

use serde_json::Value;

use super::support::{Asked, Reply, Shop, book_links, kind};

/// A shop in English, German and Brazilian Portuguese, which announces its languages as Django does.
fn multilingual(asked: &Asked) -> Reply {
    let language = match asked.header("accept-language").to_ascii_lowercase().split(['-', ',']).next() {
        Some("de") => "de",
        Some("pt") => "pt-br",
        _ => "en",
    };
    let page = Reply::html(format!("<html lang='{language}'><p>Hello in {language}</p>{}</html>", book_links(3)));
    page.with("vary", "Accept-Language, User-Agent").with("cache-control", "public, s-maxage=60")
}

/// A shop with pages for phones, each with the time.
fn adaptive(asked: &Asked) -> Reply {
    let device = if asked.header("user-agent").contains("Mobile") { "phone" } else { "computer" };
    let page = Reply::html(format!("<p>For a {device}</p><p>Request {}</p>{}", asked.number, book_links(3)));
    page.with("vary", "User-Agent").with("cache-control", "public, s-maxage=60")
}

fn notes(report: &Value, header: &str) -> Vec<String> {
    let notes = report["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap().to_owned());
    notes.filter(|note| note.contains(&format!("vary by {header}"))).collect()
}

#[test]
fn the_languages_of_a_shop_are_found_and_a_header_without_effect_is_named() {
    let report = Shop::start(multilingual).examine(&[]);
    assert_eq!(report["vars"]["HEADERS_NORMALIZED"], "+ accept-language=en|de|pt, user-agent=");
    assert!(notes(&report, "accept-language")[0].contains("Risk: "), "{report:#}");
    assert_eq!(notes(&report, "user-agent").len(), 1);
}

#[test]
fn pages_that_differ_although_no_vary_says_so_are_kept_apart() {
    let report = Shop::start(|asked: &Asked| {
        let language = if asked.header("accept-language").starts_with("de") { "de" } else { "en" };
        // The first page is the same in all languages.
        let text = if asked.path == "/" { "Hello" } else { language };
        let page = Reply::html(format!("<html lang='{language}'><p>{text}</p>{}</html>", book_links(8)));
        page.with("cache-control", "no-store")
    })
    .examine(&[]);
    assert_eq!(report["vars"]["HEADERS_NORMALIZED"], "+ accept-language=en|de", "{report:#}");
    assert_eq!(report["vars"]["HEADERS_VARIED"], "+ accept-language");
    assert_eq!(report["vars"]["PATHS_SHARED"], "+ /, /books/*/");
    assert!(report["notes"].to_string().contains("no Vary names it"), "{report:#}");
}

/// As with Tomcat's `CsrfPreventionFilter`: the nonce of a link is valid for one session, and error pages are translated.
#[test]
fn the_languages_of_error_pages_need_no_rule() {
    let visited = Mutex::new(BTreeSet::new());
    let report = Shop::start(move |asked: &Asked| match asked.path.as_str() {
        "/" => Reply::html("<a href='/books?nonce=1'>Books</a>"),
        path if visited.lock().unwrap().insert(path.to_owned()) => Reply::html("<h1>Books</h1>"),
        _ if asked.header("accept-language").contains("de") => Reply::html("<p>Verboten</p>").with_status(403),
        _ => Reply::html("<p>Forbidden</p>").with_status(403),
    })
    .examine(&[]);
    assert_eq!(report["vars"]["HEADERS_VARIED"], Value::Null, "{report:#}");
    assert_eq!(report["vars"]["HEADERS_NORMALIZED"], Value::Null, "{report:#}");
}

/// As Django's `i18n_patterns`: the path has the language, and a form selects it.
#[test]
fn the_pages_of_languages_that_no_page_links_are_examined() {
    let shop = |asked: &Asked| {
        let language = if asked.header("accept-language").starts_with("de") { "de" } else { "en" };
        let language = asked.path.split('/').nth(1).filter(|own| ["en", "de"].contains(own)).unwrap_or(language);
        match asked.path.as_str() {
            "/" => Reply::status(302).with("location", &format!("/{language}/")).with("vary", "Accept-Language"),
            "/robots.txt" => Reply::status(404),
            _ => Reply::html(format!(
                "<html lang={language}><a href='/{language}/book/1'>1</a><a href='/{language}/book/2'>2</a>"
            )),
        }
    };
    let report = Shop::start(shop).examine(&[]);
    assert_eq!(report["vars"]["ITEM_ROUTES"], "/de/book/{item}, /en/book/{item}", "{report:#}");
    assert_eq!(report["vars"]["PATHS_SHARED"], "+ /de/, /en/", "{report:#}");
}

/// The pages have their language in the path, and a cookie selects the target of the redirect at `/`.
#[test]
fn a_cookie_that_selects_the_home_page_is_found() {
    let shop = |asked: &Asked| {
        let chosen = asked.cookies.split("; ").find_map(|pair| pair.strip_prefix("django_language=")).unwrap_or("en");
        let language = asked.path.split('/').nth(1).filter(|own| ["en", "de"].contains(own)).unwrap_or(chosen);
        if asked.path == "/" {
            return Reply::status(302).with("location", &format!("/{language}/")).with("vary", "Cookie");
        }
        let form = "<form method=post action=/i18n/setlang/><select name=language><option value=en><option value=de></select></form>";
        Reply::html(format!(
            "<html lang={language}>{form}<a href='/{language}/book/1'>1</a><a href='/{language}/book/2'>2</a>"
        ))
    };
    let report = Shop::start(shop).examine(&[]);
    assert_eq!(report["vars"]["COOKIES_VARIED"], "+ django_language=de|en", "{report:#}");
}

/// ASP.NET Core keeps the language as `c=de|uic=de`.
#[test]
fn a_cookie_of_asp_net_is_found() {
    let report = Shop::start(|asked: &Asked| {
        let is_german = asked.cookies.contains(".AspNetCore.Culture=c%3Dde%7Cuic%3Dde");
        let language = if is_german { "de" } else { "en" };
        let form = "<form method=post action=/Home/SetCulture><select name=culture><option value=en><option value=de></select></form>";
        Reply::html(format!("<html lang={language}><p>In {language}</p>{form}{}", book_links(8)))
    })
    .examine(&[]);
    let rule = "+ .AspNetCore.Culture=c%3Dde%7Cuic%3Dde|c%3Den%7Cuic%3Den";
    assert_eq!(report["vars"]["COOKIES_VARIED"], rule, "{report:#}");
    assert_eq!(report["vars"].get("CHOICES"), None);
}

#[test]
fn the_languages_of_a_shop_that_redirects_its_home_page_are_found() {
    let report = Shop::start(|asked: &Asked| {
        let language = asked.header("accept-language").split(['-', ',']).next().unwrap_or_default().to_owned();
        if asked.path == "/" && ["de", "fr"].contains(&language.as_str()) {
            return Reply::status(307).with("location", &format!("/{language}"));
        }
        let page = Reply::html(format!("<html lang='en'><p>Hello</p>{}</html>", book_links(3)));
        page.with("cache-control", "s-maxage=60, stale-while-revalidate=300")
    })
    .examine(&[]);
    assert_eq!(report["vars"]["HEADERS_NORMALIZED"], "+ accept-language=en|de|fr", "{report:#}");
    assert_eq!(report["vars"]["HEADERS_VARIED"], "+ accept-language");
}

/// As Odoo answers: it reads one of the preferred languages only, redirects to the page of this language, and keeps it in a
/// cookie with a region.
#[test]
fn the_languages_of_a_shop_that_reads_one_preferred_language_are_found() {
    let report = Shop::start(|asked: &Asked| {
        let preferred = asked.header("accept-language").split(',').max().unwrap_or_default();
        let is_german =
            asked.cookies.contains("lang=de_DE") || !asked.cookies.contains("lang=") && preferred.starts_with("de");
        if is_german && !asked.path.starts_with("/de/") {
            let page = Reply::status(302).with("location", &format!("/de{}", asked.path));
            return page.with("set-cookie", "lang=de_DE; Path=/");
        }
        let (language, cookie) = if asked.path.starts_with("/de/") { ("de", "de_DE") } else { ("en", "en_US") };
        let links = "<link rel='alternate' hreflang='en' href='/'><link rel='alternate' hreflang='de' href='/de/'>";
        let page = Reply::html(format!("<html lang='{language}'>{links}<p>{language}</p>{}</html>", book_links(8)));
        page.with("set-cookie", &format!("lang={cookie}; Path=/"))
    })
    .examine(&[]);
    assert_eq!(report["vars"]["HEADERS_NORMALIZED"], "+ accept-language=en|de", "{report:#}");
    assert_eq!(report["vars"]["HEADERS_VARIED"], "+ accept-language");
    assert_eq!(report["vars"]["COOKIES_VARIED"], "+ lang=en_US|de_DE");
}

/// A shop in English and German that forbids nothing. `page` gets the language and returns the page.
fn bilingual(default: &'static str, page: impl Fn(&Asked, &str) -> Reply + Send + Sync + 'static) -> Value {
    let shop = Shop::start(move |asked: &Asked| {
        let chosen = asked.cookies.split("; ").find_map(|pair| pair.strip_prefix("locale="));
        let preferred = ["de", "en"].into_iter().find(|language| asked.header("accept-language").starts_with(language));
        page(asked, chosen.or(preferred).unwrap_or(default))
    });
    shop.examine(&[])
}

#[test]
fn a_template_that_announces_one_language_in_all_pages_hides_no_language() {
    let page = |asked: &Asked, language: &str| {
        let number = asked.number;
        Reply::html(format!("<html lang='en'><p>In {language}</p><b>{number}</b>{}</html>", book_links(8)))
    };
    let report = bilingual("en", page);
    assert_eq!(report["vars"]["HEADERS_NORMALIZED"], "+ accept-language=en|de", "{report:#}");
    // The page without the header announces the wrong language, so no list is known to be right.
    let report = bilingual("de", page);
    assert_eq!(report["vars"].get("HEADERS_NORMALIZED"), None, "{report:#}");
    assert_eq!(report["vars"]["HEADERS_VARIED"], "+ accept-language");
}

#[test]
fn pages_of_unknown_languages_are_kept_apart() {
    let report = bilingual("en", |_, language| Reply::html(format!("<p>In {language}</p>{}", book_links(8))));
    assert_eq!(report["vars"].get("HEADERS_NORMALIZED"), None, "{report:#}");
    assert_eq!(report["vars"]["HEADERS_VARIED"], "+ accept-language", "{report:#}");
    assert!(report["notes"].to_string().contains("list the values"), "{report:#}");
}

#[test]
fn the_cookie_of_a_language_selects_a_page() {
    let page = |_: &Asked, language: &str| {
        let page = Reply::html(format!("<p>In {language}</p>{}", book_links(8)));
        page.with("set-cookie", &format!("locale={language}; Path=/"))
    };
    let report = bilingual("en", page);
    assert_eq!(report["vars"]["COOKIES_VARIED"], "+ locale=en|de", "{report:#}");
    assert_eq!(report["vars"].get("COOKIES_PERSONAL"), None, "{report:#}");
    assert_eq!(report["vars"]["COOKIES_DROPPED"], "+ locale@/, locale@/books/*/", "{report:#}");
    assert_eq!(report["vars"]["HEADERS_NORMALIZED"], "+ accept-language=en|de", "{report:#}");
    assert_eq!(report["vars"]["HEADERS_VARIED"], "+ accept-language", "{report:#}");
}

/// As next-intl and Nuxt answer: pages in the default language have no prefix, and a visitor with the cookie of another language is
/// redirected. Each response has an id in a script.
#[test]
fn a_cookie_that_redirects_to_another_language_is_no_danger() {
    let report = Shop::start(|asked: &Asked| {
        let (is_german, chosen) = (asked.path.starts_with("/de/"), asked.cookies.contains("locale=de"));
        let prefers = !asked.cookies.contains("locale=") && asked.header("accept-language").starts_with("de");
        if !is_german && (chosen || prefers) {
            return Reply::status(307).with("location", &format!("/de{}", asked.path));
        }
        let language = if is_german { "de" } else { "en" };
        let links = format!("{}<a href='/de/'>Deutsch</a>", book_links(8));
        let script = format!("<script>id = 'r{}'</script>", asked.number);
        let page = Reply::html(format!("<html lang='{language}'><p>In {language}</p>{links}{script}</html>"));
        page.with("cache-control", "s-maxage=60").with("set-cookie", &format!("locale={language}; Path=/"))
    })
    .examine(&[]);
    assert_eq!(report["dangers"], serde_json::json!([]), "{report:#}");
    assert_eq!(report["vars"]["COOKIES_VARIED"], "+ locale=de|en", "{report:#}");
    assert!(report["vars"]["COOKIES_DROPPED"].as_str().unwrap().contains("locale@/books/*/"), "{report:#}");
    assert_eq!(report["vars"].get("PATHS_PERSONAL"), None, "{report:#}");
}

/// As most shops with a switch between languages: a link sets a cookie, and no page does.
#[test]
fn the_cookie_of_a_link_that_chooses_the_language_selects_a_page() {
    let page = |selects: bool| {
        move |asked: &Asked, language: &str| {
            let chosen = asked.path.strip_prefix("/choose/").map(|cookie| cookie.replacen('/', "=", 1));
            if let Some(cookie) = chosen {
                return Reply::status(302).with("location", "/").with("set-cookie", &format!("{cookie}; Path=/"));
            }
            let language = if selects { language } else { "en" };
            let links =
                ["locale/en", "locale/de", "ads/no"].map(|choice| format!("<a href='/choose/{choice}'>{choice}</a>"));
            let links = links.concat() + &book_links(8);
            Reply::html(format!("<html lang='{language}'><p>In {language}</p>{links}</html>"))
        }
    };
    let report = bilingual("en", page(true));
    assert_eq!(report["vars"]["COOKIES_VARIED"], "+ locale=de|en", "{report:#}");
    assert_eq!(report["vars"].get("COOKIES_PERSONAL"), None, "{report:#}");
    let report = bilingual("en", page(false));
    assert_eq!(report["vars"].get("COOKIES_VARIED"), None, "{report:#}");
}

/// A shop in which links choose the language and the currency. `read` returns the currency that the shop reads from the cookies.
fn with_currencies(read: impl Fn(&str) -> Option<&str> + Send + Sync + 'static) -> Value {
    Shop::start(move |asked: &Asked| {
        let chosen = asked.path.strip_prefix("/choose/").and_then(|choice| choice.split_once('/'));
        if let Some((name, value)) = chosen {
            let page = Reply::status(302).with("location", "/").with("set-cookie", &format!("{name}={value}; Path=/"));
            return page.with("set-cookie", &format!("{name}.sig=of-{value}; Path=/"));
        }
        let language = if asked.cookies.contains("locale=de") { "de" } else { "en" };
        let currency = read(&asked.cookies).unwrap_or("EUR");
        let links = ["locale/en", "locale/de", "currency/EUR", "currency/USD", "newsletter/USD"]
            .map(|choice| format!("<a rel=nofollow href='/choose/{choice}'>{choice}</a>"));
        let links = links.concat() + &book_links(8);
        Reply::html(format!("<html lang='{language}'><p>In {language}, 7 {currency}</p>{links}</html>"))
    })
    .examine(&[])
}

#[test]
fn the_cookies_of_links_that_choose_the_language_and_the_currency_select_a_page() {
    let report = with_currencies(|cookies| cookies.split("currency=").nth(1)?.get(..3));
    let rules = "+ locale=de|en, locale.sig, currency=EUR|USD, currency.sig";
    assert_eq!(report["vars"]["COOKIES_VARIED"], rules, "{report:#}");
    assert!(report["notes"].to_string().contains("the cookie currency selects the currency of pages"), "{report:#}");
}

/// As Koa with `keys`.
#[test]
fn a_signed_cookie_chooses_together_with_its_signature() {
    let report = with_currencies(|cookies| cookies.split("currency.sig=of-").nth(1)?.get(..3));
    assert!(
        report["vars"]["COOKIES_VARIED"].as_str().unwrap().contains("currency=EUR|USD, currency.sig"),
        "{report:#}"
    );
    let report = with_currencies(|_| None);
    assert!(!report["vars"]["COOKIES_VARIED"].as_str().unwrap().contains("currency"), "{report:#}");
}

/// As Django's `set_language` and most currencies: a form sets the cookie, and the doctor sends no form.
#[test]
fn a_cookie_that_a_form_sets_is_known_by_its_usual_name() {
    let shop = |language_cookie: &'static str| {
        let shop = Shop::start(move |asked: &Asked| {
            let value =
                |name: &str| asked.cookies.split("; ").find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
            let language = value(language_cookie).filter(|own| ["en", "de", "pt-br"].contains(own)).unwrap_or("en");
            let currency = value("currency").filter(|own| ["EUR", "USD"].contains(own)).unwrap_or("EUR");
            let options =
                ["en", "de", "pt-br", "nl", "EUR", "USD", "7"].map(|value| format!("<option value='{value}'>"));
            let form = format!("<form method=post action=/choose><select>{}</select></form>", options.concat());
            Reply::html(format!(
                "<html lang='{language}'><p>In {language}, 7 {currency}</p>{form}{}</html>",
                book_links(8)
            ))
        });
        shop.examine(&[])
    };
    let report = shop("django_language");
    let rules = "+ django_language=de|en|pt-br, currency=EUR|USD";
    assert_eq!(report["vars"]["COOKIES_VARIED"], rules, "{report:#}");
    assert_eq!(shop("invented")["vars"]["COOKIES_VARIED"], "+ currency=EUR|USD");
}

#[test]
fn a_cookie_that_only_records_the_language_is_no_choice() {
    let shop = Shop::start(|asked: &Asked| {
        let language = if asked.header("accept-language").starts_with("de") { "de" } else { "en" };
        let page = Reply::html(format!("<p>In {language}</p>{}", book_links(8)));
        page.with("set-cookie", &format!("seen={language}"))
    });
    let report = shop.examine(&[]);
    assert_eq!(report["vars"].get("COOKIES_VARIED"), None, "{report:#}");
}

#[test]
fn pages_for_phones_are_found() {
    let report = Shop::start(adaptive).examine(&[]);
    assert_eq!(report["vars"]["HEADERS_NORMALIZED"], "+ user-agent=Mobile", "{report:#}");
}

#[test]
fn a_header_with_a_rule_is_not_examined_again() {
    let shop = Shop::start(multilingual);
    let rule = "HEADERS_NORMALIZED=accept-language=en|de, user-agent=";
    let report = shop.examine(&["--var", rule]);
    assert_eq!(report["vars"]["HEADERS_NORMALIZED"], "accept-language=en|de, user-agent=");
    assert_eq!(kind(&report, "/books/*/")["warning"], Value::Null, "{report:#}");
    assert!(notes(&report, "accept-language").is_empty() && notes(&report, "user-agent").is_empty());
    assert!(shop.requests().iter().all(|asked| asked.header("accept-language").is_empty()));
}

#[test]
fn pages_that_differ_by_no_known_value_have_no_rule() {
    let report = Shop::start(|asked: &Asked| {
        let page = Reply::html(format!("<p>{}</p>{}", asked.header("user-agent"), book_links(3)));
        page.with("vary", "User-Agent").with("cache-control", "public, s-maxage=60")
    })
    .examine(&[]);
    assert_eq!(report["vars"].get("HEADERS_NORMALIZED"), None);
    assert!(notes(&report, "user-agent")[0].contains("list the values"), "{report:#}");
}

/// A shop that varies by `Accept`. `body` reads the header.
fn by_accept(control: &'static str, body: impl Fn(&str) -> String + Send + Sync + 'static) -> Shop {
    Shop::start(move |asked: &Asked| {
        let body = body(asked.header("accept"));
        let media_type = if body.starts_with('{') { "application/json" } else { "text/html" };
        let page = Reply::html(format!("{body}<b>{}</b>{}", asked.number, book_links(3)));
        page.with("content-type", media_type).with("vary", "Accept").with("cache-control", control)
    })
}

#[test]
fn browsers_that_accept_html_share_a_page_although_programs_get_their_own() {
    let page = |accept: &str| if accept == "application/json" { "{}".to_owned() } else { "<p>Page</p>".to_owned() };
    for control in ["private, max-age=0", "public, s-maxage=60"] {
        let report = by_accept(control, page).examine(&[]);
        assert_eq!(report["vars"]["HEADERS_NORMALIZED"], "+ accept=text/html", "{report:#}");
        assert!(notes(&report, "accept")[0].contains("Risk: a client that accepts HTML"), "{report:#}");
    }
}

#[test]
fn a_format_that_edgefront_could_not_keep_apart_prevents_the_rule() {
    for client in ["application/json, text/plain, */*", "text/vnd.turbo-stream.html, text/html, application/xhtml+xml"]
    {
        let page = move |accept: &str| if accept == client { "{}".to_owned() } else { "<p>Page</p>".to_owned() };
        let report = by_accept("private, max-age=0", page).examine(&[]);
        assert_eq!(report["vars"].get("HEADERS_NORMALIZED"), None, "{report:#}");
        assert!(notes(&report, "accept")[0].contains(client), "{report:#}");
    }
}

#[test]
fn the_types_of_images_that_change_a_page_are_found() {
    let best = |types: &'static [&'static str]| {
        move |accept: &str| {
            let image =
                types.iter().find(|kind| accept.contains(**kind)).map_or("jpeg", |kind| &kind["image/".len()..]);
            format!("<img src=/mug.{image}>")
        }
    };
    for (types, rule) in [
        (&["image/webp"][..], "+ accept=image/webp"),
        (&["image/avif"], "+ accept=image/avif"),
        (&["image/avif", "image/webp"], "+ accept=image/avif|image/webp"),
    ] {
        let report = by_accept("public, s-maxage=60", best(types)).examine(&[]);
        assert_eq!(report["vars"]["HEADERS_NORMALIZED"], rule, "{report:#}");
    }
}

#[test]
fn a_page_that_each_spelling_of_accept_changes_has_no_rule() {
    let report = by_accept("public, s-maxage=60", |accept| format!("<p>{accept}</p>")).examine(&[]);
    assert_eq!(report["vars"].get("HEADERS_NORMALIZED"), None);
    assert!(notes(&report, "accept")[0].contains("list the values"), "{report:#}");
}

#[test]
fn accept_is_compared_only_if_pages_vary_by_it() {
    let shop = Shop::start(|_| Reply::html(book_links(3)).with("cache-control", "public, s-maxage=60"));
    shop.examine(&[]);
    assert!(shop.requests().iter().all(|asked| asked.header("accept") != "*/*"));
}
