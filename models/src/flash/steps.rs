//! The actions: which can happen, and what they do.

use stateright::{Model, Property};

use super::{Action, End, Flash, Hold, Id, Report, Sale, State, Told, USERS, properties::properties};

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
            actions
                .extend((0..state.orders.len()).filter_map(|order| Id::try_from(order).ok()).map(Action::ReportAgain));
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
                let named =
                    self.reservation(&state, user).filter(|_| state.first_reports[usize::from(order)].is_some());
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
        properties()
    }
}
