//! Sessions: activity, cart writes, login, orders, logout on all devices, and overlapping cleanups.
//!
//! One script is one atomic step, so the interleavings are those of script calls. These take more than one step: an
//! isolate records activity in memory and writes it later; a cleanup reads scores and then ends sessions; a logout on
//! all devices ends the logins and then deletes the data; a visitor whose reply was lost repeats the request; an order is
//! settled some time after its checkout has begun.
//!
//! - `scripts`: the scripts, and the code around them; `steps`: the actions; `properties`: the properties.

mod properties;
mod scripts;
mod steps;

use crate::Protocol;

/// A session is live until it was not seen for more than this time.
pub const IDLE: u8 = 2;
/// A session that began at most so long ago is live by its login alone: `is_young`.
const YOUNG: u8 = IDLE / 2;
/// The cleanup keeps this number of sessions.
pub const LIMIT: usize = 1;
/// The most tokens that a run draws.
const TOKENS: usize = 3;

/// A token, as the number of its draw.
pub type Token = u8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum User {
    Guest,
    Ada,
    Bob,
}

/// Pieces in a cart, by the user who put them there.
pub type Cart = [u8; 3];

/// Everything that Redis holds for one token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Session {
    /// In `login:`.
    pub user: Option<User>,
    /// In `login:` under `ended:`, after the login has ended and before the data is deleted.
    pub ended: Option<User>,
    /// In `recent:`.
    pub seen: Option<u8>,
    /// `cart:`.
    pub cart: Cart,
    /// In `sessions:` of this user.
    pub listed: Option<User>,
}

/// A session that a cleanup has read, and its score.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Victims {
    sessions: Vec<(Token, u8)>,
    cutoff: u8,
    /// All of them were idle when they were read.
    are_idle: bool,
}

/// A request whose reply was lost. The visitor repeats it or gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lost {
    /// `is_noted`: the idempotency key is stored.
    Add {
        token: Token,
        is_noted: bool,
    },
    LogIn {
        old: Token,
        user: User,
    },
}

/// An order of one piece, which is not settled yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Checkout {
    /// The session that the report names.
    token: Token,
    /// The session to whose cart the last request led.
    next: Token,
    /// The session that has the cart of the checkout by now. None: the cart was abandoned.
    place: Option<Token>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub now: u8,
    pub sessions: [Session; TOKENS],
    pub drawn: u8,
    /// The start of each session, which its token names.
    began: [u8; TOKENS],
    /// `abandoned:`, sorted.
    pub abandoned: Vec<(Option<User>, Cart)>,
    /// `once:` of a login: the token that replaced this one, and the one to which its cart moved.
    followers: [Option<(Token, Option<Token>)>; TOKENS],
    order: Option<Checkout>,
    /// `order:` says that the order has left a cart.
    pub is_ordered: bool,
    /// An activity in an isolate's memory, with its time.
    activity: Option<(Token, u8)>,
    cleanups: [Option<Victims>; 2],
    /// Sessions of a user whose logins a logout on all devices has ended.
    ended: Option<(User, Vec<Token>)>,
    lost: Option<Lost>,
    left: Bounds,
    /// The last time at which the visitor of a live session did something.
    active: [u8; TOKENS],
    /// The last activity that an executed request recorded.
    recorded: [u8; TOKENS],
    /// The session was ended by a logout, a login or a cleanup.
    is_over: [bool; TOKENS],
    /// The user of each session, even if its login has ended.
    owners: [Option<User>; TOKENS],
    /// Requests that put a piece into a cart, and requests to log in.
    adds: u8,
    logins: u8,
    /// Pieces that carts have accepted.
    accepted: u8,
    /// Pieces that orders have taken out of carts.
    bought: u8,
    wrong: Option<Wrong>,
}

/// The bounds of a run: the largest number of events of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bounds {
    activities: u8,
    adds: u8,
    logins: u8,
    orders: u8,
    logouts: u8,
    device_logouts: u8,
    lost_replies: u8,
    crashes: u8,
    hours: u8,
}

/// A transition that must not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Wrong {
    EndedAfterActivity,
    EndedBelowLimit,
    MovedExpiredCart,
    NamedAnotherOwner,
    OrderMissedItsCart,
    OrderTookFromAnotherCart,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A visitor does something; the isolate records it in its memory.
    Act(Token),
    /// The isolate writes the recorded activity: the script `touch`.
    WriteActivity,
    /// The platform ends the isolate. The recorded activity is lost.
    EvictIsolate,
    /// A visitor puts a piece into the cart; without a live session a guest's session begins.
    Add {
        token: Option<Token>,
        is_reply_lost: bool,
    },
    LogIn {
        old: Option<Token>,
        user: User,
        is_reply_lost: bool,
    },
    /// The visitor repeats the request whose reply was lost, unchanged.
    Repeat,
    GiveUp,
    LogOut(Token),
    /// A visitor with a cart begins to pay for one piece.
    CheckOut(Token),
    /// A request of the report: the script `buy`. After a lost reply, the report begins again.
    Settle {
        is_reply_lost: bool,
    },
    /// The first step of a logout on all devices: ends the logins.
    EndLogins(Token),
    /// Its second step: deletes the data.
    DeleteData,
    /// The platform ends the isolate before the second step.
    DropDeletion,
    /// A cleanup reads the sessions to end.
    ReadVictims(usize),
    /// It ends them, unless they were seen meanwhile.
    EndVictims(usize),
    DropCleanup(usize),
    /// Time passes.
    Wait,
}

