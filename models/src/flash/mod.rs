//! A flash sale: reservations, orders, and messages of the shop that arrive late, twice or never.
//!
//! The shop's database has the last word. edgefront holds a copy of the sale's row, which may be old, and counts the
//! orders that the shop reports. The visitor knows a reservation only by its reply.
//!
//! Assumption: the row is refreshed at least once in a time step (the row's period is seconds, a time step is the
//! grace period of 30 s). Assumption: a visitor does not cancel a reservation that is paid. Assumption: a report of an
//! order that names another window arrives after its first report. Without it, the order counts in the wrong window.
//!
//! - `scripts`: the scripts, and the code around them; `steps`: the actions; `properties`: the properties.

mod properties;
mod scripts;
mod steps;

use crate::Protocol;

/// Duration of a reservation, in time steps.
pub const HOLD: u8 = 2;
/// Time for which the piece is held beyond that.
pub const GRACE: u8 = 1;
/// Duration of a window.
pub const WINDOW: u8 = 5;
const USERS: usize = 2;
/// The most reservations and orders of a run.
const MAX_IDS: usize = 4;

/// The number of a user, a reservation, an order or a window.
pub type Id = u8;

/// A reservation as Redis holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hold {
    pub id: Id,
    pub ends: u8,
}

/// A reservation as its visitor knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Told {
    pub id: Id,
    pub ends: u8,
    pub window: Id,
    end: Option<End>,
}

/// The end of a reservation before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum End {
    Cancelled,
    Paid,
}

/// An order in the shop's database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Order {
    pub user: Id,
    pub window: Id,
}

/// The report of an order, which names a reservation by its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Report {
    pub order: Id,
    pub window: Id,
}

/// The keys of the sale in Redis: `flash:` and `held:`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Sale {
    /// The window that the keys belong to; `None`: there are no keys.
    pub window: Option<Id>,
    pub sold: u8,
    pub holds: [Option<Hold>; USERS],
    /// In `upkeep`: a moment before which no hold ends, and the number of holds.
    pub first_end: u8,
    pub held: u8,
    pub bought: [bool; USERS],
    /// Orders that were counted.
    pub counted: [bool; MAX_IDS],
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub now: u8,
    pub sale: Sale,
    /// `order:`: the window of an order's first report.
    pub first_reports: [Option<Id>; MAX_IDS],
    /// The copy of the row: the window, its start, and the pieces sold.
    pub row: (Id, u8, u8),
    /// The same in the shop's database.
    pub database: (Id, u8, u8),
    /// All orders of the shop.
    pub orders: Vec<Order>,
    /// Reports under way, sorted.
    reports: Vec<Report>,
    /// By user: the reservation that the visitor was told last, and the one before.
    pub told: [[Option<Told>; 2]; USERS],
    drawn: u8,
    left: Bounds,
    wrong: Option<Wrong>,
}

/// The bounds of a run: the largest number of events of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bounds {
    reservations: u8,
    cancellations: u8,
    purchases: u8,
    lost_replies: u8,
    lost_reports: u8,
    repeated_reports: u8,
    windows: u8,
    steps: u8,
}

/// A transition that must not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Wrong {
    PaidInVain,
    ReturnedExpired,
    RefusedWithoutPurchase,
    ReservedAfterEnd,
    ReservedAfterPurchase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Reserve {
        user: Id,
        is_reply_lost: bool,
    },
    /// Cancels the reservation that the visitor was told last, or (`is_old`) the one before.
    Cancel {
        user: Id,
        is_old: bool,
    },
    /// The shop sells the piece of the last reservation, and reports the order.
    Buy(Id),
    /// A report of an order arrives. It may arrive again.
    Deliver(Report),
    Lose(Report),
    /// The shop reports an order again, with the reservation that its user has now.
    ReportAgain(Id),
    /// edgefront reads the row.
    Refresh,
    /// The shop begins the next window.
    BeginWindow,
    Wait,
}

