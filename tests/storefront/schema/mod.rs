pub mod document;

mod keys;
mod redis;
mod scripts;
mod shards;
