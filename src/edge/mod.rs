//! The Worker's events.
