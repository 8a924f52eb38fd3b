//! What the commands of xtask share with the program that measures: set-up (`tools`, `npm`, `redis`, `wheel`), the Worker's bundle (`worker`,
//! `assets`), and below that processes, steps, stamps and failures.

mod assets;
pub mod children;
pub mod failure;
pub mod npm;
pub mod redis;
pub mod runner;
pub mod stamp;
pub mod steps;
pub mod tools;
pub mod variables;
pub mod wheel;
pub mod worker;
