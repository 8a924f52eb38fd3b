//! Requests to the origin, and the `Edge-*` contract between edgefront and the origin.
//!
//! In reading order:
//! - [`visit`]: one visitor's request.
//! - [`visitor`]: the facts about the visitor that the origin gets, read from Redis.
//! - [`origin`]: the exchange with the origin: any HTTP server, or the demo shop.
//! - [`headers`]: header rules on the way; `cookies`: changes of the visitor's cookies; `set_cookie`: the parts of a `Set-Cookie`;
//!   `csrf`: CSRF protection of forms on shared pages.
//! - [`esi`]: Edge Side Includes, the markup of fragments in a page.
//! - [`fragments`]: parts of a page for one visitor.
//! - [`directives`]: the origin's `Edge-*` response headers.
//! - [`obey`]: executes them: login, logout, cart, order.
//! - [`forward()`]: all of the above for one request.
//! - [`home`]: the exchange between the edge tier and the home tier.
//! - [`failure()`]: the response if the origin fails.

mod cookies;
mod csrf;
pub mod directives;
pub mod esi;
pub mod failure;
pub mod forward;
pub mod fragments;
pub mod headers;
pub mod home;
mod obey;
pub mod origin;
mod set_cookie;
pub mod visit;
pub mod visitor;

pub use cookies::{apply_set_cookie, at_path, cookie_name, set_cookie_pair};
pub use csrf::{is_from_own_page, is_same_origin, protect};
pub use directives::{LogoutScope, OriginDirectives};
pub use failure::failure;
pub use forward::{Replaced, finish, forward};
pub use fragments::{expanded, fetch_fragment, fetch_part, part_request, with_path};
pub use origin::{check_health, fetch_shared};
pub use set_cookie::SetCookie;
pub use visit::{RequestHead, Visit};
pub use visitor::VisitorContext;
