//! Runs the functions of the fuzz targets for a bounded time, on the inputs of their corpora and on mutations of them.
//! Add each finding of cargo-fuzz to the corpus, so that every run of the tests checks it.

use std::fs;

use proptest::{collection::vec, prelude::*, sample::Index, test_runner::TestRunner};

#[path = "../../../fuzz/src/lib.rs"]
mod properties;

const CASES: u32 = 2_000;

/// Bytes that are special in at least one parser.
const SIGNS: &[u8] = b"\0\"#%&'*+,-./0:;<=>?@[\\]_{}\n\r\t \xc3\xa9\xff";

/// A mutation of a seed: repeats a piece, drops a piece, or replaces a piece by other bytes.
#[derive(Debug, Clone)]
enum SeedChange {
    Repeat(Index, Index),
    Drop(Index, Index),
    Put(Index, Vec<u8>),
}

fn change() -> impl Strategy<Value = SeedChange> {
    let place = any::<Index>;
    let byte = prop_oneof![2 => prop::sample::select(SIGNS), 1 => any::<u8>()];
    prop_oneof![
        1 => (place(), place()).prop_map(|(one, other)| SeedChange::Repeat(one, other)),
        1 => (place(), place()).prop_map(|(one, other)| SeedChange::Drop(one, other)),
        3 => (place(), vec(byte, 0..4)).prop_map(|(place, bytes)| SeedChange::Put(place, bytes)),
    ]
}

impl SeedChange {
    fn make(&self, data: &mut Vec<u8>) {
        let places = data.len() + 1;
        let piece = |one: &Index, other: &Index| {
            let (one, other) = (one.index(places), other.index(places));
            one.min(other)..one.max(other)
        };
        match self {
            Self::Repeat(one, other) => data.extend_from_within(piece(one, other)),
            Self::Drop(one, other) => drop(data.drain(piece(one, other))),
            Self::Put(place, bytes) => {
                let place = place.index(places);
                let end = (place + bytes.len()).min(data.len());
                data.splice(place..end, bytes.iter().copied());
            }
        }
    }
}

#[test]
fn the_properties_of_the_parsers_hold_for_any_bytes() {
    for (name, property) in properties::ALL {
        let folder = format!("fuzz/corpus/{name}");
        let files = fs::read_dir(folder).unwrap().map(|file| fs::read(file.unwrap().path()).unwrap());
        let seeds: Vec<_> = files.collect();
        assert!(!seeds.is_empty(), "{name}");
        for seed in &seeds {
            property(seed);
        }

        let changed = (prop::sample::select(seeds), vec(change(), 1..6)).prop_map(|(mut data, changes)| {
            for change in &changes {
                change.make(&mut data);
            }
            data
        });
        let data = prop_oneof![4 => changed, 1 => vec(any::<u8>(), 0..200)];
        let config = ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() };
        let outcome = TestRunner::new(config).run(&data, |data| {
            property(&data);
            Ok(())
        });
        outcome.unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
    }
}
