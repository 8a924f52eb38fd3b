//! The Lua scripts: hashes, comments and the table of `docs/redis.md`.

use std::{collections::BTreeMap, fs};

use bytes::Bytes;
use edgefront::schema::{
    families::{FAMILIES, FamilyRow},
    scripts,
};
use sha1::{Digest, Sha1};

use super::document::{code, hold, read, table};

/// The file of a script.
fn source(name: &str) -> String {
    read(&format!("src/schema/scripts/{name}.lua"))
}

/// The first line of a script's comment.
fn purpose(source: &str) -> &str {
    source.lines().nth(1).and_then(|line| line.strip_prefix("-- ")).expect("a comment")
}

/// The line of the comment that names the keys.
fn keys_line(source: &str) -> &str {
    source.lines().find_map(|line| line.strip_prefix("-- KEYS ")).expect("a line of keys")
}

/// The keys that a script declares: `cart:T`.
fn keys(source: &str) -> impl Iterator<Item = String> {
    let words = keys_line(source).split([' ', '[', ']', '(', ')', '*']).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect::<Vec<_>>().into_iter()
}

#[test]
fn every_script_has_the_hash_of_its_text() {
    for script in scripts::ALL {
        let sha1 = format!("{:x}", Bytes::copy_from_slice(&Sha1::digest(script.source)));
        assert_eq!(script.sha1, sha1, "set the SHA-1 of {}.lua to the right-hand one", script.name);
        if !script.read_only_sha1.is_empty() {
            let sha1 = format!("{:x}", Bytes::copy_from_slice(&Sha1::digest(script.read_only_source())));
            assert_eq!(script.read_only_sha1, sha1, "as above, of the form that only reads");
        }
    }
}

#[test]
fn every_script_is_listed_and_documented() {
    let folder = "src/schema/scripts";
    let files: BTreeMap<_, _> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "lua"))
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap()))
        .collect();
    let listed: Vec<_> = scripts::ALL.iter().map(|script| script.name).collect();
    assert!(files.keys().eq(&listed), "{listed:?}");
    let statics = read("src/schema/scripts/mod.rs");
    for (name, source) in files {
        assert!(source.starts_with("#!lua flags=allow-key-locking\n"), "{name}: Upstash locks the whole database");
        for part in ["\n-- KEYS ", "\n-- ARGV ", "\n-- returns "] {
            assert!(source.contains(part), "{name}.lua must document {part:?}");
        }
        let purpose = purpose(&source);
        let documented = format!("/// {purpose}\npub static {}: Script = lua!(\"{name}\"", name.to_uppercase());
        assert!(purpose.ends_with('.') && statics.contains(&documented), "scripts/mod.rs must contain {documented}");
    }
}

#[test]
fn the_document_lists_every_script() {
    let row = |script: &&upstash_rest::Script| {
        let source = source(script.name);
        [code(script.name), purpose(&source).to_owned(), code(keys_line(&source))]
    };
    hold("docs/redis.md", "scripts", &table(["Script", "Purpose", "Keys"], scripts::ALL.iter().map(row)));
}

/// Compares a key of a script's comment (`cart:T`) with a family.
fn is_of(row: &FamilyRow, key: &str) -> bool {
    let pattern = row.pattern();
    if !pattern.ends_with('}') {
        return key == pattern;
    }
    key.strip_prefix(pattern.trim_end_matches(row.name)).is_some_and(|name| !name.is_empty())
}

#[test]
fn a_script_declares_every_key_that_it_writes() {
    for row in FAMILIES {
        for script in row.written_by.iter().filter(|name| name.chars().all(|letter| !letter.is_uppercase())) {
            assert!(
                keys(&source(script)).any(|key| is_of(row, &key)),
                "{script}.lua does not declare {}",
                row.pattern()
            );
        }
    }
}

#[test]
fn every_key_of_a_script_is_of_a_family() {
    for script in scripts::ALL {
        for key in keys(&source(script.name)) {
            assert!(FAMILIES.iter().any(|row| is_of(row, &key)), "{}.lua: {key}", script.name);
        }
    }
}

#[test]
fn the_worker_contains_only_the_code_of_a_script() {
    for script in scripts::ALL {
        let file = source(script.name);
        let lines = file.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with("--"));
        assert!(script.source.lines().eq(lines), "{}", script.name);
    }
}
