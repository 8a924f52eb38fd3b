//! The table of keys: it is complete, and `docs/redis.md` repeats it.

use std::{collections::BTreeSet, num::NonZeroU16};

use edgefront::{
    ports::time::Timestamp,
    schema::{
        families::{FAMILIES, FamilyRow, Group},
        ids::{ItemId, OrderId, RowId, Tag, UserId},
        keys::{JOBS, Keys, TRAFFIC, TRAFFIC_HOURS, TRAFFIC_MINUTES, TRAFFIC_TOTALS},
        scripts,
        token::Token,
    },
};

use super::document::{code, hold, table};

/// The hash of a page, and a stand-in for the hash of an idempotency key.
const HASH: &str = "0123456789abcdef";

#[test]
fn the_document_lists_every_key() {
    let row = |row: &FamilyRow| {
        let tag = match row.group {
            Group::Sessions => "shard".to_owned(),
            Group::Untagged => String::new(),
            group => code(group.tag()),
        };
        let content = row.content.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        let writers = row.written_by.iter().map(|writer| code(writer)).collect::<Vec<_>>().join(" ");
        [code(&row.pattern()), tag, row.kind.to_owned(), content, row.expires.to_owned(), writers]
    };
    let heads = ["Key", "Hash tag", "Type", "Content", "Expires", "Written by"];
    hold("docs/redis.md", "keys", &table(heads, FAMILIES.iter().map(row)));
}

#[test]
fn the_document_lists_every_id() {
    let rule = |error: edgefront::ports::error::Error| {
        let text = error.to_string();
        let (name, rule) = text.split_once(" must be ").expect("a rule");
        [code(name), rule.to_owned()]
    };
    let rules = [
        rule(ItemId::parse("").unwrap_err()),
        rule(RowId::parse("").unwrap_err()),
        rule(OrderId::parse("").unwrap_err()),
        rule(UserId::parse("").unwrap_err()),
        rule(Tag::parse("").unwrap_err()),
    ];
    hold("docs/api.md", "ids", &table(["Id", "Rule"], rules));
}

#[test]
fn every_row_is_written_by_a_script_or_a_command() {
    for row in FAMILIES {
        let is_script = |name: &str| scripts::ALL.iter().any(|script| script.name == name);
        let is_command = |name: &str| name.bytes().all(|byte| byte.is_ascii_uppercase());
        assert!(row.written_by.iter().all(|name| is_script(name) || is_command(name)), "{:?}", row.written_by);
    }
}

#[test]
fn every_row_is_a_key_and_every_key_has_a_row() {
    for shards in [1, 8] {
        let layout = Keys::new(NonZeroU16::new(shards).unwrap());
        let token = Token::new(Timestamp::from_millis(1_795_000_000_000)).unwrap();
        let shard = layout.shard_of(&token);
        let (user, item) = (UserId::parse("ada").unwrap(), ItemId::parse("mug").unwrap());
        let (order, row) = (OrderId::parse("A-1").unwrap(), RowId::parse("mug").unwrap());
        // The name of these keys is a hash of their argument.
        let unhashed = |key: String| key.replace(key.rsplit([':', '}']).next().expect("a name"), HASH);
        let made = BTreeSet::from([
            shard.login(),
            shard.recent(),
            shard.viewed(&token),
            shard.cart(&token),
            shard.sessions(&user),
            shard.devices(&user),
            shard.abandoned(),
            shard.cart_order(&order),
            unhashed(shard.idempotency("ada", "key")),
            layout.ranking(),
            layout.ranking_rescaled(),
            layout.previous_ranking(),
            layout.hourly_ranks(),
            unhashed(layout.view_idempotency("key")),
            layout.page(HASH),
            layout.variants(HASH),
            layout.render(HASH),
            layout.purged(),
            layout.pages(),
            layout.latest_purge(),
            layout.schedule(),
            layout.delay(),
            layout.row(&row),
            layout.flash_sale(&row),
            layout.holds(&row),
            layout.order(&order),
            layout.purchases(),
            layout.purchases_rescaled(),
            layout.bought_together(&item),
            layout.bought_after_viewing(&item),
            TRAFFIC.to_owned(),
            TRAFFIC_MINUTES.to_owned(),
            TRAFFIC_HOURS.to_owned(),
            TRAFFIC_TOTALS.to_owned(),
            JOBS.to_owned(),
        ]);
        let tagged = |row: &FamilyRow| {
            let pattern = row.pattern();
            let (prefix, name) = pattern.split_once(':').expect("a prefix");
            let name = match name {
                "{token}" => token.as_str(),
                "{user}" => "ada",
                "{item}" | "{row}" | "{sale}" => "mug",
                "{order}" => "A-1",
                "{hash}" => HASH,
                name => name,
            };
            let tag = match row.group {
                _ if shards == 1 => String::new(),
                Group::Sessions => format!("{{{}}}", shard.number()),
                group => group.tag().to_owned(),
            };
            format!("{prefix}:{tag}{name}")
        };
        assert_eq!(made, FAMILIES.iter().map(tagged).collect(), "{shards} shards");
    }
}
