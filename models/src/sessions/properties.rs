//! The properties of every run.

use stateright::Property;

use super::{Cart, IDLE, LIMIT, Session, Sessions, State, TOKENS, User, Wrong};
use crate::Protocol;

pub(super) fn properties() -> Vec<Property<Sessions>> {
    vec![
        Property::always("a session that was ended stays ended", |_, state: &State| {
            (0..TOKENS).all(|token| !state.is_over[token] || state.sessions[token].user.is_none())
        }),
        Property::always(
            "a session lives by recent activity of its visitor only",
            |model: &Sessions, state: &State| {
                (0..state.drawn).all(|token| {
                    let index = usize::from(token);
                    let is_live = model.live_user(state, token, state.now).is_some();
                    let seen = state.sessions[index].seen.unwrap_or_default();
                    seen <= state.active[index] && (!is_live || state.active[index] + IDLE >= state.now)
                })
            },
        ),
        Property::always("recent: has the latest recorded activity of every session", |_, state: &State| {
            (0..TOKENS).all(|token| state.sessions[token].seen.is_none_or(|seen| seen == state.recorded[token]))
        }),
        Property::always("the cleanup can see every login and every cart", |_, state: &State| {
            let needs = |session: &Session| session.user.is_some() || session.cart != Cart::default();
            state.sessions.iter().all(|session| !needs(session) || session.seen.is_some())
        }),
        Property::always("an activity after the cleanup's read saves the session", |_, state: &State| {
            state.wrong != Some(Wrong::EndedAfterActivity)
        }),
        Property::always("overlapping cleanups keep as many sessions as the limit", |_, state: &State| {
            state.wrong != Some(Wrong::EndedBelowLimit)
        }),
        Property::always("every accepted piece is in a cart, bought, or recorded as abandoned", |_, state: &State| {
            state.pieces() + state.bought == state.accepted
        }),
        Property::always("an order takes its piece out of its cart, also after a login", |_, state: &State| {
            state.wrong != Some(Wrong::OrderMissedItsCart)
        }),
        Property::always("an order takes nothing out of another cart", |_, state: &State| {
            state.wrong != Some(Wrong::OrderTookFromAnotherCart)
        }),
        Property::always("an order takes its piece once", |model: &Sessions, state: &State| {
            state.bought + state.left.orders <= model.bounds.orders
        }),
        Property::always("a request puts at most one piece into a cart", |_, state: &State| {
            state.sessions.iter().all(|session| session.cart.iter().sum::<u8>() <= state.adds)
        }),
        Property::always("no user gets the pieces of another user", |_, state: &State| {
            state.sessions.iter().all(|session| match session.user {
                Some(User::Ada) => session.cart[User::Bob as usize] == 0,
                Some(User::Bob) => session.cart[User::Ada as usize] == 0,
                _ => session.cart[User::Ada as usize] + session.cart[User::Bob as usize] == 0 || session.user.is_none(),
            })
        }),
        Property::always("the cart of an expired session is only recorded as abandoned", |_, state: &State| {
            state.wrong != Some(Wrong::MovedExpiredCart)
        }),
        Property::always("an abandoned cart has the name of its owner", |_, state: &State| {
            state.wrong != Some(Wrong::NamedAnotherOwner)
        }),
        Property::always("a repeated login starts no second session", |_, state: &State| {
            let has_user = |session: &&Session| session.user.is_some_and(|user| user != User::Guest);
            state.sessions.iter().filter(has_user).count() <= usize::from(state.logins)
        }),
        Property::eventually(
            "at rest, no session is idle or over the limit, and nothing of an ended one is left",
            |model: &Sessions, state: &State| {
                let seen = state.sessions.iter().filter(|session| session.seen.is_some()).count();
                let is_clean = |session: &Session| match session.seen {
                    Some(seen) => seen + IDLE >= state.now,
                    None => session.user.is_none() && session.ended.is_none() && session.cart == Cart::default(),
                };
                model.is_at_rest(state) && seen <= LIMIT && state.sessions.iter().all(is_clean)
            },
        ),
    ]
}
