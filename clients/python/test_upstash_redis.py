"""Every method of `upstash-redis` from PyPI, with its blocking and its asynchronous client: a case for each, or a line in
expected-failures.txt."""

import asyncio
import inspect
import json
import os
import pathlib
import re
import time
import unittest

import upstash_redis
import upstash_redis.asyncio
from upstash_redis.errors import UpstashError

URL = os.environ["UPSTASH_REDIS_REST_URL"]
TOKEN = os.environ["UPSTASH_REDIS_REST_TOKEN"]
READ_ONLY_TOKEN = os.environ["UPSTASH_REDIS_REST_READONLY_TOKEN"]
OPTIONS = {"rest_retries": 0, "allow_telemetry": False}


class Waiting:
    """An asynchronous object, used like a blocking one: each call waits for its result."""

    def __init__(self, target, loop):
        self.target, self.loop = target, loop

    def __getattr__(self, name):
        attribute = getattr(self.target, name)
        if not callable(attribute):
            return Waiting(attribute, self.loop)

        def call(*args, **options):
            result = attribute(*args, **options)
            if inspect.isawaitable(result):
                return self.loop.run_until_complete(result)
            # The builders of pipelines and bit fields return themselves.
            return result if result is None else Waiting(result, self.loop)

        return call


LOOP = asyncio.new_event_loop()


def blocking(token=TOKEN, **options):
    return upstash_redis.Redis(URL, token, **OPTIONS, **options)


def asynchronous(token=TOKEN, **options):
    return Waiting(upstash_redis.asyncio.Redis(URL, token, **OPTIONS, **options), LOOP)


def near(actual, expected):
    return abs(actual - expected) <= 5


def sicily(r, k):
    return r.geoadd(k, (13.361389, 38.115556, "Palermo"), (15.087269, 37.502669, "Catania"))


def group(r, k, consumer="c"):
    """A stream with an entry and a group; the consumer has read the entry."""
    r.xadd(k, "1-1", {"a": "1"})
    r.xgroup_create(k, "g", "0")
    if consumer:
        r.xreadgroup("g", consumer, {k: ">"})


