//! A Lua script. It is sent by its SHA-1, and in full only when the server does not know that.

/// A script that lives as long as the program.
///
/// Each begins with `#!lua flags=allow-key-locking`: Upstash then locks the declared keys instead of the whole database. So
/// every key that a script touches is in KEYS, and a script never stands in a transaction.
#[derive(Debug)]
pub struct Script {
    /// For the log.
    pub name: &'static str,
    /// The Lua text.
    pub source: &'static str,
    /// SHA-1 of `source`, lower-case hexadecimal.
    pub sha1: &'static str,
}
