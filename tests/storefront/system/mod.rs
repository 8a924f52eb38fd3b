//! Tests that cross module borders.

/// Clients that reset their connections.
mod aborts;
/// A person's view, in Chromium.
mod browser;
/// Commands that each action costs.
mod commands;
/// Every fault, during every action.
mod faults;
/// The import rules of `ARCHITECTURE.md`.
mod imports;
/// Histories of concurrent clients.
mod linearizable;
/// The links of the documents.
mod links;
/// More load than the database carries.
mod load;
/// Several locations on one Redis.
mod locations;
/// Runs of the models in `models`, on the real scripts.
mod models;
/// The money that the commands cost.
mod money;
/// Properties of the parsers.
mod parsers;
/// The metrics for Prometheus, and the documents that name them.
mod prometheus;
/// All operations at once, in random order, against a model.
mod races;
/// A database with read replicas.
mod regions;
/// A change of `SHARDS` under traffic.
mod reshard;
/// Random requests against the description of the API.
mod schemathesis;
/// Attacks, by the chapters of OWASP's ASVS 5.0.
mod security;
/// The simulation against the product.
mod simulation;
/// The size of the Worker.
mod size;
/// The test bed itself.
mod store;
/// An edge tier and a home tier.
mod tiers;
