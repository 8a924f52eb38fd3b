//! Strings.

use std::time::Duration;

use bytes::Bytes;

use super::{millis, read, with_pairs, write};
use crate::command::{Command, Typed};

/// GET: the value, or None if there is no such key.
#[must_use]
pub fn get(key: impl AsRef<[u8]>) -> Typed<Option<Bytes>> {
    read("GET", key).into()
}

/// MGET: the value of each key.
#[must_use]
pub fn mget<K: AsRef<[u8]>>(keys: impl IntoIterator<Item = K>) -> Typed<Vec<Option<Bytes>>> {
    Command::read("MGET").args(keys).into()
}

/// STRLEN: the length of a value in bytes, 0 if there is no such key.
#[must_use]
pub fn strlen(key: impl AsRef<[u8]>) -> Typed<u64> {
    read("STRLEN", key).into()
}

/// SET without an expiry. Repeatable.
#[must_use]
pub fn set(key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Typed<()> {
    write("SET", key).arg(value).repeatable().into()
}

/// SET that expires after `ttl`, in whole milliseconds, at least 1. Repeatable.
#[must_use]
pub fn set_ex(key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, ttl: Duration) -> Typed<()> {
    write("SET", key).arg(value).arg("PX").num(millis(ttl)).repeatable().into()
}

/// SETNX: sets a key that does not exist. Replies true if it did so.
#[must_use]
pub fn set_nx(key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Typed<bool> {
    write("SETNX", key).arg(value).into()
}

/// SET with NX, that expires after `ttl`, in whole milliseconds, at least 1: takes a lock. None if the key exists.
#[must_use]
pub fn set_nx_ex(key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, ttl: Duration) -> Typed<Option<()>> {
    write("SET", key).arg(value).arg("NX").arg("PX").num(millis(ttl)).into()
}

/// MSET: sets several keys at once. Repeatable.
#[must_use]
pub fn mset<K: AsRef<[u8]>, V: AsRef<[u8]>>(pairs: impl IntoIterator<Item = (K, V)>) -> Typed<()> {
    with_pairs(Command::write("MSET"), pairs).repeatable().into()
}

/// GETDEL: deletes a key. Replies with its value, or None if there was no such key.
#[must_use]
pub fn getdel(key: impl AsRef<[u8]>) -> Typed<Option<Bytes>> {
    write("GETDEL", key).into()
}

/// APPEND: appends to a value. Replies with the new length, bytes.
#[must_use]
pub fn append(key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Typed<u64> {
    write("APPEND", key).arg(value).into()
}

/// INCR: adds 1. Replies with the new number.
#[must_use]
pub fn incr(key: impl AsRef<[u8]>) -> Typed<i64> {
    write("INCR", key).into()
}

/// INCRBY: adds to a number. Replies with the new number.
#[must_use]
pub fn incr_by(key: impl AsRef<[u8]>, increment: i64) -> Typed<i64> {
    write("INCRBY", key).num(increment).into()
}

/// INCRBYFLOAT: adds to a number. Replies with the new number.
#[must_use]
pub fn incr_by_float(key: impl AsRef<[u8]>, increment: f64) -> Typed<f64> {
    write("INCRBYFLOAT", key).num(increment).into()
}

/// DECR: subtracts 1. Replies with the new number.
#[must_use]
pub fn decr(key: impl AsRef<[u8]>) -> Typed<i64> {
    write("DECR", key).into()
}
