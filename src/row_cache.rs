//! Rows of the database, kept in Redis and refreshed on a schedule.
