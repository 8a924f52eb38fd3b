//! The actions: which can happen, and what they do.

use stateright::{Model, Property};

use super::{Action, Cart, Checkout, IDLE, Lost, Sessions, State, TOKENS, User, properties::properties};

impl Model for Sessions {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            // Later than the idle time, so that no time is negative.
            now: IDLE,
            sessions: Default::default(),
            drawn: 0,
            began: Default::default(),
            abandoned: Vec::new(),
            followers: Default::default(),
            order: None,
            is_ordered: false,
            activity: None,
            cleanups: Default::default(),
            ended: None,
            lost: None,
            left: self.bounds,
            active: Default::default(),
            recorded: Default::default(),
            is_over: Default::default(),
            owners: Default::default(),
            adds: 0,
            logins: 0,
            accepted: 0,
            bought: 0,
            wrong: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let left = state.left;
        let can_draw = usize::from(state.drawn) < TOKENS;
        let may_lose = [false, true].into_iter().take(if left.lost_replies > 0 { 2 } else { 1 });
        let is_waiting = state.lost.is_some();
        for token in 0..state.drawn {
            if left.activities > 0 && state.activity.is_none() {
                actions.push(Action::Act(token));
            }
            if left.logouts > 0 {
                actions.push(Action::LogOut(token));
            }
            let has_cart = state.sessions[usize::from(token)].cart != Cart::default();
            if left.orders > 0 && has_cart && self.live_user(state, token, state.now).is_some() {
                actions.push(Action::CheckOut(token));
            }
            if left.device_logouts > 0
                && state.ended.is_none()
                && self.live_user(state, token, state.now).is_some_and(|user| user != User::Guest)
            {
                actions.push(Action::EndLogins(token));
            }
        }
        for token in (0..state.drawn).map(Some).chain([None]) {
            for is_reply_lost in may_lose.clone() {
                let has_key = token.is_some() || !is_reply_lost;
                if left.adds > 0 && can_draw && !is_waiting && has_key {
                    actions.push(Action::Add { token, is_reply_lost });
                }
                for user in [User::Ada, User::Bob] {
                    if left.logins > 0 && can_draw && !is_waiting && has_key {
                        actions.push(Action::LogIn { old: token, user, is_reply_lost });
                    }
                }
            }
        }
        if state.activity.is_some() {
            actions.push(Action::WriteActivity);
            if left.crashes > 0 {
                actions.push(Action::EvictIsolate);
            }
        }
        if state.order.is_some() {
            actions.extend(may_lose.map(|is_reply_lost| Action::Settle { is_reply_lost }));
        }
        if is_waiting {
            if can_draw {
                actions.push(Action::Repeat);
            }
            actions.push(Action::GiveUp);
        }
        if state.ended.is_some() {
            actions.push(Action::DeleteData);
            if left.crashes > 0 {
                actions.push(Action::DropDeletion);
            }
        }
        for (number, cleanup) in state.cleanups.iter().enumerate() {
            match cleanup {
                // The second one runs only beside the first.
                None if number > 0 && state.cleanups[0].is_none() => {}
                None if self.victims(state).sessions.is_empty() => {}
                None => actions.push(Action::ReadVictims(number)),
                Some(_) => {
                    actions.push(Action::EndVictims(number));
                    if left.crashes > 0 {
                        actions.push(Action::DropCleanup(number));
                    }
                }
            }
        }
        if left.hours > 0 {
            actions.push(Action::Wait);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        // Every activity takes time, so no two sessions have the same score.
        if matches!(action, Action::Act(_) | Action::Add { .. } | Action::LogIn { .. } | Action::Repeat) {
            state.now += 1;
        }
        match action {
            Action::Act(token) => {
                state.left.activities -= 1;
                state.activity = Some((token, state.now));
                let index = usize::from(token);
                if state.sessions[index].user.is_some() && state.active[index] + IDLE >= state.now {
                    state.active[index] = state.now;
                }
            }
            Action::WriteActivity => {
                let (token, at) = state.activity.take()?;
                self.touch(&mut state, token, at);
            }
            Action::EvictIsolate => {
                state.left.crashes -= 1;
                state.activity = None;
            }
            Action::Add { token, is_reply_lost } => {
                state.left.adds -= 1;
                state.adds += 1;
                let is_noted = self.add(&mut state, token, false)?;
                if is_reply_lost {
                    state.left.lost_replies -= 1;
                    state.lost = token.map(|token| Lost::Add { token, is_noted });
                }
            }
            Action::LogIn { old, user, is_reply_lost } => {
                state.left.logins -= 1;
                state.logins += 1;
                self.log_in(&mut state, old, user)?;
                if is_reply_lost {
                    state.left.lost_replies -= 1;
                    state.lost = old.map(|old| Lost::LogIn { old, user });
                }
            }
            Action::Repeat => match state.lost.take()? {
                Lost::Add { token, is_noted } => {
                    self.add(&mut state, Some(token), is_noted)?;
                }
                Lost::LogIn { old, user } => self.log_in(&mut state, Some(old), user)?,
            },
            Action::GiveUp => state.lost = None,
            Action::LogOut(token) => {
                state.left.logouts -= 1;
                self.log_out(&mut state, &[token], None);
            }
            Action::CheckOut(token) => {
                state.left.orders -= 1;
                state.order = Some(Checkout { token, next: token, place: Some(token) });
            }
            Action::Settle { is_reply_lost } => {
                let mut order = state.order.take()?;
                let is_settled = self.buy(&mut state, &mut order);
                if is_reply_lost {
                    state.left.lost_replies -= 1;
                    order.next = order.token;
                }
                state.order = Some(order).filter(|_| is_reply_lost || !is_settled);
            }
            Action::EndLogins(own) => {
                state.left.device_logouts -= 1;
                let user = self.live_user(&state, own, state.now)?;
                let tokens = self.end_logins(&mut state, own, user);
                state.ended = Some((user, tokens));
            }
            Action::DeleteData => {
                let (user, tokens) = state.ended.take()?;
                self.log_out(&mut state, &tokens, Some(user));
            }
            Action::DropDeletion => {
                state.left.crashes -= 1;
                state.ended = None;
            }
            Action::ReadVictims(number) => state.cleanups[number] = Some(self.victims(&state)),
            Action::EndVictims(number) => {
                let victims = state.cleanups[number].take()?;
                self.end_victims(&mut state, &victims);
            }
            Action::DropCleanup(number) => {
                state.left.crashes -= 1;
                state.cleanups[number] = None;
            }
            Action::Wait => {
                state.left.hours -= 1;
                state.now += 1;
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties()
    }
}
