//! The workloads. Every candidate gets the same requests. Their paths are those of edgefront's API, which the peers
//! also serve.

/// The number of signed-in visitors.
pub const SESSIONS: u64 = 1_000;
/// The number of popular items. Each has a page and a row.
pub const ITEMS: u64 = 100;
/// The number of items in each cart.
pub const CART_ITEMS: u64 = 5;
/// The number of items that rank below the popular ones and whose pages are not stored.
pub const COLD_ITEMS: u64 = 200_000;

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, clap::ValueEnum)]
pub enum Workload {
    /// A popular page for a signed-in visitor.
    Hot,
    /// A popular page for a visitor without a session.
    Guest,
    /// A popular page with two holes, for a signed-in visitor: user and cart.
    Holes,
    /// A page that is not stored yet, for a signed-in visitor.
    Cold,
    /// A write that sets the quantity of an item in the cart.
    Cart,
    /// A row of the database.
    Row,
    /// The visitor's session and cart.
    Session,
}

/// A workload under certain conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scenario {
    pub workload: Workload,
    /// The added latency of a request to Redis, milliseconds.
    pub latency_ms: u32,
    /// The number of connections that send requests at the same time.
    pub connections: usize,
}

impl Workload {
    pub const ALL: [Self; 7] = [Self::Hot, Self::Guest, Self::Holes, Self::Cold, Self::Cart, Self::Row, Self::Session];

    /// The name in tables.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Hot => "hot page, signed in",
            Self::Guest => "hot page, no session",
            Self::Holes => "hot page, two holes",
            Self::Cold => "cold page, signed in",
            Self::Cart => "cart write",
            Self::Row => "row read",
            Self::Session => "session check",
        }
    }

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hot => "hot",
            Self::Guest => "guest",
            Self::Holes => "holes",
            Self::Cold => "cold",
            Self::Cart => "cart",
            Self::Row => "row",
            Self::Session => "session",
        }
    }

    pub const fn is_page(self) -> bool {
        matches!(self, Self::Hot | Self::Guest | Self::Holes | Self::Cold)
    }

    /// Returns whether the peers serve it. They know no holes.
    pub const fn includes_peers(self) -> bool {
        !matches!(self, Self::Holes)
    }

    /// Returns whether Workers that do nothing are measured as well. One workload suffices, because they give every
    /// request the same response.
    pub const fn includes_bare_workers(self) -> bool {
        matches!(self, Self::Hot)
    }
}
