pub mod api;
mod dashboard;