/// The rules of the scripts. Each can be switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// `flash` subtracts the held pieces.
    ReserveCountsHolds,
    /// `flash` subtracts the orders that were reported.
    ReserveCountsReported,
    /// `flash` subtracts the pieces that the row names as sold.
    ReserveCountsRow,
    /// `flash` refuses a user who has bought.
    ReserveOncePerUser,
    /// `flash` returns the reservation that the user has.
    ReserveOncePerHold,
    /// `flash` refuses reservations after the end of the window.
    ReserveBeforeEnd,
    /// A hold that is over does not count.
    HoldsExpire,
    /// `upkeep` names the end of the first hold, and not that of the last one.
    UpkeepNamesFirstEnd,
    /// A piece is held for the grace period after its reservation.
    GraceKeepsPiece,
    /// The keys of another window count as empty.
    NewWindowIsEmpty,
    /// The first reservation of a window deletes the keys of the last one.
    NewWindowDeletesKeys,
    /// `flash_cancel` compares the reservation's id.
    CancelChecksId,
    /// `flash_cancel` returns no piece whose hold is over.
    CancelChecksEnd,
    /// `flash_cancel` ends the hold.
    CancelEndsHold,
    /// `flash_cancel` lowers the number of holds.
    CancelLowersHeld,
    /// `flash_confirm` counts each order once.
    ConfirmOncePerOrder,
    /// `flash_confirm` ignores an order of another window.
    ConfirmChecksWindow,
    /// An order belongs to the window of its first report.
    ConfirmKeepsFirstWindow,
    /// `flash_confirm` ends the user's hold.
    ConfirmEndsHold,
    /// `flash_confirm` lowers the number of holds.
    ConfirmLowersHeld,
    /// `flash_confirm` notes the purchase of the user.
    ConfirmNotesPurchase,
}

/// The model: the bounds of a run, and the rule that is off.
#[derive(Debug, Clone)]
pub struct Flash {
    /// The pieces of every window.
    pub pieces: u8,
    bounds: Bounds,
    off: Option<Rule>,
}

impl Flash {
    /// One window to its end.
    #[must_use]
    pub const fn one_window() -> Self {
        let bounds = Bounds {
            reservations: 3,
            cancellations: 1,
            purchases: 2,
            lost_replies: 1,
            lost_reports: 1,
            repeated_reports: 1,
            windows: 0,
            steps: 5,
        };
        Self { pieces: 1, bounds, off: None }
    }

    /// Two windows, and reports that arrive in the second one.
    #[must_use]
    pub const fn two_windows() -> Self {
        let bounds = Bounds {
            reservations: 3,
            cancellations: 1,
            purchases: 2,
            lost_replies: 0,
            lost_reports: 0,
            repeated_reports: 1,
            windows: 1,
            steps: 2,
        };
        Self { pieces: 1, bounds, off: None }
    }

    /// Two pieces: what one user does must not use up both.
    #[must_use]
    pub const fn two_pieces() -> Self {
        let bounds = Bounds {
            reservations: 3,
            cancellations: 1,
            purchases: 1,
            lost_replies: 1,
            lost_reports: 0,
            repeated_reports: 1,
            windows: 0,
            steps: 1,
        };
        Self { pieces: 2, bounds, off: None }
    }

    /// Two pieces, whose holds end at different times.
    #[must_use]
    pub const fn two_ends() -> Self {
        let bounds = Bounds {
            reservations: 3,
            cancellations: 1,
            purchases: 0,
            lost_replies: 0,
            lost_reports: 0,
            repeated_reports: 0,
            windows: 0,
            steps: 5,
        };
        Self { pieces: 2, bounds, off: None }
    }

    fn has(&self, rule: Rule) -> bool {
        self.off != Some(rule)
    }
}

impl Protocol for Flash {
    type Rule = Rule;
    const RULES: &'static [Rule] = &[
        Rule::ReserveCountsHolds,
        Rule::ReserveCountsReported,
        Rule::ReserveCountsRow,
        Rule::ReserveOncePerUser,
        Rule::ReserveOncePerHold,
        Rule::ReserveBeforeEnd,
        Rule::HoldsExpire,
        Rule::UpkeepNamesFirstEnd,
        Rule::GraceKeepsPiece,
        Rule::NewWindowIsEmpty,
        Rule::NewWindowDeletesKeys,
        Rule::CancelChecksId,
        Rule::CancelChecksEnd,
        Rule::CancelEndsHold,
        Rule::CancelLowersHeld,
        Rule::ConfirmOncePerOrder,
        Rule::ConfirmChecksWindow,
        Rule::ConfirmKeepsFirstWindow,
        Rule::ConfirmEndsHold,
        Rule::ConfirmLowersHeld,
        Rule::ConfirmNotesPurchase,
    ];

    fn all_bounds() -> Vec<Self> {
        vec![Self::one_window(), Self::two_windows(), Self::two_pieces(), Self::two_ends()]
    }

    fn without(self, rule: Rule) -> Self {
        Self { off: Some(rule), ..self }
    }
}
