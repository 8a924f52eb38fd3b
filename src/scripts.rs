//! Every Lua script, so that a test can hold each one's hash and its text together. A script stands beside the function
//! that calls it; its text is in `scripts/`.

use crate::{cart, flash_sale, insights, orders, page_cache, ranking, row_cache, session, upstash::Script};

/// One for each file of `scripts/`.
pub static ALL: &[&Script] = &[
    &orders::BUY,
    &cart::CART_WRITE,
    &row_cache::CLAIM,
    &row_cache::COMMIT,
    &ranking::COUNT_ONCE,
    &session::DEVICES,
    &session::END_LOGINS,
    &page_cache::EVICT,
    &flash_sale::FLASH,
    &flash_sale::FLASH_CANCEL,
    &flash_sale::FLASH_CONFIRM,
    &flash_sale::FLASH_HELD,
    &insights::LEARN,
    &session::LOG_IN,
    &page_cache::PAGE,
    &page_cache::PURGE,
    &session::REAP,
    &insights::RELATED,
    &ranking::RESCALE,
    &page_cache::STORE,
    &session::TOUCH,
];
