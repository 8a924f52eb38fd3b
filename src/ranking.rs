//! Which items are viewed most.
