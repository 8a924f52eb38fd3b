pub mod document;

mod keys;
mod scripts;
mod shards;
