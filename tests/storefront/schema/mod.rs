mod carry_over;
pub mod document;

mod keys;
mod layouts;
mod redis;
mod scripts;
pub mod shards;
