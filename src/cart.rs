//! A visitor's cart: quantity per item.
