//! The Lua scripts. Each static is one file of this directory. The client sends its SHA-1, and its text only to a server that
//! does not know the hash. A changed script does not compile until its pinned hash follows.

use upstash_rest::{Script, script};

/// A script of this directory: the file's name without its ending, and the pinned SHA-1 of its stripped text.
macro_rules! lua {
    ($name:literal, $sha1:literal) => {
        script!($name, include_str!(concat!($name, ".lua")), $sha1)
    };
}

/// Every script; a test compares each hash with its text.
pub static ALL: &[&Script] = &[
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
    &RELATED,
    &RESCALE,
    &STORE,
    &TOUCH,
];

/// Settles an order: removes the bought lines from the cart, once per order.
pub static BUY: Script = lua!("buy", "a8532c75602040783a74ca15d9556f89ca8ae9a2");

/// Sets, adds or removes a cart line within the limits, and keeps the session alive.
pub static CART_WRITE: Script = lua!("cart_write", "8677aee4eb3db1466fcf0d3531a43ba665fdbe87");

/// Claims due rows with a lease.
pub static CLAIM: Script = lua!("claim", "10db5f4e1abe1fbd97e581465e8f4a80b2fc4696");

/// Stores a refreshed row and schedules its next refresh, if the lease still holds.
pub static COMMIT: Script = lua!("commit", "ffa91851d80eda4038fb227e7c8171fd0da56c48");

/// Counts a reported view once per idempotency key.
pub static COUNT_ONCE: Script = lua!("count_once", "b2de4343f07c31cd3cbfd2b64f4f65b78ee602d2");

/// Lists a user's sessions with their devices.
pub static DEVICES: Script = lua!("devices", "53d2b4a70149386ef9c3d5691840e4f80e0f9296");

/// Ends logins of one user.
pub static END_LOGINS: Script = lua!("end_logins", "c5c4d00ebc83454c4069a39cbafb6481069f005f");

/// Deletes stored pages.
pub static EVICT: Script = lua!("evict", "0922b4878f4aee287a34ae1ec5e77ac4001f654a");

/// Reads a flash sale and reserves a piece.
pub static FLASH: Script = lua!("flash", "2dcf4c5345d86cbfb03cc5745874c53703dcfe8e");

/// Cancels a reservation.
pub static FLASH_CANCEL: Script = lua!("flash_cancel", "c01986857aa05943c0f9019b4c185b9c01fc5907");

/// Turns a reservation into a sale.
pub static FLASH_CONFIRM: Script = lua!("flash_confirm", "540c0e3227f17bd56fffaaaa85c60b28f8569790");

/// Reads a visitor's reservation.
pub static FLASH_HELD: Script = lua!("flash_held", "27f7acdc79e147e065f690d8cf83d2f6ae641d5d");

/// Adds an order to the insights, once per order.
pub static LEARN: Script = lua!("learn", "7d48c92a3e0e2acb06646ee0f417cf4d97798d44");

/// Replaces a session by a signed-in one; the cart comes along.
pub static LOG_IN: Script = lua!("log_in", "f25eda01631b112aefed6d11a2b2d3a66acc4a2f");

/// Looks a page up and grants the lease to render it.
pub static PAGE: Script = lua!("page", "23209a19d6c14db47a13e0153d23b1f85ffe36dd");

/// Marks pages as purged.
pub static PURGE: Script = lua!("purge", "7799451a622e0e1ad30686e863bffb8adf088446");

/// Ends sessions and records their carts as abandoned.
pub static REAP: Script = lua!("reap", "91243a06f024f009df64754f8b75281a27a7b00f");

/// Reads the items that were bought together.
pub static RELATED: Script = lua!("related", "760aeae07be2f1155879a992c80f3adf577f8b71");

/// Halves the ranking once per half-life and trims it.
pub static RESCALE: Script = lua!("rescale", "c0e1b44c75b5a806c7e1f3ae6814a72bf837178d");

/// Stores a rendered page and ends its lease.
pub static STORE: Script = lua!("store", "9da46aa206ed9d267c62e77717c77fe6cf0a5448");

/// Records the activity of sessions and their item views.
pub static TOUCH: Script = lua!("touch", "b8c6f1dbe17f919a9becf03046959b6f6405b8b4");
