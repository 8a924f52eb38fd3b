//! The properties of every run.

use stateright::Property;

use super::{End, Flash, GRACE, Hold, Sale, State, Told, USERS, Wrong};
use crate::Protocol;

pub(super) fn properties() -> Vec<Property<Flash>> {
    vec![
        Property::always("never more pieces are held than there are", |model: &Flash, state: &State| {
            let holds = state.sale.holds.iter().flatten().filter(|hold| hold.ends + GRACE > state.now);
            holds.count() <= usize::from(model.pieces)
        }),
        Property::always("the sale counts its holds, and knows a time before which none ends", |_, state: &State| {
            let Sale { holds, held, first_end, .. } = state.sale;
            let holds = || holds.iter().flatten();
            usize::from(held) == holds().count() && holds().all(|hold| first_end <= hold.ends)
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
        Property::always(
            "a user is refused a second piece only after a purchase in this window",
            |_, state: &State| state.wrong != Some(Wrong::RefusedWithoutPurchase),
        ),
        Property::always("a hold that is over is not returned again", |_, state: &State| {
            state.wrong != Some(Wrong::ReturnedExpired)
        }),
        Property::always("nothing is reserved after the end", |_, state: &State| {
            state.wrong != Some(Wrong::ReservedAfterEnd)
        }),
        Property::eventually(
            "at rest, every piece is sold, held, or can be reserved",
            |model: &Flash, state: &State| {
                let live = |hold: &&Hold| hold.ends + GRACE > state.now;
                let holds = if state.sale.window == Some(state.row.0) {
                    state.sale.holds.iter().flatten().filter(live).count()
                } else {
                    0
                };
                let used = usize::from(state.row.2) + holds;
                model.is_at_rest(state)
                    && usize::from(model.pieces_left(state)) == usize::from(model.pieces).saturating_sub(used)
            },
        ),
    ]
}
