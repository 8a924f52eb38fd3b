//! The Lua scripts as a whole: each is named by its hash, so hash and text must not drift apart.

use std::{collections::BTreeMap, fs};

use bytes::Bytes;
use edgefront::schema::scripts;
use sha1::{Digest, Sha1};

#[test]
fn every_script_has_the_hash_of_its_text() {
    for script in scripts::ALL {
        let sha1 = format!("{:x}", Bytes::copy_from_slice(&Sha1::digest(script.source)));
        assert_eq!(script.sha1, sha1, "the sha1 (right) of {}.lua", script.name);
    }
}

#[test]
fn every_script_is_listed_and_says_what_it_takes_and_returns() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/schema/scripts");
    let files: BTreeMap<_, _> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "lua"))
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap()))
        .collect();
    let listed: Vec<_> = scripts::ALL.iter().map(|script| script.name).collect();
    assert!(files.keys().eq(&listed), "{listed:?}");
    for (name, source) in files {
        assert!(source.starts_with("#!lua flags=allow-key-locking\n"), "{name}: Upstash locks the whole database");
        for part in ["\n-- KEYS ", "\n-- ARGV ", "\n-- returns "] {
            assert!(source.to_lowercase().contains(&part.to_lowercase()), "{name} does not say {part:?}");
        }
    }
}

#[test]
fn what_is_sent_of_a_script_are_its_lines_of_code() {
    for script in scripts::ALL {
        let path = format!("{}/src/schema/scripts/{}.lua", env!("CARGO_MANIFEST_DIR"), script.name);
        let file = fs::read_to_string(path).unwrap();
        let lines = file.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with("--"));
        assert!(script.source.lines().eq(lines), "{}", script.name);
    }
}
