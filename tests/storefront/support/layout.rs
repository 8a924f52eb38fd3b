//! Translates commands on keys of the book's layout into the store's layout, so that a test reads the same in both. The
//! key `recent:` becomes that of the token's shard if the command names a token, and otherwise those of all shards.

use edgefront::schema::{
    families::{FAMILIES, FamilyRow, Group},
    keys::Keys,
    shard::Shard,
    token::Token,
};
use serde_json::{Value, json};

/// Merges the replies to the translated commands into the reply to the original command.
type Gather = fn(&[&str], Vec<Value>) -> Value;

/// Translates a command of the book's layout into commands for `keys`. Also returns the function that merges their
/// replies.
pub fn translate(keys: Keys, command: &[&str]) -> (Vec<Vec<String>>, Gather) {
    let said = |command: &[&str]| command.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let [name, key, rest @ ..] = command else { return (vec![said(command)], only) };
    // A script's caller names keys of the store's layout.
    if *name == "EVAL" {
        return (vec![said(command)], only);
    }
    if *name != "KEYS" {
        assert_prefix(key);
    }
    if !keys.is_sharded() {
        return (vec![said(command)], only);
    }
    match *name {
        "KEYS" => (vec![said(command)], untagged),
        "COPY" => {
            let [other, rest @ ..] = rest else { panic!("COPY takes two keys") };
            let tag = tags(keys, name, key, &[]).remove(0);
            (vec![said(&[&[*name, &tagged(key, &tag), &tagged(other, &tag)], rest].concat())], only)
        }
        // The keys may have different slots.
        "DEL" | "EXISTS" => {
            let each =
                command[1..].iter().flat_map(|key| tags(keys, name, key, &[]).into_iter().map(move |tag| (key, tag)));
            (each.map(|(key, tag)| vec![(*name).to_owned(), tagged(key, &tag)]).collect(), gathered)
        }
        _ => {
            let words = |tag: &String| {
                let mut words = said(&[&[*name, &tagged(key, tag)], rest].concat());
                if *name == "ZRANGE" && !rest.contains(&"WITHSCORES") {
                    words.push("WITHSCORES".to_owned());
                }
                words
            };
            match &*tags(keys, name, key, rest) {
                [tag] => (vec![said(&[&[*name, &tagged(key, tag)], rest].concat())], only),
                tags => (tags.iter().map(words).collect(), gathered),
            }
        }
    }
}

/// The hash tags of a key, one for each place in which the key may be. The empty tag: the key has none.
fn tags(keys: Keys, command: &str, key: &str, rest: &[&str]) -> Vec<String> {
    let number = |shard: Shard| format!("{{{}}}", shard.number());
    let of_token = |text: &&str| Token::parse(text).map(|token| number(keys.shard_of(&token)));
    let everywhere = || keys.shards().map(number).collect::<Vec<_>>();
    match *rows(key) {
        [] => vec![String::new()],
        [row] if row.group != Group::Sessions => vec![row.group.tag().to_owned()],
        [FamilyRow { name: "{token}", family, .. }] => {
            let token = &key[family.prefix().len()..];
            vec![of_token(&token).expect("a token of ours: other code's are for Store::book")]
        }
        [_] => match rest.iter().find_map(of_token) {
            Some(tag) => vec![tag],
            None if ["HSET", "ZADD", "XADD", "SET"].contains(&command) => vec!["{0}".to_owned()],
            None => everywhere(),
        },
        // `order:{order}` and `once:{hash}` are in all shards, and in another group, too.
        ref rows => {
            let others = rows.iter().filter(|row| row.group != Group::Sessions);
            everywhere().into_iter().chain(others.map(|row| row.group.tag().to_owned())).collect()
        }
    }
}

/// Panics if `key` has a prefix that no family has, because nobody would read it.
fn assert_prefix(key: &str) {
    let is_known = FAMILIES.iter().any(|row| key.starts_with(row.family.prefix()));
    assert!(is_known || !key.contains(':'), "{key}: no family of the schema has this prefix");
}

