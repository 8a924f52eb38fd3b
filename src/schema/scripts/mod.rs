//! The Lua scripts. Each static is one file of this directory. Its SHA-1 names it in Redis (`EVALSHA`).
//!
//! A file begins with its purpose, its keys, its arguments and its reply. The build strips comments and indentation, so
//! a change of comments keeps the SHA-1; a test compares each SHA-1 with its text.

use upstash_rest::{Script, script};

/// A script of this directory: the file's name without its ending, and the pinned SHA-1 of its stripped text.
macro_rules! lua {
    ($name:literal, $sha1:literal) => {
        script!($name, include_str!(concat!($name, ".lua")), $sha1)
    };
}

/// The SHA-1 of `page.lua` with the flag `no-writes`.
const PAGE_READS: &str = "d87e6faaabfbaa51032ab6068db89db8c7a8d4b1";

/// The SHA-1 of `related.lua` with the flag `no-writes`.
const RELATED_READS: &str = "75c89709da758363bc14bdad77de179031aba68a";

/// Every script.
pub static ALL: &[&Script] = &[
    &ACCOUNT,
    &BUY,
    &CART_WRITE,
    &CLAIM,
    &COMMIT,
    &COUNT_ONCE,
    &DEVICES,
    &END_LOGINS,
    &EVICT,
    &FLASH,
    &FLASH_CANCEL,
    &FLASH_CONFIRM,
    &FLASH_HELD,
    &LEARN,
    &LOG_IN,
    &PAGE,
    &PURGE,
    &REAP,
    &REFUTE,
    &RELATED,
    &RESCALE,
    &STORE,
    &TOUCH,
];

/// Adds stored pages to the account of page sizes, and names the pages to evict if the account is nearly full.
pub static ACCOUNT: Script = lua!("account", "d636346692118b3f370935531da137509bb040e4");

/// Removes the bought quantities from a cart, once per order.
pub static BUY: Script = lua!("buy", "342e26eb947ffa1d3da616f591d9a4fb5caf5e42");

/// Changes a cart, and creates a guest's session if there is no live session.
pub static CART_WRITE: Script = lua!("cart_write", "c04e72bb91bc414029fff35451e9fb2ddecbf823");

/// Leases rows to one refresher, so that no other refresher gets them until the lease ends.
pub static CLAIM: Script = lua!("claim", "0eb880b580337787d0fb7d55ebcf7a3819eac96d");

/// Ends the leases of rows, stores their new copies, and sets when the rows are due again.
pub static COMMIT: Script = lua!("commit", "07c763c0899bbaad639a01fe7a42955cca2e8324");

/// Counts a reported view of an item that is in the ranking, once per idempotency key.
pub static COUNT_ONCE: Script = lua!("count_once", "b2de4343f07c31cd3cbfd2b64f4f65b78ee602d2");

/// Lists the live sessions of a user, newest login first.
pub static DEVICES: Script = lua!("devices", "0849f89d05994e6b6ca49ed611c6052e416da2fc");

/// Ends logins of a user, so that their tokens are worthless at once.
pub static END_LOGINS: Script = lua!("end_logins", "eebd1713d0aca0bd46a6c9590566b73d39d389d2");

/// Deletes stored pages and takes them out of the account of page sizes.
pub static EVICT: Script = lua!("evict", "3790a7d7393607375c9a7044639c49095c8a35a5");

/// Reads a flash sale as one visitor sees it, and reserves a piece if the caller asks for one.
pub static FLASH: Script = lua!("flash", "15422186c0e7773466732cc2e677bf84a2de638b");

/// Gives a visitor's piece of a flash sale back, once.
pub static FLASH_CANCEL: Script = lua!("flash_cancel", "2639d4f8a6fafaced070ca1a362d6709bd969e62");

/// Counts an order of a flash sale as a sold piece, once per order.
pub static FLASH_CONFIRM: Script = lua!("flash_confirm", "3e4ac1059996bf656250376279ea10c80b4db40a");

/// Finds the piece of a flash sale that is held for a visitor.
pub static FLASH_HELD: Script = lua!("flash_held", "27f7acdc79e147e065f690d8cf83d2f6ae641d5d");

/// Counts an order in the insights, once per order.
pub static LEARN: Script = lua!("learn", "f6d0597121f8130e6f328222e4eec5e935111329");

/// Starts a user's session under a new token and ends the old session.
pub static LOG_IN: Script = lua!("log_in", "f8fefe970a2d54ed299c7d09ec0ba9853923339d");

/// Reads the stored page that a request selects, unless it is purged, and grants the lease to render it.
pub static PAGE: Script = lua!("page", "59b3d312be4514c7fff3e95365a00d43e3ac2dd1").readable(PAGE_READS);

/// Marks pages as purged.
pub static PURGE: Script = lua!("purge", "c4e1e8fbb7252d05b6255fecc3874a3bfa89d08d");

/// Ends sessions and records their carts as abandoned.
pub static REAP: Script = lua!("reap", "f2aa6f7b623ec0ba3b146c1e134d05c64bde0eb0");

/// Ends the hit-for-miss note of a page. A lease in its place stays.
pub static REFUTE: Script = lua!("refute", "c2d4016c44a98d84ade994951c658808d7db8f69");

/// Ranks the items that are bought with an item, or by visitors who had viewed it.
pub static RELATED: Script = lua!("related", "a8d9f5bd0d88425f0c9423c03372387678220702").readable(RELATED_READS);

/// Halves the ranking once for each half-life that has ended since the last rescale, and keeps the best ranks.
pub static RESCALE: Script = lua!("rescale", "9a858aadb4694f5cb774e3b6403826a209060d1d");

/// Ends a render: stores the page, and ends the lease.
pub static STORE: Script = lua!("store", "4484a5290b4be0c97671bbe5aac7e9ffbaedeee1");

/// Records that sessions were seen, and the items that they viewed.
pub static TOUCH: Script = lua!("touch", "22bfc60c90130c9b73011ceb838991ef512b0812");
