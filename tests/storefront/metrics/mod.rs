mod journal;
mod traffic;
