//! Properties of the parsers for any bytes: the fuzz targets' own functions, for a bounded time, on what proptest makes
//! of their corpora. Findings of cargo-fuzz go into the corpus, and are tried here from then on.

use std::fs;

use proptest::{collection::vec, prelude::*, sample::Index, test_runner::TestRunner};

#[path = "../../../fuzz/src/lib.rs"]
mod properties;

const CASES: u32 = 2_000;

/// Bytes that mean something to one parser or another.
const SIGNS: &[u8] = b"\0\"#%&'*+,-./0:;<=>?@[\\]_{}\n\r\t \xc3\xa9\xff";

/// One change of a seed: a piece is repeated, or dropped, or gives way to other bytes.
#[derive(Debug, Clone)]
enum CartChange {
    Repeat(Index, Index),
    Drop(Index, Index),
    Put(Index, Vec<u8>),
}

fn change() -> impl Strategy<Value = CartChange> {
    let place = any::<Index>;
    let byte = prop_oneof![2 => prop::sample::select(SIGNS), 1 => any::<u8>()];
    prop_oneof![
        1 => (place(), place()).prop_map(|(one, other)| CartChange::Repeat(one, other)),
        1 => (place(), place()).prop_map(|(one, other)| CartChange::Drop(one, other)),
        3 => (place(), vec(byte, 0..4)).prop_map(|(place, bytes)| CartChange::Put(place, bytes)),
    ]
}

impl CartChange {
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
fn what_holds_of_the_parsers_holds_of_any_bytes() {
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
