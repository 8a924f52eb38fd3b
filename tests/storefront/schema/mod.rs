pub mod document;
mod scripts;
mod shards;
