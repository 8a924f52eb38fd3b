//! A flash sale: reservations, orders, and messages of the shop that arrive late, twice or never.
//!
//! The shop's database has the last word. edgefront holds a copy of the sale's row, which may be old, and counts the
//! orders that the shop reports. The visitor knows a reservation only by its reply.
//!
//! Assumption: the row is refreshed at least once in a time step (the row's period is seconds, a time step is the
//! grace period of 30 s). Assumption: a visitor does not cancel a reservation that is paid. Assumption: a report of an
//! order that names another window arrives after its first report. Without it, the order counts in the wrong window.

use stateright::{Model, Property};

use crate::Protocol;

/// How long a reservation lasts, in time steps.
pub const HOLD: u8 = 2;
/// How long the piece is held beyond that.
pub const GRACE: u8 = 1;
/// How long a window lasts.
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

/// What happens at most how often in a run.
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
    Reserve { user: Id, is_reply_lost: bool },
    /// Cancels the reservation that the visitor was told last, or (`is_old`) the one before.
    Cancel { user: Id, is_old: bool },
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
    /// `flash_confirm` counts each order once.
    ConfirmOncePerOrder,
    /// `flash_confirm` ignores an order of another window.
    ConfirmChecksWindow,
    /// An order belongs to the window of its first report.
    ConfirmKeepsFirstWindow,
    /// `flash_confirm` ends the user's hold.
    ConfirmEndsHold,
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

    fn has(&self, rule: Rule) -> bool {
        self.off != Some(rule)
    }

    /// The keys as `flash` sees them, for the window of the row.
    fn known(&self, state: &State) -> Sale {
        let is_current = state.sale.window == Some(state.row.0) || !self.has(Rule::NewWindowIsEmpty);
        if is_current { state.sale.clone() } else { Sale::default() }
    }

    /// The pieces that can be reserved: `left` of the script `flash`.
    #[must_use]
    pub fn pieces_left(&self, state: &State) -> u8 {
        let known = self.known(state);
        let row = if self.has(Rule::ReserveCountsRow) { state.row.2 } else { 0 };
        let reported = if self.has(Rule::ReserveCountsReported) { known.sold } else { 0 };
        let held = if self.has(Rule::ReserveCountsHolds) { self.pieces_held(state) } else { 0 };
        self.pieces.saturating_sub(row.max(reported)).saturating_sub(held)
    }

    /// The pieces that are held: `held` of the script `flash`.
    #[must_use]
    pub fn pieces_held(&self, state: &State) -> u8 {
        let known = self.known(state);
        let holds = known.holds.iter().flatten().filter(|hold| self.keeps_piece(**hold, state.now));
        u8::try_from(holds.count()).unwrap_or(u8::MAX)
    }

    fn keeps_piece(&self, hold: Hold, now: u8) -> bool {
        let grace = if self.has(Rule::GraceKeepsPiece) { GRACE } else { 0 };
        hold.ends + grace > now || !self.has(Rule::HoldsExpire)
    }

    /// The user's reservation as `flash` shows it.
    #[must_use]
    pub fn reservation(&self, state: &State, user: Id) -> Option<Hold> {
        self.known(state).holds[usize::from(user)].filter(|hold| hold.ends > state.now)
    }

    /// `flash` notes a purchase of the user.
    #[must_use]
    pub fn has_bought(&self, state: &State, user: Id) -> bool {
        self.known(state).bought[usize::from(user)]
    }

    /// The script `flash` with the operation `reserve`. Returns the reservation.
    fn reserve(&self, state: &mut State, user: Id) -> Option<Hold> {
        let index = usize::from(user);
        let (window, starts, _) = state.row;
        let has_order = state.orders.iter().any(|order| (order.user, order.window) == (user, window));
        if self.has_bought(state, user) && self.has(Rule::ReserveOncePerUser) {
            if !has_order {
                state.wrong = Some(Wrong::RefusedWithoutPurchase);
            }
            return None;
        }
        let mine = self.reservation(state, user).filter(|_| self.has(Rule::ReserveOncePerHold));
        if mine.is_some() {
            return mine;
        }
        let is_over = state.now >= starts + WINDOW;
        if (is_over && self.has(Rule::ReserveBeforeEnd)) || self.pieces_left(state) == 0 {
            return None;
        }
        if is_over {
            state.wrong = Some(Wrong::ReservedAfterEnd);
        }
        let is_counted =
            |(number, order): (usize, &Order)| (order.user, order.window) == (user, window) && state.sale.counted[number];
        if state.orders.iter().enumerate().any(is_counted) {
            state.wrong = Some(Wrong::ReservedAfterPurchase);
        }
        if state.sale.window != Some(window) && self.has(Rule::NewWindowDeletesKeys) {
            state.sale = Sale::default();
        }
        let now = state.now;
        for hold in &mut state.sale.holds {
            *hold = hold.filter(|hold| self.keeps_piece(*hold, now));
        }
        let hold = Hold { id: state.drawn, ends: now + HOLD };
        state.drawn += 1;
        state.sale.window = Some(window);
        state.sale.holds[index] = Some(hold);
        Some(hold)
    }

    /// The script `flash_cancel`.
    fn cancel(&self, state: &mut State, user: Id, id: Id) {
        let hold = &mut state.sale.holds[usize::from(user)];
        let Some(found) = hold.filter(|hold| hold.id == id || !self.has(Rule::CancelChecksId)) else { return };
        if self.has(Rule::CancelEndsHold) {
            *hold = None;
        }
        let returns = found.ends + GRACE > state.now || !self.has(Rule::CancelChecksEnd);
        if returns && found.ends + GRACE <= state.now {
            state.wrong = Some(Wrong::ReturnedExpired);
        }
    }

    /// The script `flash_confirm`.
    fn confirm(&self, state: &mut State, report: Report) {
        let order = usize::from(report.order);
        let first = *state.first_reports[order].get_or_insert(report.window);
        if first != report.window && self.has(Rule::ConfirmKeepsFirstWindow) {
            return;
        }
        let is_other = state.sale.window.is_some_and(|window| window != report.window);
        if is_other && self.has(Rule::ConfirmChecksWindow) {
            return;
        }
        if state.sale.counted[order] && self.has(Rule::ConfirmOncePerOrder) {
            return;
        }
        let user = usize::from(state.orders[order].user);
        let sale = &mut state.sale;
        sale.counted[order] = true;
        sale.sold += 1;
        sale.window = Some(report.window);
        if self.has(Rule::ConfirmNotesPurchase) {
            sale.bought[user] = true;
        }
        if self.has(Rule::ConfirmEndsHold) {
            sale.holds[user] = None;
        }
    }

    /// The shop sells a piece of the reservation that the user was told last, unless its database refuses it.
    fn buy(&self, state: &mut State, user: Id) {
        let Some(told) = &mut state.told[usize::from(user)][0] else { return };
        told.end = Some(End::Paid);
        let (window, starts, sold) = state.database;
        if sold >= self.pieces {
            state.wrong = Some(Wrong::PaidInVain);
            return;
        }
        let order = Id::try_from(state.orders.len()).unwrap_or(Id::MAX);
        state.orders.push(Order { user, window });
        state.database = (window, starts, sold + 1);
        state.report(Report { order, window });
    }
}