/// The rows of the schema that describe `key`. Empty for a key without a colon, because every family's keys have one.
///
/// Panics if a key with a colon is in no family, or has a hash tag already.
fn rows(key: &str) -> Vec<&'static FamilyRow> {
    assert!(!key.contains(":{"), "{key}: name the key of the book's layout, or send the command to `aside`");
    let of_family = FAMILIES.iter().filter(|row| key.starts_with(row.family.prefix()));
    let (named, others): (Vec<_>, Vec<_>) = of_family.partition(|row| row.pattern() == key);
    let rows =
        if named.is_empty() { others.into_iter().filter(|row| row.name.starts_with('{')).collect() } else { named };
    assert!(!rows.is_empty() || !key.contains(':'), "{key}: no family of the schema has this key");
    rows
}

fn tagged(key: &str, tag: &str) -> String {
    match key.split_once(':') {
        Some((family, name)) => format!("{family}:{tag}{name}"),
        None => key.to_owned(),
    }
}

fn only(_: &[&str], mut answers: Vec<Value>) -> Value {
    answers.remove(0)
}

/// The keys without their hash tags, without duplicates.
fn untagged(command: &[&str], answers: Vec<Value>) -> Value {
    let keys: Vec<String> = serde_json::from_value(only(command, answers)).expect("a list of keys");
    let bare = |key: &String| match (key.find(":{"), key.find('}')) {
        (Some(start), Some(end)) => format!("{}:{}", &key[..start], &key[end + 1..]),
        _ => key.clone(),
    };
    let mut keys: Vec<_> = keys.iter().map(bare).collect();
    // Without the tag, a key of the family's bare name matches the pattern no more.
    if let Some(family) = command[1].strip_suffix("?*") {
        keys.retain(|key| key != family);
    }
    keys.sort();
    keys.dedup();
    json!(keys)
}

fn gathered(command: &[&str], answers: Vec<Value>) -> Value {
    let numbers = || answers.iter().map(|answer| answer.as_i64().expect("a number"));
    match command[0] {
        "TTL" | "PTTL" => json!(numbers().max()),
        "HGET" | "ZSCORE" | "GET" => answers.into_iter().find(|answer| !answer.is_null()).unwrap_or_default(),
        "ZRANGE" => {
            let lists =
                answers.into_iter().flat_map(|list| serde_json::from_value::<Vec<String>>(list).expect("pairs"));
            let words: Vec<_> = lists.collect();
            let mut pairs: Vec<_> =
                words.chunks(2).map(|pair| (pair[1].parse::<f64>().expect("a score"), pair)).collect();
            pairs.sort_by(|one, other| one.0.total_cmp(&other.0).then_with(|| one.1.cmp(other.1)));
            // A negative rank counts from the end: -1 is the last element.
            let place = |text: &str| match text.parse::<i64>().expect("a rank") {
                rank if rank < 0 => pairs.len().saturating_sub(usize::try_from(-rank).expect("a rank")),
                rank => usize::try_from(rank).expect("a rank"),
            };
            let end = (place(command[3]) + 1).min(pairs.len());
            let with_scores = if command.contains(&"WITHSCORES") { 2 } else { 1 };
            let range = pairs[place(command[2]).min(end)..end].iter();
            json!(range.flat_map(|(_, pair)| &pair[..with_scores]).collect::<Vec<_>>())
        }
        "XRANGE" | "HKEYS" | "HVALS" | "HGETALL" => {
            let mut all: Vec<_> = answers.iter().flat_map(|list| list.as_array().expect("a list")).cloned().collect();
            if command[0] == "XRANGE" {
                all.sort_by_key(|entry| entry[0].to_string());
            }
            json!(all)
        }
        _ => json!(numbers().sum::<i64>()),
    }
}
