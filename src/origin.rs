//! The storefront behind us.
