//! The built-in shop.
