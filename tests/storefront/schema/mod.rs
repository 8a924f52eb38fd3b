mod scripts;
mod shards;
