//! The actions: which can happen, and what they do.

use stateright::{Model, Property};

use super::{Action, Change, ChangeStep, ISOLATES, Pages, Rule, State, Step, Visit, properties::properties};

impl Model for Pages {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            now: 0,
            content: 0,
            clock: 0,
            page: None,
            lease: None,
            purged: None,
            isolates: Default::default(),
            visits: Default::default(),
            change: None,
            void: 0,
            void_everywhere: (0, 0),
            ids: 0,
            ended_leases: 0,
            left: self.bounds,
            wrong: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let left = state.left;
        let free = state.visits.iter().position(Option::is_none);
        for isolate in 0..ISOLATES {
            if let Some(visit) = free.filter(|_| left.visits > 0) {
                actions.push(Action::Visit { visit, isolate, is_reply_lost: false });
                let asks_redis = self.hit(state, isolate).is_none() && !state.isolates[isolate].is_noted;
                if left.lost_replies > 0 && asks_redis {
                    actions.push(Action::Visit { visit, isolate, is_reply_lost: true });
                }
            }
            if state.change.is_none() && left.purges > 0 {
                actions.push(Action::Purge(isolate));
            }
            if state.change.is_none() && left.posts > 0 {
                actions.push(Action::Post(isolate));
            }
            if left.crashes > 0 {
                actions.push(Action::Crash(isolate));
            }
        }
        for (number, visit) in state.visits.iter().enumerate() {
            match visit.map(|visit| visit.step) {
                None => {}
                Some(Step::Found { .. }) => actions.push(Action::Reply(number)),
                Some(Step::Stored { .. } | Step::Confirming { .. }) => {
                    actions.push(Action::Reply(number));
                    if left.lost_replies > 0 {
                        actions.push(Action::LoseReply(number));
                    }
                }
                Some(Step::Waiting { .. }) => actions.push(Action::LookAgain(number)),
                Some(Step::Rendering(_)) => actions.push(Action::Render(number)),
                Some(Step::Rendered(..)) => actions.push(Action::Store(number)),
            }
        }
        match state.change.map(|change| change.step) {
            Some(ChangeStep::PurgeBegun) => {
                actions.push(Action::MarkPurge { is_reply_lost: false });
                if left.lost_replies > 0 {
                    actions.push(Action::MarkPurge { is_reply_lost: true });
                }
            }
            Some(ChangeStep::Posted) => actions.push(Action::AnswerPost),
            Some(ChangeStep::Answered) => actions.push(Action::Evict),
            Some(ChangeStep::PurgeExecuted | ChangeStep::Evicted) => actions.push(Action::EndChange),
            None => {}
        }
        if let Some(id) = state.lease {
            let is_held = state.lease_holders().any(|holder| holder == id);
            if (!is_held && self.has(Rule::LeaseExpires)) || (is_held && left.expiries > 0) {
                actions.push(Action::ExpireLease);
            }
        }
        if state.page.is_some() && left.expiries > 0 {
            actions.push(Action::ExpirePage);
        }
        let evicts = matches!(state.change, Some(Change { step: ChangeStep::Answered | ChangeStep::Evicted, .. }));
        if left.steps > 0 && !evicts {
            actions.push(Action::Wait);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Visit { visit, isolate, is_reply_lost } => {
                state.left.visits -= 1;
                state.left.lost_replies -= u8::from(is_reply_lost);
                state.visits[visit] = self.begin(&mut state, isolate, is_reply_lost);
            }
            Action::Reply(number) => {
                let visit = state.visits[number].take()?;
                state.visits[number] = self.reply(&mut state, visit);
            }
            Action::LoseReply(number) => {
                state.left.lost_replies -= 1;
                state.visits[number] = None;
            }
            Action::LookAgain(number) => {
                let visit = state.visits[number]?;
                let step = self.look_again(&mut state, visit)?;
                state.visits[number] = Some(Visit { step, is_void: false, asked: state.now, ..visit });
            }
            Action::Render(number) => {
                let visit = state.visits[number]?;
                let Step::Rendering(lease) = visit.step else { return None };
                state.visits[number] = Some(Visit { step: Step::Rendered(state.content, lease), ..visit });
            }
            Action::Store(number) => {
                let visit = state.visits[number]?;
                let Step::Rendered(content, lease) = visit.step else { return None };
                state.serve(content, visit.least);
                let step = lease.map(|lease| self.store(&mut state, content, lease));
                let asked = state.now;
                state.visits[number] = step.map(|step| Visit { step, is_void: false, asked, ..visit });
            }
            Action::Purge(isolate) => {
                state.left.purges -= 1;
                state.content += 1;
                state.drop_copies(isolate);
                state.change = Some(Change { isolate, least: state.content, step: ChangeStep::PurgeBegun });
            }
            Action::MarkPurge { is_reply_lost } => {
                let change = state.change?;
                state.left.lost_replies -= u8::from(is_reply_lost);
                if self.has(Rule::PurgeMarks) {
                    state.clock += 1 + u8::from(is_reply_lost);
                    state.purged = Some(state.clock);
                }
                state.void = change.least;
                state.change = Some(Change { step: ChangeStep::PurgeExecuted, ..change });
            }
            Action::Post(isolate) => {
                state.left.posts -= 1;
                state.content += 1;
                state.change = Some(Change { isolate, least: state.content, step: ChangeStep::Posted });
            }
            Action::AnswerPost => {
                let change = state.change?;
                if self.has(Rule::PostDropsCopies) {
                    state.drop_copies(change.isolate);
                }
                let isolate = &mut state.isolates[change.isolate];
                isolate.is_noted = self.has(Rule::PostNotes);
                isolate.least = change.least;
                state.change = Some(Change { step: ChangeStep::Answered, ..change });
            }
            Action::Evict => {
                let change = state.change?;
                if self.has(Rule::EvictDeletesPage) {
                    state.page = None;
                }
                if self.has(Rule::EvictDeletesLease) {
                    state.ended_leases += u8::from(state.lease.take().is_some());
                }
                state.void = change.least;
                state.change = Some(Change { step: ChangeStep::Evicted, ..change });
            }
            Action::EndChange => self.end_change(&mut state)?,
            Action::Crash(isolate) => {
                state.left.crashes -= 1;
                state.crash(isolate);
            }
            Action::ExpireLease => {
                let id = state.lease.take()?;
                if state.lease_holders().any(|holder| holder == id) {
                    state.left.expiries -= 1;
                    state.ended_leases += 1;
                }
            }
            Action::ExpirePage => {
                state.left.expiries -= 1;
                state.page = None;
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
