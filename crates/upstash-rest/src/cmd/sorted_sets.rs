//! Sorted sets. Ranks count from 0 at the lowest score; negative ones count from the end, which is -1. A bound of a
//! score is a number, `(` and a number to exclude it, `-inf` or `+inf`.

use bytes::Bytes;

use super::{read, write};
use crate::{command::Typed, reply::Pairs};

/// ZRANGE: the members from rank `start` to `stop`, both included.
#[must_use]
pub fn zrange(key: impl AsRef<[u8]>, start: i64, stop: i64) -> Typed<Vec<Bytes>> {
    read("ZRANGE", key).num(start).num(stop).into()
}

/// ZRANGE with WITHSCORES: the members from rank `start` to `stop`, both included, with their scores.
#[must_use]
pub fn zrange_with_scores(key: impl AsRef<[u8]>, start: i64, stop: i64) -> Typed<Pairs<Bytes, f64>> {
    read("ZRANGE", key).num(start).num(stop).arg("WITHSCORES").into()
}

/// ZRANGE with REV: the members from rank `start` to `stop`, both included, where 0 is the highest score.
#[must_use]
pub fn zrange_rev(key: impl AsRef<[u8]>, start: i64, stop: i64) -> Typed<Vec<Bytes>> {
    read("ZRANGE", key).num(start).num(stop).arg("REV").into()
}

/// ZRANGE with BYSCORE: the members with a score from `min` to `max`. Limit it by
/// `.arg("LIMIT").num(offset).num(count)`.
#[must_use]
pub fn zrange_by_score(key: impl AsRef<[u8]>, min: impl AsRef<[u8]>, max: impl AsRef<[u8]>) -> Typed<Vec<Bytes>> {
    read("ZRANGE", key).arg(min).arg(max).arg("BYSCORE").into()
}

/// ZSCORE: the score of a member, or None if there is no such member.
#[must_use]
pub fn zscore(key: impl AsRef<[u8]>, member: impl AsRef<[u8]>) -> Typed<Option<f64>> {
    read("ZSCORE", key).arg(member).into()
}

/// ZMSCORE: the score of each member.
#[must_use]
pub fn zmscore<M: AsRef<[u8]>>(key: impl AsRef<[u8]>, members: impl IntoIterator<Item = M>) -> Typed<Vec<Option<f64>>> {
    read("ZMSCORE", key).args(members).into()
}

/// ZRANK: the rank of a member, or None if there is no such member.
#[must_use]
pub fn zrank(key: impl AsRef<[u8]>, member: impl AsRef<[u8]>) -> Typed<Option<u64>> {
    read("ZRANK", key).arg(member).into()
}

/// ZREVRANK: the rank of a member, where 0 is the highest score, or None if there is no such member.
#[must_use]
pub fn zrevrank(key: impl AsRef<[u8]>, member: impl AsRef<[u8]>) -> Typed<Option<u64>> {
    read("ZREVRANK", key).arg(member).into()
}

/// ZCARD: the number of members.
#[must_use]
pub fn zcard(key: impl AsRef<[u8]>) -> Typed<u64> {
    read("ZCARD", key).into()
}

/// ZCOUNT: the number of members with a score from `min` to `max`.
#[must_use]
pub fn zcount(key: impl AsRef<[u8]>, min: impl AsRef<[u8]>, max: impl AsRef<[u8]>) -> Typed<u64> {
    read("ZCOUNT", key).arg(min).arg(max).into()
}

/// ZADD: adds members or changes their scores. Replies with the number of new members.
#[must_use]
pub fn zadd<M: AsRef<[u8]>>(key: impl AsRef<[u8]>, members: impl IntoIterator<Item = (f64, M)>) -> Typed<u64> {
    let command = write("ZADD", key);
    members.into_iter().fold(command, |command, (score, member)| command.num(score).arg(member)).into()
}

/// ZINCRBY: adds to a score. Replies with the new score.
#[must_use]
pub fn zincr_by(key: impl AsRef<[u8]>, increment: f64, member: impl AsRef<[u8]>) -> Typed<f64> {
    write("ZINCRBY", key).num(increment).arg(member).into()
}

/// ZREM: removes members. Replies with the number of removed ones.
#[must_use]
pub fn zrem<M: AsRef<[u8]>>(key: impl AsRef<[u8]>, members: impl IntoIterator<Item = M>) -> Typed<u64> {
    write("ZREM", key).args(members).into()
}

/// ZREMRANGEBYRANK: removes the members from rank `start` to `stop`, both included. Replies with their number.
#[must_use]
pub fn zrem_range_by_rank(key: impl AsRef<[u8]>, start: i64, stop: i64) -> Typed<u64> {
    write("ZREMRANGEBYRANK", key).num(start).num(stop).into()
}

/// ZREMRANGEBYSCORE: removes the members with a score from `min` to `max`. Replies with their number.
#[must_use]
pub fn zrem_range_by_score(key: impl AsRef<[u8]>, min: impl AsRef<[u8]>, max: impl AsRef<[u8]>) -> Typed<u64> {
    write("ZREMRANGEBYSCORE", key).arg(min).arg(max).into()
}

/// ZPOPMIN: takes up to `count` members with the lowest scores.
#[must_use]
pub fn zpop_min(key: impl AsRef<[u8]>, count: u64) -> Typed<Pairs<Bytes, f64>> {
    write("ZPOPMIN", key).num(count).into()
}
