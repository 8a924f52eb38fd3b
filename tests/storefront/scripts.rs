//! The Lua scripts as a whole: each is named by its hash, so hash and text must not drift apart.

use std::{collections::BTreeMap, fs};

use bytes::Bytes;
use edgefront::scripts;
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
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/scripts");
    let files: BTreeMap<_, _> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap()))
        .collect();
    let listed: BTreeMap<_, _> =
        scripts::ALL.iter().map(|script| (script.name.to_owned(), script.source.to_owned())).collect();
    assert_eq!(files, listed);
    for (name, source) in files {
        assert!(source.starts_with("#!lua flags=allow-key-locking\n"), "{name}: Upstash locks the whole database");
        for part in ["\n-- KEYS ", "\n-- ARGV ", "\n-- returns "] {
            assert!(source.to_lowercase().contains(&part.to_lowercase()), "{name} does not say {part:?}");
        }
    }
}
