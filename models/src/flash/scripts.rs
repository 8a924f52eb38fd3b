//! The scripts as the model has them, and the code around them.

use super::{End, Flash, GRACE, HOLD, Hold, Id, Order, Report, Rule, Sale, State, Told, WINDOW, Wrong};

impl Flash {
    /// The keys as `flash` sees them, for the window of the row.
    pub(super) fn known(&self, state: &State) -> Sale {
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
        if self.keeps_piece(known.first_end, state.now) {
            return known.held;
        }
        count(known.holds.iter().flatten().filter(|hold| self.keeps_piece(hold.ends, state.now)))
    }

    /// A piece is held at `now` if its hold ends at `ends`.
    pub(super) fn keeps_piece(&self, ends: u8, now: u8) -> bool {
        let grace = if self.has(Rule::GraceKeepsPiece) { GRACE } else { 0 };
        ends + grace > now || !self.has(Rule::HoldsExpire)
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
    pub(super) fn reserve(&self, state: &mut State, user: Id) -> Option<Hold> {
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
        let is_counted = |(number, order): (usize, &Order)| {
            (order.user, order.window) == (user, window) && state.sale.counted[number]
        };
        if state.orders.iter().enumerate().any(is_counted) {
            state.wrong = Some(Wrong::ReservedAfterPurchase);
        }
        let (now, hold) = (state.now, Hold { id: state.drawn, ends: state.now + HOLD });
        state.drawn += 1;
        let sale = &mut state.sale;
        if sale.window != Some(window) {
            if self.has(Rule::NewWindowDeletesKeys) {
                *sale = Sale::default();
            }
            (sale.first_end, sale.held) = (hold.ends, 0);
        }
        if !self.keeps_piece(sale.first_end, now) {
            sale.holds = sale.holds.map(|hold| hold.filter(|hold| self.keeps_piece(hold.ends, now)));
            sale.held = count(sale.holds.iter().flatten());
            sale.first_end = sale.holds.iter().flatten().map(|hold| hold.ends).min().unwrap_or(hold.ends);
        }
        sale.window = Some(window);
        sale.held += u8::from(sale.holds[index].is_none());
        sale.holds[index] = Some(hold);
        let is_first = hold.ends < sale.first_end || !self.has(Rule::UpkeepNamesFirstEnd);
        sale.first_end = if is_first { hold.ends } else { sale.first_end };
        Some(hold)
    }

    /// The script `flash_cancel`.
    pub(super) fn cancel(&self, state: &mut State, user: Id, id: Id) {
        let sale = &mut state.sale;
        let hold = &mut sale.holds[usize::from(user)];
        let Some(found) = hold.filter(|hold| hold.id == id || !self.has(Rule::CancelChecksId)) else { return };
        if self.has(Rule::CancelEndsHold) {
            *hold = None;
            sale.held = sale.held.saturating_sub(u8::from(self.has(Rule::CancelLowersHeld)));
        }
        let returns = found.ends + GRACE > state.now || !self.has(Rule::CancelChecksEnd);
        if returns && found.ends + GRACE <= state.now {
            state.wrong = Some(Wrong::ReturnedExpired);
        }
    }

    /// The script `flash_confirm`.
    pub(super) fn confirm(&self, state: &mut State, report: Report) {
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
        if self.has(Rule::ConfirmEndsHold) && sale.holds[user].take().is_some() {
            sale.held = sale.held.saturating_sub(u8::from(self.has(Rule::ConfirmLowersHeld)));
        }
    }

    /// The shop sells a piece of the reservation that the user was told last, unless its database refuses it.
    pub(super) fn buy(&self, state: &mut State, user: Id) {
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

fn count<T>(holds: impl Iterator<Item = T>) -> u8 {
    u8::try_from(holds.count()).unwrap_or(u8::MAX)
}

impl State {
    pub(super) fn report(&mut self, report: Report) {
        self.reports.push(report);
        self.reports.sort_unstable();
    }

    /// The last reservation that the user was told, if the shop would still sell its piece.
    pub(super) fn payable(&self, user: Id) -> Option<Told> {
        let told = self.told[usize::from(user)][0]?;
        let has_order = self.orders.iter().any(|order| (order.user, order.window) == (user, self.database.0));
        let is_current = told.window == self.database.0 && told.ends + GRACE > self.now;
        (is_current && told.end.is_none() && !has_order).then_some(told)
    }

    /// Number of orders of a window.
    pub(super) fn orders_of(&self, window: Id) -> usize {
        self.orders.iter().filter(|order| order.window == window).count()
    }
}
