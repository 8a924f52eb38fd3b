//! Tests of the program `xtask` from outside, in temporary directories.

mod npm;
mod support;
mod workspace;
