//! The cost of each step in Redis, in commands as the server counts them: `EVALSHA` is one command, and each call inside a
//! script is one more. The simulation adds these steps up. The tests of the commands (`tests/storefront/system`) hold
//! the sums against a real server.

/// The script `page` for a fresh page: `EVALSHA`, `MGET`.
pub const LOOKUP: f64 = 2.0;
/// A page that is not fresh: `ZRANK` of its item.
pub const RANK: f64 = 1.0;
/// The lease to render a page: `SET`.
pub const LEASE: f64 = 1.0;
/// The session, for a page that is not fresh: `HGET`. A session that began more than half of `SESSION_IDLE` ago takes
/// `ZSCORE`, too; simulated sessions are younger.
pub const SESSION: f64 = 1.0;
/// The script `store`: `EVALSHA`, `MGET`, `SET`.
pub const STORE: f64 = 3.0;
/// The same script without a page: `EVALSHA`, `MGET`, `DEL`.
pub const RELEASE: f64 = 3.0;
/// The account in the script `store`: `ZMSCORE`, `ZADD`. The pages that an isolate stores at the same time take one more
/// for all together, in the script `account`.
pub const ACCOUNT: f64 = 2.0;
/// Finding the oldest pages in the account when it is nearly full: two `ZRANGEBYSCORE`, `ZMSCORE`.
pub const ACCOUNT_FULL: f64 = 3.0;
/// The script `evict`: `EVALSHA`, `ZMSCORE`, `DEL`, `ZREM`, `ZADD`.
pub const EVICT: f64 = 5.0;
/// The script `touch`, for all sessions of a batch: `EVALSHA`, `HMGET`. Sessions that began more than half of
/// `SESSION_IDLE` ago take `ZMSCORE`, too; simulated sessions are younger.
pub const TOUCH: f64 = 2.0;
/// Recording that sessions were seen: one `ZADD` for a batch.
pub const TOUCH_SEEN: f64 = 1.0;
/// An item that a session views for the first time: `ZADD`, and every fourth time `ZREMRANGEBYRANK`.
pub const TOUCH_NEW_ITEM: f64 = 1.25;
/// An item that the session viewed before: `ZADD`, `ZSCORE`, `ZADD`.
pub const TOUCH_KNOWN_ITEM: f64 = 3.0;
/// Counting the views of one item: `ZINCRBY`.
pub const COUNT: f64 = 1.0;
/// An entry of the traffic counters: `XADD`.
pub const TRAFFIC: f64 = 1.0;
/// The script `cart_write` for a living session: `EVALSHA`, `HGET`, `HGETALL`, `HSET`.
pub const CART_WRITE: f64 = 4.0;
/// An activity of a session that began ten seconds ago or earlier: `ZADD`.
pub const CART_WRITE_SEEN: f64 = 1.0;
/// The same script that creates the session of a guest: `EVALSHA`, `HGET`, `HSET` twice, `ZADD`.
pub const CART_WRITE_GUEST: f64 = 5.0;
/// `GET /session`: `HGET`, `HGETALL`. Sessions that began more than half of `SESSION_IDLE` ago take `ZSCORE`, too;
/// simulated sessions are younger.
pub const SESSION_CHECK: f64 = 2.0;
/// A page of which nobody knows that it is dynamic: `EVALSHA`, `MGET` and `SET` of the script `page`; `EVALSHA`, `MGET`,
/// `SET` and `DEL` of the script `store`.
pub const DYNAMIC_PAGE_FIRST: f64 = 7.0;
/// A dynamic page that the isolate knows, for a visitor with a session: the session, and its activity.
pub const DYNAMIC_PAGE: f64 = SESSION + TOUCH + TOUCH_SEEN;
/// The insights of an order of three items after 11 viewed items (`learn.lua`).
pub const ORDER: f64 = 36.0;
/// A reservation of a flash sale, with the check of the session: `EVALSHA`, `GET`, `HGET`, `HMGET`, `ZADD`, `HSET`.
pub const RESERVATION: f64 = 6.0;
/// The script `purge` with its reply.
pub const PURGE: f64 = 4.0;
/// A month of the crons of an idle shop.
pub const CRONS_A_MONTH: f64 = 45_000.0;

/// A page from Redis for a visitor without a session, with its view.
pub const PAGE_WITHOUT_SESSION: f64 = LOOKUP + COUNT;
/// A page from Redis for a visitor with a session, with its view.
pub const PAGE_WITH_SESSION: f64 = LOOKUP + TOUCH + TOUCH_SEEN + TOUCH_NEW_ITEM + COUNT;
/// A page that is not stored yet, for a visitor without a session, alone: looked up, rendered, stored.
pub const COLD_PAGE_WITHOUT_SESSION: f64 = LOOKUP + RANK + LEASE + STORE + ACCOUNT + COUNT;
/// The same for a visitor with a session.
pub const COLD_PAGE: f64 = COLD_PAGE_WITHOUT_SESSION + SESSION + TOUCH + TOUCH_SEEN + TOUCH_NEW_ITEM;

/// Bytes on the wire besides pages: an HTTP request with its head, and a response.
pub const REQUEST_BYTES: f64 = 900.0;
/// See [`REQUEST_BYTES`].
pub const RESPONSE_BYTES: f64 = 350.0;
/// Base64 makes three bytes of a page four.
pub const BASE64: f64 = 4.0 / 3.0;

/// Dollars of a command (Upstash, pay as you go), of a request to a Worker, and of a gigabyte beyond 200 GB a month:
/// list prices of 23 November 2026.
pub const DOLLARS_PER_COMMAND: f64 = 0.20 / 100_000.0;
/// See [`DOLLARS_PER_COMMAND`].
pub const DOLLARS_PER_REQUEST: f64 = 0.30 / 1_000_000.0;
/// See [`DOLLARS_PER_COMMAND`].
pub const DOLLARS_PER_GIGABYTE: f64 = 0.03;
/// Gigabytes a month without a price.
pub const FREE_GIGABYTES: f64 = 200.0;
