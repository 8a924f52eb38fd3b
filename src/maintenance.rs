//! The three jobs of the crons.
