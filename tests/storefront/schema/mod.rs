mod redis;
mod scripts;
mod shards;
