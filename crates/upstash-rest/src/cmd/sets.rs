//! Sets.

use bytes::Bytes;

use super::{read, write};
use crate::command::Typed;

/// SMEMBERS: all members.
#[must_use]
pub fn smembers(key: impl AsRef<[u8]>) -> Typed<Vec<Bytes>> {
    read("SMEMBERS", key).into()
}

/// SISMEMBER: true if there is such a member.
#[must_use]
pub fn sismember(key: impl AsRef<[u8]>, member: impl AsRef<[u8]>) -> Typed<bool> {
    read("SISMEMBER", key).arg(member).into()
}

/// SMISMEMBER: as SISMEMBER, for each member.
#[must_use]
pub fn smismember<M: AsRef<[u8]>>(key: impl AsRef<[u8]>, members: impl IntoIterator<Item = M>) -> Typed<Vec<bool>> {
    read("SMISMEMBER", key).args(members).into()
}

/// SCARD: the number of members.
#[must_use]
pub fn scard(key: impl AsRef<[u8]>) -> Typed<u64> {
    read("SCARD", key).into()
}

/// SADD: adds members. Replies with the number of new ones.
#[must_use]
pub fn sadd<M: AsRef<[u8]>>(key: impl AsRef<[u8]>, members: impl IntoIterator<Item = M>) -> Typed<u64> {
    write("SADD", key).args(members).into()
}

/// SREM: removes members. Replies with the number of removed ones.
#[must_use]
pub fn srem<M: AsRef<[u8]>>(key: impl AsRef<[u8]>, members: impl IntoIterator<Item = M>) -> Typed<u64> {
    write("SREM", key).args(members).into()
}

/// SPOP: takes a random member, or None if the set is empty.
#[must_use]
pub fn spop(key: impl AsRef<[u8]>) -> Typed<Option<Bytes>> {
    write("SPOP", key).into()
}
