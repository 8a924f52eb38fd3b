//! The configuration: the table of variables is complete, and the documents repeat it.

use std::{cell::RefCell, collections::BTreeSet};

use edgefront::config::{
    Config, ConfigErrors,
    variables::{SECRETS, VARIABLES, Variable},
};

use http::Method;
use serde_json::{Value, json};

use crate::{
    routes::api::{log_in, service},
    schema::document::{code, hold, read, table},
    support::{Reply, Shop},
};

/// A variable with the lines of its meaning.
type Row = (&'static Variable, &'static [&'static str]);

/// The meaning as one paragraph.
fn meaning(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// The comment above a variable in `wrangler.toml` and in `.dev.vars.example`.
fn comment((variable, lines): &Row) -> String {
    format!("#{}\n# Value: {}.\n", lines.join("\n#"), variable.allowed)
}

/// Reads the configuration with one variable changed, and the secrets without which no Worker starts.
fn config(variable: &str, value: &str) -> Result<Config, ConfigErrors> {
    Config::from_lookup(|name| match name {
        _ if name == variable => Some(value.to_owned()),
        "UPSTASH_REDIS_REST_URL" => Some("http://127.0.0.1".to_owned()),
        "UPSTASH_REDIS_REST_TOKEN" => Some("token".to_owned()),
        "SESSION_KEYS" => Some("0123456789abcdef0123456789abcdef".to_owned()),
        _ => None,
    })
}

/// Numbers reach commands and scripts of Redis. None of them may fail on the largest value.
#[tokio::test]
async fn the_largest_numbers_work() {
    let numbers = VARIABLES.iter().map(|(variable, _)| variable).filter(|variable| variable.max > 0);
    let numbers = numbers.filter(|variable| !["SHARDS", "READ_REGIONS"].contains(&variable.name));
    let values: Vec<_> = numbers.map(|variable| (variable.name, variable.max.to_string())).collect();
    let mut variables: Vec<_> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
    variables.push(("ROWS_URL", "{origin}/rows"));
    let shop = Shop::native(&variables).await;
    shop.origin.answer(Reply::html(r#"[{"id":"mug"}]"#));
    let order = json!({"order_id": "1", "items": [{"id": "mug", "quantity": 1}], "user": "ada"});
    let mut ada = log_in(&shop, "ada").await;

    for item in ["mug", "cup"] {
        assert_eq!(shop.visit(&format!("/products/{item}")).await.status(), 200);
        assert_eq!(ada.put(&format!("/cart/items/{item}"), &json!({"quantity": 1})).await.status, 200);
        shop.store.raw(&["ZADD", "viewed:", "-9", item]).await;
    }
    assert_eq!(service(&shop, Method::PUT, "/rows/mug/schedule", Some(&json!({"every": 60}))).await.status, 200);
    assert_eq!(service(&shop, Method::POST, "/orders", Some(&order)).await.status, 204);
    shop.store.raw(&["SET", "rescaled:", "-4000000000"]).await;
    for job in ["clean-sessions", "refresh-rows", "rescale", "roll-up"] {
        let report = service(&shop, Method::POST, &format!("/jobs/{job}"), None).await;
        assert_eq!((report.status, &report.json["error"]), (200, &Value::Null), "{job}: {report:?}");
    }
    for path in ["/stats", "/ranking", "/traffic", "/items/mug/related?by=bought"] {
        assert_eq!(service(&shop, Method::GET, path, None).await.status, 200, "{path}");
    }
    shop.settled().await;
    assert_eq!(service(&shop, Method::GET, "/stats", None).await.json["sessions"], 1);
    assert!(!shop.logs().iter().any(|line| line.contains("refused")), "{:?}", shop.logs());
}

#[test]
fn the_document_lists_every_variable() {
    let row = |(variable, lines): &Row| {
        [code(variable.name), code(variable.default), variable.allowed.to_owned(), meaning(lines)]
    };
    let variables = table(["Variable", "Default", "Value", "Meaning"], VARIABLES.iter().map(row));
    hold("docs/configuration.md", "variables", &variables);
}

#[test]
fn the_document_names_every_variable_under_a_task() {
    let document = read("docs/configuration.md");
    let (_, rest) = document.split_once("\n## Variables by task\n").expect("the heading");
    let (tasks, _) = rest.split_once("\n## ").expect("the next heading");
    let names = VARIABLES.iter().map(|(variable, _): &Row| code(variable.name));
    let missing: Vec<_> = names.filter(|name| !tasks.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_document_lists_every_secret() {
    let row = |(variable, lines): &Row| [code(variable.name), variable.allowed.to_owned(), meaning(lines)];
    hold("docs/configuration.md", "secrets", &table(["Secret", "Value", "Meaning"], SECRETS.iter().map(row)));
}

#[test]
fn the_document_lists_every_rate_limit_of_wrangler_toml() {
    let file = read("wrangler.toml");
    let rows = file.split("\n[[ratelimits]]\n").collect::<Vec<_>>();
    let rows = rows.windows(2).map(|pair| {
        let comment = pair[0].lines().rev().take_while(|line| line.starts_with("# ")).map(|line| &line[2..]);
        let mut lines: Vec<_> = comment.collect();
        lines.reverse();
        let value = |key: &str, ends: &[char]| {
            let value = pair[1].split_once(&format!("{key} = ")).expect("the key").1;
            value.split(ends).next().expect("its value").trim_matches(['"', ' ']).to_owned()
        };
        let limit = format!("{} in {} s", value("limit", &[',']), value("period", &['}']));
        [code(&value("name", &['\n'])), limit, lines.join(" ")]
    });
    hold("docs/configuration.md", "limits", &table(["Binding", "Limit", "What it counts"], rows));
}

#[test]
fn wrangler_toml_explains_every_variable() {
    let file = read("wrangler.toml");
    for row in VARIABLES {
        let text = format!("\n{}{} = \"", comment(row), row.0.name);
        assert!(file.contains(&text), "wrangler.toml must contain{text}");
    }
    let section = file.split_once("\n[vars]\n").expect("variables").1.split("\n[").next().expect("their end");
    let listed: Vec<_> = section.lines().filter_map(|line| line.split_once(" = \"")).map(|(name, _)| name).collect();
    assert_eq!(listed, VARIABLES.iter().map(|(variable, _)| variable.name).collect::<Vec<_>>());
}

#[test]
fn dev_vars_example_explains_every_secret() {
    let file = read(".dev.vars.example");
    for row in SECRETS {
        let text = format!("\n{}# {}=", comment(row), row.0.name);
        assert!(file.contains(&text), ".dev.vars.example must contain{text}");
    }
}

#[test]
fn every_row_is_read_at_the_start_and_nothing_else_is() {
    let read = RefCell::new(BTreeSet::new());
    let nothing = Config::from_lookup(|name| {
        read.borrow_mut().insert(name.to_owned());
        None
    });
    assert!(nothing.is_err(), "there are no secrets");
    let rows: BTreeSet<_> = VARIABLES.iter().chain(SECRETS).map(|(variable, _)| variable.name.to_owned()).collect();
    assert_eq!(read.into_inner(), rows);
}

#[test]
fn every_default_is_the_value_of_an_unset_variable() {
    let unset = config("", "").unwrap();
    for (variable, _) in VARIABLES {
        assert_eq!(config(variable.name, variable.default).unwrap(), unset, "{}", variable.name);
        assert_eq!(config(variable.name, " ").unwrap(), unset, "{}", variable.name);
    }
}

#[test]
fn every_number_has_the_range_of_its_row() {
    for (variable, _) in VARIABLES {
        let &Variable { name, min, max, allowed, .. } = *variable;
        if max == 0 {
            continue;
        }
        assert!(allowed.contains(&min.to_string()), "{name}: {allowed}");
        let is_allowed = |value: &str| {
            let errors = config(name, value).err().map(|errors| errors.to_string());
            assert!(errors.iter().all(|error| error.starts_with(&format!("{name} is \"{value}\""))), "{errors:?}");
            errors.is_none()
        };
        assert!(is_allowed(&min.to_string()), "{name}: {min}");
        assert!(!is_allowed(&(i128::from(min) - 1).to_string()), "{name} below {min}");
        assert!(!is_allowed(&(u128::from(max) + 1).to_string()), "{name} above {max}");
        assert!(max == u64::MAX || is_allowed(&max.to_string()), "{name}: {max}");
    }
}

#[test]
fn every_secret_has_the_length_of_its_row() {
    for (variable, _) in SECRETS {
        let least = usize::try_from(variable.min).unwrap();
        if least == 0 {
            continue;
        }
        assert!(config(variable.name, &"a".repeat(least)).is_ok(), "{}", variable.name);
        assert!(config(variable.name, &"a".repeat(least - 1)).is_err(), "{}", variable.name);
    }
}
