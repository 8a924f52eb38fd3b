//! Pages of popular items, stored as the origin sent them.
