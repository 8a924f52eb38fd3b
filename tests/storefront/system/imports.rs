//! The import rules of `ARCHITECTURE.md`, checked against every `crate::` path of `src`.

use std::{fs, path::Path};

/// The modules of `src`, from the platform inwards. A module imports only itself and modules after it.
const ORDER: [&str; 15] = [
    "edge",
    "routes",
    "jobs",
    "page_cache",
    "proxy",
    "demo",
    "metrics",
    "ranking",
    "orders",
    "carts",
    "sessions",
    "row_cache",
    "config",
    "schema",
    "ports",
];

/// The code that sees `App`.
const SEES_APP: [&str; 6] = ["lib.rs", "edge/", "routes/", "jobs/", "page_cache/execute/", "proxy/"];

/// The code of each source file below `directory`, without comment lines; paths are relative to `src`.
fn sources(directory: &Path) -> Vec<(String, String)> {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let sources = entries.flat_map(|path| {
        if path.is_dir() {
            return sources(&path);
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            return Vec::new();
        }
        let text = fs::read_to_string(&path).expect("the file is readable");
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        let name = path.strip_prefix(root()).expect("a file of src").to_str().expect("a name");
        vec![(name.to_owned(), code)]
    });
    sources.collect()
}

fn root() -> &'static Path {
    Path::new("src")
}

/// The first segment behind each `crate::`; a group `crate::{a::b, c::{d, e}}` yields `a` and `c`.
fn imports(code: &str) -> Vec<String> {
    let name = |path: &str| path.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let paths = code.split("crate::").skip(1);
    let names = paths.flat_map(|path| {
        let Some(group) = path.strip_prefix('{') else { return vec![name(path)] };
        let mut depth = 0;
        let mut is_behind_end = false;
        let members = group.split(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            is_behind_end |= depth < 0;
            c == ',' && depth == 0 && !is_behind_end
        });
        members.map(name).collect()
    });
    names.filter(|name| !name.is_empty()).collect()
}

#[test]
fn a_module_imports_only_modules_below_it() {
    let place = |module: &str| ORDER.iter().position(|other| *other == module);
    for (file, code) in sources(root()) {
        let module = file.split(['/', '.']).next().expect("a module");
        // The crate's root builds `App` from all parts.
        if module == "lib" {
            continue;
        }
        let own = place(module).unwrap_or_else(|| panic!("{module} is missing in ORDER"));
        for import in imports(&code).iter().filter(|import| *import != "App") {
            assert!(place(import).is_some_and(|place| place >= own), "{file} imports {import}");
        }
    }
}

#[test]
fn only_the_layers_that_execute_requests_see_app() {
    for (file, code) in sources(root()) {
        let may_see = SEES_APP.iter().any(|layer| file.starts_with(layer));
        assert!(may_see || !imports(&code).iter().any(|import| import == "App"), "{file} imports App");
    }
}

#[test]
fn the_platform_is_named_in_edge_only() {
    for (file, code) in sources(root()) {
        assert!(file.starts_with("edge/") || !code.contains("worker::"), "{file} names the platform");
    }
}

#[test]
fn the_caching_policy_imports_nothing_of_edgefront() {
    for (file, code) in sources(&root().join("page_cache/policy")) {
        assert_eq!(imports(&code), [""; 0], "{file}");
        assert!(!code.contains("super::super"), "{file}");
    }
}
