//! Shops that write the id of a session into links and forms, for visitors without cookies.

use serde_json::{Value, json};

use super::support::{Asked, Reply, Shop, kind};

/// Links and a form with an id: in front of the query, such as `;jsessionid=…`, or at its end.
fn page(asked: &Asked, before: &str, behind: &str) -> Reply {
    let link = |number| format!("<a href='/book{before}?item={number}{behind}'>Book</a>");
    let links = (0..8).map(link).collect::<Vec<_>>().concat();
    let token = format!("<input type=hidden name=csrf value={}>", asked.number);
    Reply::html(format!("{links}<form method=post action='/cart{before}'>{token}</form>"))
}

fn id(asked: &Asked) -> String {
    format!("0A1B2C3D4E5F6071{:016X}", asked.number)
}

/// As Tomcat answers: an id in the links of a visitor without the cookie.
fn tomcat(asked: &Asked) -> Reply {
    if asked.cookies.contains("JSESSIONID=") {
        return page(asked, "", "");
    }
    let id = id(asked);
    page(asked, &format!(";jsessionid={id}"), "").with("set-cookie", &format!("JSESSIONID={id}; Path=/; HttpOnly"))
}

fn without_cookie(asked: &Asked) -> Reply {
    page(asked, &format!(";jsessionid={}", id(asked)), "")
}

fn in_parameter(asked: &Asked) -> Reply {
    let id = id(asked);
    page(asked, "", &format!("&osCsid={id}")).with("set-cookie", &format!("osCsid={id}; Path=/"))
}

fn rules(report: &Value) -> Vec<&str> {
    let kinds = report["kinds"].as_array().unwrap().iter();
    kinds.flat_map(|kind| kind["rules"].as_array().unwrap()).map(|rule| rule["variable"].as_str().unwrap()).collect()
}

#[test]
fn pages_whose_links_have_the_id_of_a_session_get_no_rule() {
    let shops: [fn(&Asked) -> Reply; 3] = [tomcat, without_cookie, in_parameter];
    for (index, shop) in shops.into_iter().enumerate() {
        let report = Shop::start(shop).examine(&[]);
        assert_eq!(report["hit_ratio_with_rules"], json!(0.0), "{index}: {report:#}");
        assert!(rules(&report).iter().all(|rule| *rule == "PATHS_PERSONAL"), "{index}: {report:#}");
        assert_eq!(kind(&report, "/book?item")["pages"], 8, "{index}: {report:#}");
        let notes = report["notes"].to_string();
        assert!(notes.contains("the addresses of links on") && notes.contains("use_trans_sid"), "{index}: {notes}");
    }
}
