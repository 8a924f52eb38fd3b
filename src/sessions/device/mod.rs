//! The devices of a user. A device is a session; every session of a user may list the user's devices and end them.
//!
//! A call for a visitor takes two requests. A script must know its keys before it runs, and only the reply to the first
//! request names the user.
//!
//! - `id`: the public id of a device.
//! - `label`: the name by which the user recognizes it.
//! - `list`: the devices of a user.
//! - `logout`: ends some of them.

mod id;
mod label;
mod list;
mod logout;

pub use id::DeviceId;
pub use label::DeviceLabel;
pub use list::{Device, devices_of_user, latest_login, list_devices};
pub use logout::{DeviceSelection, EndedSessions, log_out_devices};
