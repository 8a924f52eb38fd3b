//! Carts: the quantity of each item, in a hash per session.
//!
//! - `cart`: a cart and its lines.
//! - `quantity`: the quantity of one item, checked.
//! - `change`: the changes that a visitor or the origin asks for.
//! - `read`: reads a session and its cart.
//! - `write`: changes a cart in one script. The script starts a guest's session if the visitor has none that is live,
//!   so the first item is in the cart after one request.
//! - [`abandoned`]: the carts that ended with their session.

pub mod abandoned;

mod cart;
mod change;
mod quantity;
mod read;
mod write;

pub use cart::{Cart, CartLine};
pub use change::{CartChange, CartChanges};
pub use quantity::Quantity;
pub use read::{read, read_command, read_with_viewed_items};
pub use write::{CartWriteOutcome, CartWriteRequest, change, write};
