//! Keys of any type, and the database as a whole.

use std::time::Duration;

use bytes::Bytes;

use super::{millis, read, write};
use crate::{
    command::{Command, Typed},
    reply::Expiry,
};

/// EXISTS: the number of these keys that exist.
#[must_use]
pub fn exists<K: AsRef<[u8]>>(keys: impl IntoIterator<Item = K>) -> Typed<u64> {
    Command::read("EXISTS").args(keys).into()
}

/// TYPE: `string`, `hash`, `list`, `set`, `zset` or `stream`; `none` if there is no such key.
#[must_use]
pub fn key_type(key: impl AsRef<[u8]>) -> Typed<String> {
    read("TYPE", key).into()
}

/// PTTL: the remaining lifetime of a key.
#[must_use]
pub fn pttl(key: impl AsRef<[u8]>) -> Typed<Expiry> {
    read("PTTL", key).into()
}

/// DEL: deletes keys. Replies with the number of deleted ones.
#[must_use]
pub fn del<K: AsRef<[u8]>>(keys: impl IntoIterator<Item = K>) -> Typed<u64> {
    Command::write("DEL").args(keys).into()
}

/// UNLINK: deletes keys and frees their memory later. Replies with the number of deleted keys.
#[must_use]
pub fn unlink<K: AsRef<[u8]>>(keys: impl IntoIterator<Item = K>) -> Typed<u64> {
    Command::write("UNLINK").args(keys).into()
}

/// PEXPIRE: lets a key expire after `ttl`, in whole milliseconds. Replies false if there is no such key. Repeatable.
#[must_use]
pub fn expire(key: impl AsRef<[u8]>, ttl: Duration) -> Typed<bool> {
    write("PEXPIRE", key).num(millis(ttl)).repeatable().into()
}

/// PERSIST: removes the expiry of a key. Replies true if it had one.
#[must_use]
pub fn persist(key: impl AsRef<[u8]>) -> Typed<bool> {
    write("PERSIST", key).into()
}

/// SCAN: some of the keys, and the cursor for the next call. Begin with `"0"`; the scan is complete when that comes
/// back. Filter it by `.arg("MATCH").arg(pattern)`.
#[must_use]
pub fn scan(cursor: impl AsRef<[u8]>) -> Typed<(String, Vec<Bytes>)> {
    read("SCAN", cursor).into()
}

/// DBSIZE: the number of keys.
#[must_use]
pub fn dbsize() -> Typed<u64> {
    Command::read("DBSIZE").into()
}

/// PING: `PONG`.
#[must_use]
pub fn ping() -> Typed<String> {
    Command::read("PING").into()
}
