//! V1 Encoding and injection: names and texts that are also markup, script or SQL.

use std::{fs, path::PathBuf};

use http::StatusCode;

use crate::{
    demo::person::{PASSWORD, Person},
    support::Shop,
};

const NAME: &str = r#"</title><script>alert(1)</script>"'><img src=x onerror=alert(2)>{{7*7}}"#;
const MUG: &str = "enamel-mug-sage";

async fn open() -> Shop {
    Shop::workerd(&[("ORIGIN_URL", ""), ("ROWS_TABLE", "inventory")]).await
}

/// Nothing of [`NAME`] has become markup.
fn assert_plain(page: &str, what: &str) {
    for markup in ["<script>alert", "<img src=x", "\"'>", "</title><"] {
        assert!(!page.contains(markup), "{what}: {page}");
    }
}

/// V1.2.1, V1.2.2, V1.2.3: a product's name is text in every page, attribute and script that contains it.
#[tokio::test]
async fn a_products_name_in_workerd_is_text_everywhere() {
    let shop = open().await;
    let name = NAME.replace('\'', "''");
    shop.sql(&format!("UPDATE products SET name = '{name}', description = '{name}' WHERE id = '{MUG}'")).await;
    shop.sql(&format!("UPDATE categories SET name = '{name}', blurb = '{name}' WHERE id = 'tableware'")).await;
    let person = Person::at(&shop);
    person.add(MUG, 1).await;
    let mut shown = 0;
    for path in
        ["/", "/products/enamel-mug-sage", "/?item=enamel-mug-sage", "/categories/tableware", "/cart", "/checkout"]
    {
        let page = person.get(path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        assert_plain(&page.text, path);
        shown += page.text.matches("&#60;script&#62;alert(1)").count();
        assert!(page.headers["content-security-policy"].to_str().unwrap().contains("default-src 'self'"));
    }
    assert!(shown >= 5, "{shown}");
    let cards = person.get(&format!("/products.json?ids={MUG}")).await;
    assert!(cards.headers["content-type"].to_str().unwrap().starts_with("application/json"));
    assert_eq!(cards.headers["x-content-type-options"], "nosniff");
    let cards: serde_json::Value = serde_json::from_str(&cards.text).unwrap();
    assert!(cards.to_string().contains("<script>alert(1)"), "to the letter, where nothing is markup");
}

/// V1.2.1, V1.2.4: a visitor's input is text, in pages and in SQL.
#[tokio::test]
async fn input_in_workerd_is_text_in_pages_and_in_sql() {
    const SQL: &str = "x'); DROP TABLE users; -- \" OR 1=1";
    let shop = open().await;
    let tables = "SELECT count(*) AS n FROM sqlite_master WHERE type = 'table'";
    let before = shop.sql(tables).await;
    let person = Person::at(&shop);
    for text in [NAME, SQL] {
        let fields = [("name", text), ("email", "ada@example.org"), ("password", "short"), ("next", text)];
        let page = person.post("/signup", &fields).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_plain(&page.text, "signup");
        let fields = [("email", text), ("password", PASSWORD), ("next", text)];
        assert_plain(&person.post("/login", &fields).await.text, "login");
        let encoded: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
        for path in
            ["/login?next=", "/categories/", "/products/", "/?item=", "/orders/", "/products.json?ids=", "/flash/"]
        {
            let page = person.get(&format!("{path}{}", encoded.replace('+', "%20"))).await;
            assert!(!page.status.is_server_error(), "{path}: {}", page.status);
            assert_plain(&page.text, path);
        }
    }
    let name = SQL;
    let signed_up =
        person.post("/signup", &[("name", name), ("email", "eve@example.org"), ("password", PASSWORD)]).await;
    assert_eq!(signed_up.status, StatusCode::SEE_OTHER, "{}", signed_up.text);
    assert_eq!(shop.sql(tables).await, before);
    assert_eq!(shop.sql("SELECT name FROM users").await, [serde_json::json!({"name": name})]);
    let page = person.post("/login", &[("email", "' OR 1=1 --@example.org"), ("password", PASSWORD)]).await;
    assert_ne!(page.status, StatusCode::SEE_OTHER);
}

/// V1.2.4: SQL is fixed text. Only two parts are inserted: the name of a table, which is a checked identifier
/// (`ROWS_TABLE`), and the name of a column, which is a constant.
#[test]
fn no_sql_is_built_from_input() {
    let mut found = Vec::new();
    let mut directories = vec![PathBuf::from("src")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let made = text.split("format!(").skip(1).filter_map(|call| call.split(')').next());
            let words = ["SELECT ", "INSERT ", "UPDATE ", "DELETE FROM", "WHERE "];
            found.extend(made.filter(|call| words.iter().any(|word| call.contains(word))).map(|_| path.clone()));
        }
    }
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|path| path.ends_with("row_cache/source.rs")), "{found:?}");
}

/// V3.2.2: scripts show data as text only.
#[test]
fn no_script_turns_text_into_markup() {
    let mut scripts = 0;
    for directory in ["assets", "assets/dashboard"] {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "js") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            scripts += 1;
            for sink in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
                "setHTMLUnsafe",
            ] {
                // Holes are filled with the origin's HTML, which is part of the page anyway.
                let is_origins = path.ends_with("holes.js") && ["outerHTML", "setHTMLUnsafe"].contains(&sink);
                assert!(is_origins || !text.contains(sink), "{}: {sink}", path.display());
            }
        }
    }
    assert!(scripts > 3, "{scripts}");
}
