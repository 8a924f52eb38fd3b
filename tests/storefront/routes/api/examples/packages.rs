//! The lines of `docs/api.md` that use the packages of `integrations/`, run in the order of the page.

use std::{env, ffi::OsString, fs};

use serde_json::{Value, json};
use tokio::process::Command;

use super::{super::contract, open};
use crate::support::{SERVICE_KEY, Shop, set_cookie};

/// The browser sends the cookie and `Sec-Fetch-Site`. After each line of the page, `report` prints the calls.
const JAVASCRIPT: &str = r"
import { createClient } from 'ROOT/integrations/javascript/client/src/index.js';
import { Service } from 'ROOT/integrations/javascript/origin/src/index.js';
const send = globalThis.fetch;
let calls = [];
globalThis.fetch = async (url, options) => {
  const headers = new Headers(options.headers);
  if (!headers.has('authorization')) {
    headers.set('cookie', process.env.COOKIE);
    headers.set('sec-fetch-site', 'same-origin');
  }
  const response = await send(url, { ...options, headers });
  calls.push([options.method, new URL(url).pathname, response.status]);
  return response;
};
const edge = createClient({ base: `${process.env.SHOP}/_edge/v1` });
const service = new Service({ url: process.env.SHOP, key: process.env.KEY, pauses: [] });
const report = async (number) => {
  await service.flush();
  console.log(JSON.stringify({ number, calls }));
  calls = [];
};
const names = [...Object.keys(edge), ...Object.getOwnPropertyNames(Service.prototype)];
console.log(JSON.stringify(names.filter((name) => !['constructor', 'flush', 'request'].includes(name))));
";

const PYTHON: &str = r#"
import json, os, sys, urllib.parse, urllib.request
sys.path.insert(0, "ROOT/integrations/python/src")
from edgefront.service import Service
service = Service(os.environ["SHOP"], os.environ["KEY"], pauses=())
send, calls = service._opener.open, []
def record(request, **options):
    response = send(request, **options)
    calls.append([request.method, urllib.parse.urlsplit(request.full_url).path, response.status])
    return response
service._opener.open = record
def report(number):
    service.flush()
    print(json.dumps({"number": number, "calls": calls}))
    calls.clear()
print(json.dumps([name for name in dir(Service) if name[0] != "_" and name != "flush"]))
"#;

/// A language of the page.
struct Language {
    /// The mark of its blocks.
    block: &'static str,
    comment: &'static str,
    /// Runs before the lines.
    prelude: &'static str,
    report: fn(usize) -> String,
    program: OsString,
    /// The option of `program` before the text of a program.
    options: &'static [&'static str],
}

#[tokio::test]
async fn every_call_of_the_javascript_packages_has_a_line_that_works() {
    check(&Language {
        block: "```js",
        comment: "  // ",
        prelude: JAVASCRIPT,
        report: |number| format!("await report({number});\n"),
        program: env::var_os("EDGEFRONT_NODE").unwrap_or_else(|| "node".into()),
        options: &["--input-type=module", "--eval"],
    })
    .await;
}

mod python {
    use super::*;

    #[tokio::test]
    async fn every_call_of_the_python_package_has_a_line_that_works() {
        check(&Language {
            block: "```python",
            comment: "  # ",
            prelude: PYTHON,
            report: |number| format!("report({number})\n"),
            program: "python3".into(),
            options: &["-c"],
        })
        .await;
    }
}

async fn check(language: &Language) {
    let shop = open().await;
    let page = fs::read_to_string("docs/api.md").expect("the page");
    let lines = calls(&page, language);
    let printed = run(&shop, language, &lines).await;
    let mut printed = printed.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));

    let names = printed.next().expect("the names of the calls");
    for name in names.as_array().expect("names").iter().filter_map(Value::as_str) {
        assert!(
            lines.iter().any(|(line, _)| line.contains(&format!(".{name}("))),
            "docs/api.md has no line for {name}"
        );
    }
    for (number, (line, operation)) in lines.iter().enumerate() {
        let report = printed.next().unwrap_or_else(|| panic!("{line}: failed"));
        assert_eq!(report["number"], number);
        let calls = report["calls"].as_array().expect("calls");
        let [call] = &calls[..] else { panic!("{line}: {report}") };
        let method = call[0].as_str().expect("a method").parse().expect("a method");
        let path = call[1].as_str().expect("a path").trim_start_matches("/_edge/v1");
        assert_eq!(contract::operation(&method, path), Some(operation.clone()), "{line}: {call}");
        assert!(call[2].as_u64().is_some_and(|status| status < 300), "{line}: {call}");
    }
}

/// The calls in the blocks of a language, each with the operation that its comment names.
fn calls(page: &str, language: &Language) -> Vec<(String, String)> {
    let mark = format!("{}\n", language.block);
    let blocks = page.split(&mark).skip(1);
    let lines = blocks.flat_map(|block| block.split("```").next().unwrap_or_default().lines());
    let calls = lines.filter_map(|line| {
        let (line, operation) = line.split_once(language.comment)?;
        let (method, path) = operation.split_once(' ').unwrap_or_else(|| panic!("{line}: no method"));
        Some((line.to_owned(), format!("/paths/{}/{}", path.replace('/', "~1"), method.to_ascii_lowercase())))
    });
    calls.collect()
}

/// Runs the lines for a visitor who is signed in, and returns the output.
async fn run(shop: &Shop, language: &Language, lines: &[(String, String)]) -> String {
    let login = shop.client.post(format!("{}/_edge/v1/sessions", shop.url)).bearer_auth(SERVICE_KEY);
    let login = login.json(&json!({"user": "ada"})).send().await.expect("a login");
    let cookie = set_cookie(&login);
    let root = env::current_dir().expect("a directory");
    let mut program = language.prelude.replace("ROOT", &root.to_string_lossy());
    for (number, (line, _)) in lines.iter().enumerate() {
        let report = (language.report)(number);
        program.extend([line.as_str(), "\n", report.as_str()]);
    }
    let mut command = Command::new(&language.program);
    command.args(language.options).arg(program).envs([("SHOP", shop.url.as_str()), ("KEY", SERVICE_KEY)]);
    command.env("COOKIE", cookie).env("no_proxy", "*").env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().await.expect("the program of the language");
    eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}
