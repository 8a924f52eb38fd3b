//! The properties of every run.

use stateright::Property;

use super::{Pages, State, Wrong};
use crate::Protocol;

pub(super) fn properties() -> Vec<Property<Pages>> {
    vec![
        Property::always("nothing that was void before a visit is served to it", |_, state: &State| {
            state.wrong != Some(Wrong::ServedVoid)
        }),
        Property::always("Redis returns nothing that it knows to be void", |model: &Pages, state: &State| {
            model.valid_page(state).is_none_or(|page| page.content >= state.void)
        }),
        Property::always("one request at a time renders the page for all", |_, state: &State| {
            state.lease_holders().count() <= 1 + usize::from(state.ended_leases)
        }),
        Property::always("no request waits for its own render", |_, state: &State| {
            state.wrong != Some(Wrong::WaitedForItself)
        }),
        Property::eventually("at rest, every visit has ended and no lease is left", |model: &Pages, state: &State| {
            model.is_at_rest(state) && state.visits.iter().all(Option::is_none) && state.lease.is_none()
        }),
    ]
}
