//! Sessions: check, touch, log in, log out, clean up.
//!
//! A session is live while `login:` holds its token and `recent:` holds an activity within the idle time. Each script
//! that writes for a session checks both in the same step, so a slow request cannot revive an ended session.
//!
//! - [`cookie`]: the format of the session cookie. `keyring` signs and verifies it.
//! - `sync_cookies`: the cookies with the sync tokens of read regions.
//! - `session`: the check that a session is live.
//! - `touch`: records activity and item views, for many sessions at once.
//! - `viewed`: the items that a session viewed last.
//! - `login`: starts a user's session under a new token and moves the cart to it.
//! - `logout`: ends one session, or all sessions of a user.
//! - [`device`]: lists a user's sessions as devices and ends them.
//! - `cleanup`: ends idle sessions, and the oldest sessions over the limit.
//! - `reap`: deletes the data of ended sessions, for `logout`, `device` and `cleanup`.

pub mod cookie;
pub mod device;

mod cleanup;
mod keyring;
mod login;
mod logout;
mod reap;
mod session;
mod sync_cookies;
mod touch;
mod viewed;

pub use cleanup::{CleanupProbe, CleanupReport, clean};
pub use device::{
    Device, DeviceSelection, EndedSessions, devices_of_user, latest_login, list_devices, log_out_devices,
};
pub use keyring::Keyring;
pub(crate) use login::LOGIN_RETRY_KEY;
pub use login::{LoginRequest, log_in};
pub use logout::{log_out, log_out_user};
pub(crate) use session::start_if_young;
pub use session::{
    Session, check, check_commands, check_latest, check_with, empty_if_damaged, from_check, is_young, split_check,
};
pub use sync_cookies::{SyncCause, SyncCookies};
pub use touch::{SessionTouch, TOUCH_EVERY, TouchOutcome, touch_command};
pub use viewed::{MAX_VIEWED_ITEMS, parse_viewed_items, read_viewed_items, viewed_items_command};
