mod documents;
mod redis;
mod scripts;
mod shards;