/// The rules of the scripts. Each can be switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// `check`: a session without recent activity is not live.
    LiveNeedsActivity,
    /// `touch` writes nothing for a session without a login.
    TouchNeedsLogin,
    /// `touch` writes nothing for an idle session.
    TouchNeedsActivity,
    /// `touch` cannot move a session back in time.
    TouchOnlyForward,
    /// `cart_write` checks that the session is live.
    AddNeedsLiveSession,
    /// `cart_write` records activity.
    AddRecordsActivity,
    /// `cart_write` knows the idempotency keys of a session.
    AddOncePerKey,
    /// A new guest's session is in `recent:`.
    GuestIsInRecent,
    /// `log_in` ends the old session.
    LoginEndsOldSession,
    /// `log_in` moves the cart of a guest or of the same user to the new session.
    LoginMovesCart,
    /// `log_in` abandons the cart of another user.
    LoginAbandonsForeignCart,
    /// `log_in` leaves an expired session to the cleanup.
    LoginLeavesExpiredSession,
    /// `log_in` returns the session that an earlier attempt with the same old token began.
    LoginOncePerOldToken,
    /// `buy` leads to the session to which a login has moved the cart.
    BuyFollowsLogin,
    /// `buy` does not lead to a session without the cart.
    BuyFollowsCartOnly,
    /// `log_in` keeps the session to which an earlier login moved the cart.
    LoginKeepsPlaceOfCart,
    /// `buy` changes a cart once for each order.
    BuyOncePerOrder,
    /// `end_logins` keeps the user of the cart.
    EndLoginsKeepsOwner,
    /// `end_logins` leaves the session in `recent:`, where the cleanup finds the data.
    EndLoginsKeepsRecent,
    /// `end_logins` ends every listed login.
    EndLoginsEndsAll,
    /// `reap` spares a session whose score has changed.
    ReapChecksScore,
    /// `reap` counts the sessions over the limit itself.
    ReapChecksLimit,
    /// `reap` ends the login.
    ReapEndsLogin,
    /// `reap` deletes the cart.
    ReapDeletesCart,
    /// `reap` records the cart as abandoned.
    ReapRecordsCart,
    /// `reap` deletes the note of an ended login.
    ReapDeletesNote,
    /// The cleanup reads idle sessions below the limit, too.
    CleanupReadsIdle,
    /// The cleanup reads sessions over the limit.
    CleanupReadsOverLimit,
}

/// The model: the bounds of a run, and the rule that is off.
#[derive(Debug, Clone)]
pub struct Sessions {
    bounds: Bounds,
    off: Option<Rule>,
}

const NOTHING: Bounds = Bounds {
    activities: 0,
    adds: 0,
    logins: 0,
    orders: 0,
    logouts: 0,
    device_logouts: 0,
    lost_replies: 0,
    crashes: 0,
    hours: 0,
};

impl Sessions {
    /// Guests and users who log in and out, with lost replies.
    #[must_use]
    pub const fn visitors() -> Self {
        let bounds = Bounds { adds: 2, logins: 2, logouts: 1, lost_replies: 1, ..NOTHING };
        Self { bounds, off: None }
    }

    /// A logout on all of two devices, which may stop half-way, and cleanups.
    #[must_use]
    pub const fn devices() -> Self {
        let bounds = Bounds { adds: 1, logins: 2, device_logouts: 1, crashes: 1, hours: 1, ..NOTHING };
        Self { bounds, off: None }
    }

    /// A logout on all devices while an isolate has an activity in memory.
    #[must_use]
    pub const fn late_activity() -> Self {
        let bounds = Bounds { activities: 1, adds: 1, logins: 1, device_logouts: 1, crashes: 1, hours: 1, ..NOTHING };
        Self { bounds, off: None }
    }

    /// Overlapping cleanups of more sessions than the limit.
    #[must_use]
    pub const fn cleanups() -> Self {
        let bounds = Bounds { activities: 2, adds: 3, crashes: 1, hours: 1, ..NOTHING };
        Self { bounds, off: None }
    }

    /// An order that overlaps logins, with a lost reply.
    #[must_use]
    pub const fn orders() -> Self {
        let bounds = Bounds { adds: 2, logins: 2, orders: 1, logouts: 1, lost_replies: 1, ..NOTHING };
        Self { bounds, off: None }
    }

    fn has(&self, rule: Rule) -> bool {
        self.off != Some(rule)
    }
}

impl Protocol for Sessions {
    type Rule = Rule;
    const RULES: &'static [Rule] = &[
        Rule::LiveNeedsActivity,
        Rule::TouchNeedsLogin,
        Rule::TouchNeedsActivity,
        Rule::TouchOnlyForward,
        Rule::AddNeedsLiveSession,
        Rule::AddRecordsActivity,
        Rule::AddOncePerKey,
        Rule::GuestIsInRecent,
        Rule::LoginEndsOldSession,
        Rule::LoginMovesCart,
        Rule::LoginAbandonsForeignCart,
        Rule::LoginLeavesExpiredSession,
        Rule::LoginOncePerOldToken,
        Rule::BuyFollowsLogin,
        Rule::BuyFollowsCartOnly,
        Rule::LoginKeepsPlaceOfCart,
        Rule::BuyOncePerOrder,
        Rule::EndLoginsKeepsOwner,
        Rule::EndLoginsKeepsRecent,
        Rule::EndLoginsEndsAll,
        Rule::ReapChecksScore,
        Rule::ReapChecksLimit,
        Rule::ReapEndsLogin,
        Rule::ReapDeletesCart,
        Rule::ReapRecordsCart,
        Rule::ReapDeletesNote,
        Rule::CleanupReadsIdle,
        Rule::CleanupReadsOverLimit,
    ];

    fn all_bounds() -> Vec<Self> {
        vec![Self::visitors(), Self::devices(), Self::late_activity(), Self::cleanups(), Self::orders()]
    }

    fn without(self, rule: Rule) -> Self {
        Self { off: Some(rule), ..self }
    }
}