# The texts of the gateway for a command that the server lacks, and for one that needs a connection.
UNAVAILABLE = "ERR Command is not available: '|ERR Command \"[A-Z]+\" is not allowed in REST"
NOW = int(time.time())
NEVER = "0" * 40
# By method: pairs of an actual and an expected value. Each case gets a key of its own.
CASES = {
    # Keys
    "copy": lambda r, k: [(r.set(k, 1), True), (r.copy(k, k + "2"), True), (r.copy(k, k + "2"), False), (r.copy(k, k + "2", replace=True), True)],
    "delete": lambda r, k: [(r.mset({k: 1, k + "2": 2}), True), (r.delete(k, k + "2", k + "3"), 2)],
    "exists": lambda r, k: [(r.set(k, 1), True), (r.exists(k, k, k + "2"), 2)],
    "expire": lambda r, k: [(r.set(k, 1), True), (r.expire(k, 100), True), (r.expire(k, 50, gt=True), False), (r.ttl(k), 100)],
    "expireat": lambda r, k: [(r.set(k, 1), True), (r.expireat(k, int(time.time()) + 100), True), (near(r.ttl(k), 100), True)],
    "keys": lambda r, k: [(r.mset({k + "a": 1, k + "b": 2}), True), (sorted(r.keys(k + "*")), [k + "a", k + "b"])],
    "persist": lambda r, k: [(r.set(k, 1, ex=100), True), (r.persist(k), True), (r.ttl(k), -1), (r.persist(k), False)],
    "pexpire": lambda r, k: [(r.set(k, 1), True), (r.pexpire(k, 100_000), True), (r.ttl(k), 100)],
    "pexpireat": lambda r, k: [(r.set(k, 1), True), (r.pexpireat(k, int(time.time() + 100) * 1000), True), (near(r.ttl(k), 100), True)],
    "pttl": lambda r, k: [(r.set(k, 1, px=100_000), True), (near(r.pttl(k) / 1000, 100), True), (r.pttl(k + "2"), -2)],
    "randomkey": lambda r, k: [(r.set(k, 1), True), (r.exists(r.randomkey()), 1)],
    "rename": lambda r, k: [(r.set(k, 1), True), (r.rename(k, k + "2"), True), (r.get(k + "2"), "1")],
    "renamenx": lambda r, k: [(r.mset({k: 1, k + "2": 2}), True), (r.renamenx(k, k + "2"), False), (r.renamenx(k, k + "3"), True)],
    "scan": lambda r, k: [(r.set(k, 1), True), (r.scan(0, match=k, count=100_000), (0, [k])), (r.scan(0, match=k, count=100_000, type="hash"), (0, []))],
    "touch": lambda r, k: [(r.set(k, 1), True), (r.touch(k, k + "2"), 1)],
    "ttl": lambda r, k: [(r.set(k, 1), True), (r.ttl(k), -1), (r.ttl(k + "2"), -2)],
    "type": lambda r, k: [(r.type(k), "none"), (r.lpush(k, 1), 1), (r.type(k), "list")],
    "unlink": lambda r, k: [(r.set(k, 1), True), (r.unlink(k, k + "2"), 1)],
    # Strings
    "append": lambda r, k: [(r.append(k, "ab"), 2), (r.append(k, "c"), 3)],
    "decr": lambda r, k: [(r.decr(k), -1)],
    "decrby": lambda r, k: [(r.decrby(k, 4), -4)],
    "get": lambda r, k: [(r.get(k), None), (r.set(k, {"a": [1, "ä"]}), True), (json.loads(r.get(k)), {"a": [1, "ä"]})],
    "getdel": lambda r, k: [(r.set(k, "v"), True), (r.getdel(k), "v"), (r.getdel(k), None)],
    "getex": lambda r, k: [(r.set(k, "v"), True), (r.getex(k, ex=100), "v"), (r.ttl(k), 100), (r.getex(k, persist=True), "v"), (r.ttl(k), -1)],
    "getrange": lambda r, k: [(r.set(k, "Hello World"), True), (r.getrange(k, -5, -1), "World")],
    "getset": lambda r, k: [(r.getset(k, "a"), None), (r.getset(k, "b"), "a")],
    "incr": lambda r, k: [(r.incr(k), 1), (r.incr(k), 2)],
    "incrby": lambda r, k: [(r.incrby(k, 5), 5)],
    "incrbyfloat": lambda r, k: [(r.incrbyfloat(k, 2.5), 2.5)],
    "mget": lambda r, k: [(r.set(k, "a"), True), (r.mget(k, k + "2"), ["a", None])],
    "mset": lambda r, k: [(r.mset({k: 1, k + "2": "x"}), True), (r.mget(k, k + "2"), ["1", "x"])],
    "msetnx": lambda r, k: [(r.msetnx({k: 1}), True), (r.msetnx({k: 1, k + "2": 2}), False), (r.exists(k + "2"), 0)],
    "psetex": lambda r, k: [(r.psetex(k, 100_000, "v"), True), (r.ttl(k), 100)],
    "set": lambda r, k: [(r.set(k, "a", ex=100), True), (r.set(k, "b", nx=True), False), (r.set(k, "b", xx=True, get=True, keepttl=True), "a"), (r.ttl(k), 100)],
    "setex": lambda r, k: [(r.setex(k, 100, "v"), True), (r.ttl(k), 100)],
    "setnx": lambda r, k: [(r.setnx(k, 1), True), (r.setnx(k, 2), False)],
    "setrange": lambda r, k: [(r.set(k, "originalValue"), True), (r.setrange(k, 4, "helloWorld"), 14)],
    "strlen": lambda r, k: [(r.set(k, "äö"), True), (r.strlen(k), 4)],
    "substr": lambda r, k: [(r.set(k, "Hello World"), True), (r.substr(k, 0, 4), "Hello")],
    # Bits
    "bitcount": lambda r, k: [(r.set(k, "Hello World"), True), (r.bitcount(k), 43), (r.bitcount(k, 4, 8), 22)],
    "bitfield": lambda r, k: [(r.bitfield(k).set("u4", 0, 1).incrby("u4", "#1", 7).get("u8", 0).overflow("FAIL").incrby("u4", 0, 15).execute(), [0, 7, 23, None])],
    "bitfield_ro": lambda r, k: [(r.set(k, "a"), True), (r.bitfield_ro(k).get("u8", 0).execute(), [97])],
    "bitop": lambda r, k: [(r.setbit(k, 0, 1), 0), (r.setbit(k + "2", 1, 1), 0), (r.bitop("OR", k + "3", k, k + "2"), 1), (r.bitcount(k + "3"), 2)],
    "bitpos": lambda r, k: [(r.setbit(k, 10, 1), 0), (r.bitpos(k, 1), 10), (r.bitpos(k, 1, 2), -1)],
    "getbit": lambda r, k: [(r.setbit(k, 7, 1), 0), (r.getbit(k, 7), 1), (r.getbit(k, 6), 0)],
    "setbit": lambda r, k: [(r.setbit(k, 4, 1), 0), (r.setbit(k, 4, 0), 1)],
    # Hashes
    "hdel": lambda r, k: [(r.hset(k, values={"a": 1, "b": 2}), 2), (r.hdel(k, "a", "b", "c"), 2)],
    "hexists": lambda r, k: [(r.hset(k, "a", 1), 1), (r.hexists(k, "a"), True), (r.hexists(k, "b"), False)],
    "hexpire": lambda r, k: [(r.hset(k, "a", 1), 1), (r.hexpire(k, ["a", "b"], 100), [1, -2]), (r.hexpire(k, "a", 50, gt=True), [0])],
    "hexpireat": lambda r, k: [(r.hset(k, "a", 1), 1), (r.hexpireat(k, "a", NOW + 10_000), [1]), (r.hexpiretime(k, "a"), [NOW + 10_000])],
    "hexpiretime": lambda r, k: [(r.hset(k, "a", 1), 1), (r.hexpiretime(k, ["a", "b"]), [-1, -2])],
    "hget": lambda r, k: [(r.hset(k, "a", "x"), 1), (r.hget(k, "a"), "x"), (r.hget(k, "b"), None)],
    "hgetall": lambda r, k: [(r.hgetall(k), {}), (r.hset(k, values={"a": 1, "b": "x"}), 2), (r.hgetall(k), {"a": "1", "b": "x"})],
    "hgetdel": lambda r, k: [(r.hset(k, values={"a": 1, "b": 2}), 2), (r.hgetdel(k, "a", "c"), ["1", None]), (r.hlen(k), 1)],
    "hgetex": lambda r, k: [(r.hset(k, "a", 1), 1), (r.hgetex(k, "a", ex=100), ["1"]), (r.httl(k, "a"), [100])],
    "hincrby": lambda r, k: [(r.hincrby(k, "a", 3), 3)],
    "hincrbyfloat": lambda r, k: [(r.hincrbyfloat(k, "a", 1.5), 1.5)],
    "hkeys": lambda r, k: [(r.hset(k, values={"a": 1, "b": 2}), 2), (sorted(r.hkeys(k)), ["a", "b"])],
    "hlen": lambda r, k: [(r.hlen(k), 0), (r.hset(k, "a", 1), 1), (r.hlen(k), 1)],
    "hmget": lambda r, k: [(r.hset(k, "a", 1), 1), (r.hmget(k, "a", "b"), ["1", None])],
    "hmset": lambda r, k: [(r.hmset(k, {"a": 1}), True), (r.hget(k, "a"), "1")],
    "hpersist": lambda r, k: [(r.hset(k, "a", 1), 1), (r.hexpire(k, "a", 100), [1]), (r.hpersist(k, ["a", "b"]), [1, -2])],
    "hpexpire": lambda r, k: [(r.hset(k, "a", 1), 1), (r.hpexpire(k, "a", 100_000), [1]), (r.httl(k, "a"), [100])],
    "hpexpireat": lambda r, k: [(r.hset(k, "a", 1), 1), (r.hpexpireat(k, "a", (NOW + 10_000) * 1000), [1]), (r.hpexpiretime(k, "a"), [(NOW + 10_000) * 1000])],
    "hpexpiretime": lambda r, k: [(r.hset(k, "a", 1), 1), (r.hpexpiretime(k, "a"), [-1])],
    "hpttl": lambda r, k: [(r.hset(k, "a", 1), 1), (r.hpttl(k, ["a", "b"]), [-1, -2])],
    "hrandfield": lambda r, k: [(r.hset(k, "a", 1), 1), (r.hrandfield(k), "a"), (r.hrandfield(k, 2), ["a"]), (r.hrandfield(k, 2, withvalues=True), {"a": "1"})],
    "hscan": lambda r, k: [(r.hset(k, values={"a": 1, "b": 2}), 2), (r.hscan(k, 0, match="a*", count=9), (0, {"a": "1"}))],
    "hset": lambda r, k: [(r.hset(k, "a", 1), 1), (r.hset(k, "b", 2, {"a": 3, "c": 4}), 2)],
    "hsetex": lambda r, k: [(r.hsetex(k, "a", 1, fnx=True, ex=100), 1), (r.hsetex(k, "a", 2, fnx=True), 0), (r.httl(k, "a"), [100])],
    "hsetnx": lambda r, k: [(r.hsetnx(k, "a", 1), True), (r.hsetnx(k, "a", 2), False)],
    "hstrlen": lambda r, k: [(r.hset(k, "a", "four"), 1), (r.hstrlen(k, "a"), 4)],
    "httl": lambda r, k: [(r.hset(k, "a", 1), 1), (r.httl(k, ["a", "b"]), [-1, -2])],
    "hvals": lambda r, k: [(r.hset(k, "a", "x"), 1), (r.hvals(k), ["x"])],
    # Lists
    "lindex": lambda r, k: [(r.rpush(k, "a", "b"), 2), (r.lindex(k, -1), "b"), (r.lindex(k, 9), None)],
    "linsert": lambda r, k: [(r.rpush(k, "a", "c"), 2), (r.linsert(k, "BEFORE", "c", "b"), 3), (r.lrange(k, 0, -1), ["a", "b", "c"])],
    "llen": lambda r, k: [(r.rpush(k, "a"), 1), (r.llen(k), 1)],
    "lmove": lambda r, k: [(r.rpush(k, "a", "b"), 2), (r.lmove(k, k + "2", "RIGHT", "LEFT"), "b")],
    "lpop": lambda r, k: [(r.rpush(k, "a", "b", "c"), 3), (r.lpop(k), "a"), (r.lpop(k, 2), ["b", "c"]), (r.lpop(k), None)],
    "lpos": lambda r, k: [(r.rpush(k, "a", "b", "a"), 3), (r.lpos(k, "a", rank=2), 2), (r.lpos(k, "a", count=0), [0, 2])],
    "lpush": lambda r, k: [(r.lpush(k, "a", "b"), 2), (r.lrange(k, 0, -1), ["b", "a"])],
    "lpushx": lambda r, k: [(r.lpushx(k, "a"), 0)],
    "lrange": lambda r, k: [(r.rpush(k, 1, "a"), 2), (r.lrange(k, 0, -1), ["1", "a"])],
    "lrem": lambda r, k: [(r.rpush(k, "a", "b", "a"), 3), (r.lrem(k, -1, "a"), 1)],
    "lset": lambda r, k: [(r.rpush(k, "a"), 1), (r.lset(k, 0, "b"), True), (r.lindex(k, 0), "b")],
    "ltrim": lambda r, k: [(r.rpush(k, "a", "b", "c"), 3), (r.ltrim(k, 1, 1), "OK"), (r.lrange(k, 0, -1), ["b"])],
    "rpop": lambda r, k: [(r.rpush(k, "a", "b"), 2), (r.rpop(k), "b"), (r.rpop(k, 5), ["a"])],
    "rpoplpush": lambda r, k: [(r.rpush(k, "a", "b"), 2), (r.rpoplpush(k, k + "2"), "b")],
    "rpush": lambda r, k: [(r.rpush(k, "a", "b"), 2), (r.lrange(k, 0, -1), ["a", "b"])],
    "rpushx": lambda r, k: [(r.rpushx(k, "a"), 0)],
    # Sets
    "sadd": lambda r, k: [(r.sadd(k, "a", "b", "a"), 2)],
    "scard": lambda r, k: [(r.sadd(k, "a"), 1), (r.scard(k), 1)],
    "sdiff": lambda r, k: [(r.sadd(k, "a", "b"), 2), (r.sadd(k + "2", "b"), 1), (r.sdiff(k, k + "2"), ["a"])],
    "sdiffstore": lambda r, k: [(r.sadd(k, "a", "b"), 2), (r.sdiffstore(k + "3", k, k + "2"), 2)],
    "sinter": lambda r, k: [(r.sadd(k, "a", "b"), 2), (r.sadd(k + "2", "b"), 1), (r.sinter(k, k + "2"), ["b"])],
    "sinterstore": lambda r, k: [(r.sadd(k, "a"), 1), (r.sinterstore(k + "3", k, k), 1)],
    "sismember": lambda r, k: [(r.sadd(k, "a"), 1), (r.sismember(k, "a"), True), (r.sismember(k, "b"), False)],
    "smembers": lambda r, k: [(r.sadd(k, "a"), 1), (r.smembers(k), ["a"])],
    "smismember": lambda r, k: [(r.sadd(k, "a"), 1), (r.smismember(k, "a", "b"), [True, False])],
    "smove": lambda r, k: [(r.sadd(k, "a"), 1), (r.smove(k, k + "2", "a"), True), (r.smove(k, k + "2", "a"), False)],
    "spop": lambda r, k: [(r.sadd(k, "a"), 1), (r.spop(k), "a"), (r.spop(k, 2), [])],
    "srandmember": lambda r, k: [(r.sadd(k, "a"), 1), (r.srandmember(k), "a"), (r.srandmember(k, -2), ["a", "a"])],
    "srem": lambda r, k: [(r.sadd(k, "a"), 1), (r.srem(k, "a", "b"), 1)],
    "sscan": lambda r, k: [(r.sadd(k, "a", "b"), 2), (r.sscan(k, 0, match="a", count=9), (0, ["a"]))],
    "sunion": lambda r, k: [(r.sadd(k, "a"), 1), (r.sadd(k + "2", "b"), 1), (sorted(r.sunion(k, k + "2")), ["a", "b"])],
    "sunionstore": lambda r, k: [(r.sadd(k, "a"), 1), (r.sunionstore(k + "3", k, k + "2"), 1)],
    # Sorted sets
    "zadd": lambda r, k: [(r.zadd(k, {"a": 1, "b": 2}), 2), (r.zadd(k, {"a": 9}, nx=True), 0), (r.zadd(k, {"a": 3}, gt=True, ch=True), 1), (r.zadd(k, {"a": 0.5}, incr=True), 3.5)],
    "zcard": lambda r, k: [(r.zadd(k, {"a": 1}), 1), (r.zcard(k), 1)],
    "zcount": lambda r, k: [(r.zadd(k, {"a": 1, "b": 2}), 2), (r.zcount(k, "(1", "+inf"), 1)],
    "zdiff": lambda r, k: [(r.zadd(k, {"a": 1}), 1), (r.zdiff([k, k + "2"], withscores=True), [("a", 1.0)])],
    "zdiffstore": lambda r, k: [(r.zadd(k, {"a": 1}), 1), (r.zdiffstore(k + "3", [k, k + "2"]), 1)],
    "zincrby": lambda r, k: [(r.zincrby(k, 1.5, "a"), 1.5)],
    "zinter": lambda r, k: [(r.zadd(k, {"a": 1}), 1), (r.zinter([k, k], weights=[1, 2], withscores=True), [("a", 3.0)])],
    "zinterstore": lambda r, k: [(r.zadd(k, {"a": 1}), 1), (r.zinterstore(k + "3", [k, k], aggregate="MAX"), 1)],
    "zlexcount": lambda r, k: [(r.zadd(k, {"a": 0, "b": 0}), 2), (r.zlexcount(k, "(a", "+"), 1)],
    "zmscore": lambda r, k: [(r.zadd(k, {"a": 1.5}), 1), (r.zmscore(k, ["a", "b"]), [1.5, None])],
    "zpopmax": lambda r, k: [(r.zadd(k, {"a": 1, "b": 2}), 2), (r.zpopmax(k), [("b", 2.0)])],
    "zpopmin": lambda r, k: [(r.zadd(k, {"a": 1, "b": 2}), 2), (r.zpopmin(k, 5), [("a", 1.0), ("b", 2.0)])],
    "zrandmember": lambda r, k: [(r.zadd(k, {"a": 1}), 1), (r.zrandmember(k), "a"), (r.zrandmember(k, 1, withscores=True), [("a", 1.0)])],
    "zrange": lambda r, k: [(r.zadd(k, {"a": 1, "b": 2, "c": 3}), 3), (r.zrange(k, 0, 1, withscores=True), [("a", 1.0), ("b", 2.0)]), (r.zrange(k, "(1", "+inf", sortby="BYSCORE", offset=1, count=1), ["c"])],
    "zrangebylex": lambda r, k: [(r.zadd(k, {"a": 0, "b": 0}), 2), (r.zrangebylex(k, "(a", "+"), ["b"])],
    "zrangebyscore": lambda r, k: [(r.zadd(k, {"a": 1, "b": 2}), 2), (r.zrangebyscore(k, "(1", "+inf", withscores=True), [("b", 2.0)])],
    "zrangestore": lambda r, k: [(r.zadd(k, {"a": 1, "b": 2}), 2), (r.zrangestore(k + "2", k, 0, 0), 1)],
    "zrank": lambda r, k: [(r.zadd(k, {"a": 1, "b": 2}), 2), (r.zrank(k, "b"), 1), (r.zrank(k, "x"), None)],
    "zrem": lambda r, k: [(r.zadd(k, {"a": 1}), 1), (r.zrem(k, "a", "b"), 1)],
    "zremrangebylex": lambda r, k: [(r.zadd(k, {"a": 0, "b": 0}), 2), (r.zremrangebylex(k, "-", "[a"), 1)],
    "zremrangebyrank": lambda r, k: [(r.zadd(k, {"a": 1, "b": 2}), 2), (r.zremrangebyrank(k, 0, 0), 1)],
    "zremrangebyscore": lambda r, k: [(r.zadd(k, {"a": 1, "b": 2}), 2), (r.zremrangebyscore(k, "-inf", "(2"), 1)],
    "zrevrange": lambda r, k: [(r.zadd(k, {"a": 1, "b": 2}), 2), (r.zrevrange(k, 0, 0, withscores=True), [("b", 2.0)])],
    "zrevrangebylex": lambda r, k: [(r.zadd(k, {"a": 0, "b": 0}), 2), (r.zrevrangebylex(k, "+", "-"), ["b", "a"])],
    "zrevrangebyscore": lambda r, k: [(r.zadd(k, {"a": 1, "b": 2}), 2), (r.zrevrangebyscore(k, "+inf", "-inf"), ["b", "a"])],
    "zrevrank": lambda r, k: [(r.zadd(k, {"a": 1, "b": 2}), 2), (r.zrevrank(k, "a"), 1)],
    "zscan": lambda r, k: [(r.zadd(k, {"a": 1}), 1), (r.zscan(k, 0, count=9), (0, [("a", 1.0)]))],
    "zscore": lambda r, k: [(r.zadd(k, {"a": 1e300}), 1), (r.zscore(k, "a"), 1e300), (r.zscore(k, "b"), None)],
    "zunion": lambda r, k: [(r.zadd(k, {"a": 1}), 1), (r.zunion([k, k], withscores=True), [("a", 2.0)])],
    "zunionstore": lambda r, k: [(r.zadd(k, {"a": 1}), 1), (r.zunionstore(k + "3", [k, k + "2"]), 1)],
    # Geography and counts
    "geoadd": lambda r, k: [(sicily(r, k), 2), (r.geoadd(k, (0, 0, "Palermo"), nx=True), 0)],
    "geodist": lambda r, k: [(sicily(r, k), 2), (r.geodist(k, "Palermo", "Catania", "KM"), 166.2742), (r.geodist(k, "Palermo", "Rome"), None)],
    "geohash": lambda r, k: [(sicily(r, k), 2), (r.geohash(k, "Palermo", "Rome"), ["sqc8b49rny0", None])],
    "geopos": lambda r, k: [(sicily(r, k), 2), ([position and round(position[0], 3) for position in r.geopos(k, "Palermo", "Rome")], [13.361, None])],
    "georadius": lambda r, k: [(sicily(r, k), 2), (r.georadius(k, 15, 37, 200, "KM", order="ASC"), ["Catania", "Palermo"])],
    "georadius_ro": lambda r, k: [(sicily(r, k), 2), (r.georadius_ro(k, 15, 37, 100, "KM"), ["Catania"])],
    "georadiusbymember": lambda r, k: [(sicily(r, k), 2), (r.georadiusbymember(k, "Palermo", 1, "KM"), ["Palermo"])],
    "georadiusbymember_ro": lambda r, k: [(sicily(r, k), 2), (r.georadiusbymember_ro(k, "Palermo", 1, "KM"), ["Palermo"])],
    "geosearch": lambda r, k: [(sicily(r, k), 2), (r.geosearch(k, longitude=15, latitude=37, unit="KM", radius=200, order="DESC", count=1), ["Palermo"])],
    "geosearchstore": lambda r, k: [(sicily(r, k), 2), (r.geosearchstore(k + "2", k, member="Palermo", unit="KM", width=400, height=400), 2)],
    "pfadd": lambda r, k: [(r.pfadd(k, "a"), True), (r.pfadd(k, "a"), False)],
    "pfcount": lambda r, k: [(r.pfadd(k, "a", "b"), True), (r.pfcount(k, k + "2"), 2)],
    "pfmerge": lambda r, k: [(r.pfadd(k, "a"), True), (r.pfmerge(k + "2", k), True), (r.pfcount(k + "2"), 1)],
    # Streams
    "xack": lambda r, k: [(group(r, k), None), (r.xack(k, "g", "1-1", "9-9"), 1)],
    "xadd": lambda r, k: [(r.xadd(k, "1-1", {"a": 1}), "1-1"), (r.xadd(k + "2", "*", {"a": 1}, nomkstream=True), None), (r.xadd(k, "2-1", {"a": 1}, maxlen=1, approximate_trim=False), "2-1"), (r.xlen(k), 1)],
    "xautoclaim": lambda r, k: [(group(r, k), None), (r.xautoclaim(k, "g", "d", 0, "0", count=5, justid=True)[1], ["1-1"])],
    "xclaim": lambda r, k: [(group(r, k), None), (r.xclaim(k, "g", "d", 0, "1-1", justid=True), ["1-1"])],
    "xdel": lambda r, k: [(r.xadd(k, "1-1", {"a": 1}), "1-1"), (r.xdel(k, "1-1", "9-9"), 1)],
    "xgroup_create": lambda r, k: [(r.xgroup_create(k, "g", mkstream=True), "OK")],
    "xgroup_createconsumer": lambda r, k: [(r.xgroup_create(k, "g", mkstream=True), "OK"), (r.xgroup_createconsumer(k, "g", "c"), 1)],
    "xgroup_delconsumer": lambda r, k: [(group(r, k), None), (r.xgroup_delconsumer(k, "g", "c"), 1)],
    "xgroup_destroy": lambda r, k: [(group(r, k), None), (r.xgroup_destroy(k, "g"), 1)],
    "xgroup_setid": lambda r, k: [(group(r, k), None), (r.xgroup_setid(k, "g", "$"), "OK")],
    "xinfo_consumers": lambda r, k: [(group(r, k), None), (r.xinfo_consumers(k, "g")[0][:2], ["name", "c"])],
    "xinfo_groups": lambda r, k: [(group(r, k), None), (r.xinfo_groups(k)[0][:2], ["name", "g"])],
    "xlen": lambda r, k: [(r.xadd(k, "1-1", {"a": 1}), "1-1"), (r.xlen(k), 1)],
    "xpending": lambda r, k: [(group(r, k), None), (r.xpending(k, "g")[:3], [1, "1-1", "1-1"]), (r.xpending(k, "g", "-", "+", 10)[0][:2], ["1-1", "c"])],
    "xrange": lambda r, k: [(r.xadd(k, "1-1", {"a": 1}), "1-1"), (r.xrange(k, count=1), [["1-1", ["a", "1"]]])],
    "xread": lambda r, k: [(r.xadd(k, "1-1", {"a": 1}), "1-1"), (r.xread({k: "0"}), [[k, [["1-1", ["a", "1"]]]]])],
    "xreadgroup": lambda r, k: [(group(r, k, None), None), (r.xreadgroup("g", "c", {k: ">"}, count=1), [[k, [["1-1", ["a", "1"]]]]])],
    "xrevrange": lambda r, k: [(r.xadd(k, "1-1", {"a": 1}), "1-1"), (r.xrevrange(k, count=1), [["1-1", ["a", "1"]]])],
    "xtrim": lambda r, k: [([r.xadd(k, f"{n}-1", {"a": 1}) for n in (1, 2, 3)], ["1-1", "2-1", "3-1"]), (r.xtrim(k, maxlen=1, approximate=False), 2)],
    # Scripts
    "eval": lambda r, k: [(r.eval("return {KEYS[1], ARGV[1], 3, false, {1}}", [k], ["a"]), [k, "a", 3, None, [1]])],
    "eval_ro": lambda r, k: [(r.eval_ro("return ARGV[1]", [k], ["x"]), "x")],
    "evalsha": lambda r, k: [(r.evalsha(r.script_load("return ARGV[1]"), [k], ["x"]), "x")],
    "evalsha_ro": lambda r, k: [(r.set(k, "v"), True), (r.evalsha_ro(r.script_load("return redis.call('GET', KEYS[1])"), [k]), "v")],
    "script_exists": lambda r, k: [(r.script_exists(r.script_load("return 1"), NEVER), [True, False])],
    "script_flush": lambda r, k: [(r.script_flush("SYNC"), True)],
    "script_load": lambda r, k: [(r.script_load("return 1"), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db")],
    # The server
    "dbsize": lambda r, k: [(r.set(k, 1), True), (r.dbsize() >= 1, True)],
    "echo": lambda r, k: [(r.echo("ä"), "ä")],
    "execute": lambda r, k: [(r.execute(["SET", k, "v", "EX", 100]), True), (r.execute(["TTL", k]), 100)],
    "flushall": lambda r, k: [(r.set(k, 1), True), (r.flushall("SYNC"), True), (r.exists(k), 0)],
    "flushdb": lambda r, k: [(r.set(k, 1), True), (r.flushdb("ASYNC"), True), (r.exists(k), 0)],
    "ping": lambda r, k: [(r.ping(), "PONG"), (r.ping("hello"), "hello")],
    "publish": lambda r, k: [(r.publish(k, "message"), 0)],
    "time": lambda r, k: [(near(r.time()[0], time.time()), True)],
}


def expected_failures():
    """The lines of expected-failures.txt for this package: method, arguments and reason."""
    lines = pathlib.Path(__file__).parent.with_name("expected-failures.txt").read_text().splitlines()
    pattern = re.compile(r"upstash-redis (\S+) (\[.*\]) # (.+)")
    return [(m[1], json.loads(m[2]), m[3]) for m in map(pattern.fullmatch, lines) if m]


def methods():
    """The public methods of the client that send a command. Search has one entry, because it needs an index."""
    names = {name for name in dir(upstash_redis.Redis) if not name.startswith("_")}
    names -= {"close", "from_env", "json", "multi", "pipeline"}
    from upstash_redis.commands import JsonCommands

    return names | {f"json.{name}" for name in dir(JsonCommands) if not name.startswith("_")}


class Blocking(unittest.TestCase):
    """The client `upstash_redis.Redis`."""

    connect = staticmethod(blocking)

    @classmethod
    def setUpClass(cls):
        cls.redis = cls.connect()

    def test_every_method_has_a_case(self):
        unavailable = {"search" if name.startswith("search") else name for name, _, _ in expected_failures()}
        self.assertEqual(methods(), set(CASES) | unavailable)

    def test_a_pipeline_returns_one_result_for_each_command(self):
        pipeline = self.redis.pipeline()
        pipeline.set("p:a", "x")
        pipeline.get("p:a")
        pipeline.zadd("p:z", {"m": 1})
        self.assertEqual(pipeline.exec(), [True, "x", 1])
        self.redis.delete("p:z")

    def test_an_error_in_a_pipeline_is_raised(self):
        self.redis.hset("p:hash", "a", 1)
        pipeline = self.redis.pipeline()
        pipeline.ping()
        pipeline.get("p:hash")
        with self.assertRaisesRegex(UpstashError, "WRONGTYPE"):
            pipeline.exec()

    def test_a_transaction_is_executed_as_a_whole_or_not_at_all(self):
        transaction = self.redis.multi()
        transaction.set("m:a", 1)
        transaction.incr("m:a")
        self.assertEqual(transaction.exec(), [True, 2])
        transaction = self.redis.multi()
        transaction.set("m:a", 9)
        transaction.execute(["GET"])
        # The client takes the error for a list of results.
        with self.assertRaises(Exception):
            transaction.exec()
        self.assertEqual(self.redis.get("m:a"), "2")

    def test_any_text_survives_with_and_without_base64(self):
        plain = self.connect(rest_encoding=None)
        for text in ['" \\ \n \r \t \0 \x1f', "🦀 日本語 é", "OK", "", " ", "a" * 100_000]:
            self.redis.set("e:text", text)
            self.assertEqual((self.redis.get("e:text"), plain.get("e:text")), (text, text))

    def test_errors_name_their_code(self):
        self.redis.hset("x:hash", "a", 1)
        attempts = [
            (lambda: self.redis.get("x:hash"), "WRONGTYPE"),
            (lambda: self.redis.execute(["GET"]), "wrong number of arguments"),
            (lambda: self.redis.evalsha(NEVER), "NOSCRIPT"),
            (lambda: self.redis.execute(["BLPOP", "l", 0]), "Command is not available: 'BLPOP'"),
            (lambda: self.connect("wrong").ping(), "WRONGPASS"),
            (lambda: self.connect(READ_ONLY_TOKEN).set("k", "v"), "NOPERM"),
        ]
        for attempt, message in attempts:
            with self.assertRaisesRegex(UpstashError, message):
                attempt()

    def test_the_read_only_token_reads(self):
        self.redis.set("r:k", "v")
        self.assertEqual(self.connect(READ_ONLY_TOKEN).get("r:k"), "v")


class Asynchronous(Blocking):
    """The client `upstash_redis.asyncio.Redis`."""

    connect = staticmethod(asynchronous)


def add_cases(test_class):
    prefix = test_class.__name__

    def case(name, pairs):
        def test(self):
            for index, (actual, expected) in enumerate(pairs(self.redis, f"{prefix}:{name}:")):
                self.assertEqual(actual, expected, f"pair {index}")

        return test

    def failure(name, args):
        def test(self):
            target = self.redis
            for part in name.split("."):
                target = getattr(target, part)
            with self.assertRaisesRegex(UpstashError, UNAVAILABLE, msg="it works: remove its line, and add a case"):
                target(*args)

        return test

    for name, pairs in CASES.items():
        setattr(test_class, f"test_{name}", case(name, pairs))
    for name, args, reason in expected_failures():
        setattr(test_class, f"test_{name} is not available: {reason}", failure(name, args))


add_cases(Blocking)
add_cases(Asynchronous)