impl State {
    fn report(&mut self, report: Report) {
        self.reports.push(report);
        self.reports.sort_unstable();
    }

    /// The last reservation that the user was told, if the shop would still sell its piece.
    fn payable(&self, user: Id) -> Option<Told> {
        let told = self.told[usize::from(user)][0]?;
        let has_order = self.orders.iter().any(|order| (order.user, order.window) == (user, self.database.0));
        let is_current = told.window == self.database.0 && told.ends + GRACE > self.now;
        (is_current && told.end.is_none() && !has_order).then_some(told)
    }

    /// How many orders there are of a window.
    fn orders_of(&self, window: Id) -> usize {
        self.orders.iter().filter(|order| order.window == window).count()
    }
}

impl Model for Flash {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            now: 0,
            sale: Sale::default(),
            first_reports: Default::default(),
            row: (0, 0, 0),
            database: (0, 0, 0),
            orders: Vec::new(),
            reports: Vec::new(),
            told: Default::default(),
            drawn: 0,
            left: self.bounds,
            wrong: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let left = state.left;
        for user in 0..Id::try_from(USERS).unwrap_or(0) {
            if left.reservations > 0 {
                actions.push(Action::Reserve { user, is_reply_lost: false });
                if left.lost_replies > 0 {
                    actions.push(Action::Reserve { user, is_reply_lost: true });
                }
            }
            let [last, old] = state.told[usize::from(user)];
            let has_order = state.orders.iter().any(|order| (order.user, order.window) == (user, state.database.0));
            if left.cancellations > 0 && !has_order {
                actions.extend(last.map(|_| Action::Cancel { user, is_old: false }));
                actions.extend(old.map(|_| Action::Cancel { user, is_old: true }));
            }
            if left.purchases > 0 && state.payable(user).is_some() {
                actions.push(Action::Buy(user));
            }
        }
        let mut reports = state.reports.clone();
        reports.dedup();
        for report in reports {
            actions.push(Action::Deliver(report));
            if left.lost_reports > 0 {
                actions.push(Action::Lose(report));
            }
        }
        if left.repeated_reports > 0 {
            actions.extend((0..state.orders.len()).filter_map(|order| Id::try_from(order).ok()).map(Action::ReportAgain));
        }
        let is_current = state.row == state.database;
        if !is_current {
            actions.push(Action::Refresh);
        }
        if left.windows > 0 {
            actions.push(Action::BeginWindow);
        }
        if left.steps > 0 && is_current {
            actions.push(Action::Wait);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Reserve { user, is_reply_lost } => {
                state.left.reservations -= 1;
                let window = state.row.0;
                let hold = self.reserve(&mut state, user);
                let told = &mut state.told[usize::from(user)];
                if is_reply_lost {
                    state.left.lost_replies -= 1;
                } else if let Some(Hold { id, ends }) = hold
                    && told[0].is_none_or(|told| told.id != id)
                {
                    *told = [Some(Told { id, ends, window, end: None }), told[0]];
                }
            }
            Action::Cancel { user, is_old } => {
                state.left.cancellations -= 1;
                let told = state.told[usize::from(user)][usize::from(is_old)].as_mut()?;
                told.end = Some(End::Cancelled);
                let id = told.id;
                self.cancel(&mut state, user, id);
            }
            Action::Buy(user) => {
                state.left.purchases -= 1;
                self.buy(&mut state, user);
            }
            Action::Deliver(report) | Action::Lose(report) => {
                let position = state.reports.iter().position(|other| *other == report)?;
                state.reports.remove(position);
                if matches!(action, Action::Deliver(_)) {
                    self.confirm(&mut state, report);
                } else {
                    state.left.lost_reports -= 1;
                }
            }
            Action::ReportAgain(order) => {
                state.left.repeated_reports -= 1;
                let user = state.orders[usize::from(order)].user;
                // The shop names the reservation that edgefront names in the same request.
                let named = self.reservation(&state, user).filter(|_| state.first_reports[usize::from(order)].is_some());
                let window = named.map_or(state.orders[usize::from(order)].window, |_| state.row.0);
                state.report(Report { order, window });
            }
            Action::Refresh => state.row = state.database,
            Action::BeginWindow => {
                state.left.windows -= 1;
                state.database = (state.database.0 + 1, state.now, 0);
            }
            Action::Wait => {
                state.left.steps -= 1;
                state.now += 1;
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("never more pieces are held than there are", |model: &Self, state: &State| {
                let holds = state.sale.holds.iter().flatten().filter(|hold| hold.ends + GRACE > state.now);
                holds.count() <= usize::from(model.pieces)
            }),
            Property::always("a reservation that is paid in time gets its piece", |_, state: &State| {
                state.wrong != Some(Wrong::PaidInVain)
            }),
            Property::always("a reservation ends by its visitor, its order or its time only", |_, state: &State| {
                (0..USERS).all(|user| {
                    let Some(told) = state.told[user][0] else { return true };
                    let is_current = told.window == state.database.0 && told.window == state.row.0;
                    let lives = is_current && told.ends + GRACE > state.now && told.end.is_none();
                    !lives || state.sale.holds[user].is_some_and(|hold| hold.id == told.id)
                })
            }),
            Property::always("a cancelled reservation holds nothing", |_, state: &State| {
                let is_held = |told: &Told| state.sale.holds.iter().flatten().any(|hold| hold.id == told.id);
                let told = state.told.iter().flatten().flatten();
                !told.filter(|told| told.end == Some(End::Cancelled)).any(is_held)
            }),
            Property::always("an order counts once, and in its own window only", |_, state: &State| {
                state.sale.window.is_none_or(|window| usize::from(state.sale.sold) <= state.orders_of(window))
            }),
            Property::always("a user who has bought holds nothing more", |_, state: &State| {
                state.wrong != Some(Wrong::ReservedAfterPurchase)
                    && (0..USERS).all(|user| !state.sale.bought[user] || state.sale.holds[user].is_none())
            }),
            Property::always("a user is refused a second piece only after a purchase in this window", |_, state: &State| {
                state.wrong != Some(Wrong::RefusedWithoutPurchase)
            }),
            Property::always("a hold that is over is not returned again", |_, state: &State| {
                state.wrong != Some(Wrong::ReturnedExpired)
            }),
            Property::always("nothing is reserved after the end", |_, state: &State| {
                state.wrong != Some(Wrong::ReservedAfterEnd)
            }),
            Property::eventually("at rest, every piece is sold, held, or can be reserved", |model: &Self, state: &State| {
                let live = |hold: &&Hold| hold.ends + GRACE > state.now;
                let holds = if state.sale.window == Some(state.row.0) {
                    state.sale.holds.iter().flatten().filter(live).count()
                } else {
                    0
                };
                let used = usize::from(state.row.2) + holds;
                model.is_at_rest(state) && usize::from(model.pieces_left(state)) == usize::from(model.pieces).saturating_sub(used)
            }),
        ]
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
        Rule::GraceKeepsPiece,
        Rule::NewWindowIsEmpty,
        Rule::NewWindowDeletesKeys,
        Rule::CancelChecksId,
        Rule::CancelChecksEnd,
        Rule::CancelEndsHold,
        Rule::ConfirmOncePerOrder,
        Rule::ConfirmChecksWindow,
        Rule::ConfirmKeepsFirstWindow,
        Rule::ConfirmEndsHold,
        Rule::ConfirmNotesPurchase,
    ];

    fn all_bounds() -> Vec<Self> {
        vec![Self::one_window(), Self::two_windows(), Self::two_pieces()]
    }

    fn without(self, rule: Rule) -> Self {
        Self { off: Some(rule), ..self }
    }
}
