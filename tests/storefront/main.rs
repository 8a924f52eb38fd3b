//! The storefront, tested on real parts: each test has its own database of a real Redis server, behind the real gateway.
//! The tree mirrors `src`.

mod support;

/// `/_edge/v1`.
mod api;
/// What a person sees, in Chromium.
mod browser;
/// Quantities and who may change them.
mod cart;
/// The operator's page.
mod dashboard;
/// The built-in shop, from a real D1.
mod demo;
/// The built-in shop's flash sales.
mod demo_flash;
/// The border to the platform.
mod edge;
/// The cart between the edge and the origin.
mod edge_cart;
/// The piece that is held for whoever buys it.
mod edge_reservation;
/// Whatever fails, while whatever is done.
mod faults;
/// Limited pieces, held and sold.
mod flash_sale;
/// What orders tell.
mod insights;
/// What is logged.
mod journal;
/// The jobs of the crons.
mod maintenance;
/// What follows from an order.
mod orders;
/// Pages of popular items.
mod page_cache;
/// Whatever bytes come.
mod parsers;
/// The storefront behind us.
mod proxy;
/// Everything at once, in any order.
mod races;
/// Views: counted, ranked, rescaled.
mod ranking;
/// The cleaning of sessions.
mod reap;
/// Copies of rows and their schedule.
mod row_cache;
/// Rows of a D1 table.
mod rows_table;
/// The Lua scripts as a whole.
mod scripts;
/// What an attacker tries, by the chapters of OWASP's ASVS 5.0.
mod security;
/// Login tokens.
mod session;
/// Sessions over several shards, on a cluster.
mod shards;
/// What the Worker weighs.
mod size;
/// What the other tests stand on.
mod store;
/// What happened, counted.
mod traffic;
/// Redis over REST.
mod upstash;
