mod event_log;
mod traffic;
