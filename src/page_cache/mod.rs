//! The page cache: a shared HTTP cache (RFC 9111) in front of the origin. It stores pages whose freshness the origin
//! states, and pages of popular items. A stored page was rendered without cookies and identity.
//!
//! A page ages in four phases. Fresh: it is served. Stale: it is served, and the holder of the lease renders it again
//! after its response. Kept: the holder of the lease validates it, and other requests wait. Gone: the holder renders it,
//! other requests wait, and nothing can replace a failed response.
//!
//! The path of a request, in reading order:
//! - [`admission`]: the requests that the cache may answer; the others bypass it. The responses that popularity admits.
//! - [`key`], [`selecting`]: the page's identity, and the request headers that select a variant; [`normalized`](self):
//!   their values.
//! - [`visitor_cookies`]: the judgement of the visitor's cookies.
//! - [`decide`], [`last_step`]: the decisions as pure functions; [`policy`]: the HTTP rules that they follow;
//!   `content_type`: pages and files.
//! - [`execute`](self): gathers the facts and runs the steps: serve, render, bypass, invalidate.
//! - [`memory`]: the isolate's copies and notes.
//! - [`location`]: the location's cache, which its isolates share.
//! - [`lookup`], [`store`](self), [`purge`](self): the scripts in Redis; `account`: the sizes of the stored pages.
//!   [`hit_for_miss`](self): the note on an unstorable page.
//! - [`holes`]: the parts of a page that belong to one visitor.
//! - [`session_ids`]: the ids of sessions, which no stored page contains.
//! - [`respond`](self): responses from a stored page; [`stored_page`], [`cache_status`]: the formats.

pub mod admission;
pub mod cache_status;
pub mod decide;
pub mod holes;
pub mod key;
pub mod last_step;
pub mod location;
pub mod lookup;
pub mod memory;
pub mod policy;
pub mod selecting;
pub mod session_ids;
pub mod stored_page;
pub mod visitor_cookies;

mod account;
mod content_type;
mod execute;
mod hit_for_miss;
mod normalized;
mod purge;
mod respond;
mod store;

pub use account::PageAccount;
pub use admission::admit;
pub use cache_status::CacheStatus;
pub use execute::{
    ExplainedEntry, ExplainedPage, Explanation, HandedOver, RenderRequest, UnstorableResponse, answer, bypass, explain,
    forward_unsafe, render, visitor_content_for_browser,
};
pub use hit_for_miss::{Unstorable, header_lines};
pub use holes::{
    placeholder::token_range,
    visitor_content::{NotFilled, VisitorContent, VisitorKey},
};
pub use key::PageKey;
pub use location::LocationPages;
pub use lookup::{
    Lease, LeaseRequest, LeaseTerms, Lookup, LookupResult, LookupTerms, PageState, RankRead, SessionRead, Wanted,
    look_up,
};
pub use memory::PageMemory;
pub use policy::{ForwardReason, Reason};
pub use purge::{Purge, PurgeMode, purge};
pub use selecting::SelectingHeaders;
pub use store::{PageWriter, invalidate, note_unstorable, release};
pub use stored_page::StoredPage;
