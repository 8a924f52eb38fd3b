//! The actions of the actors, as a failing case prints them.

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

/// An action. The first number names a session: 0 is the session of the token that was given out last, 1 the one before
/// it. The session may have ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Action {
    Check(usize),
    Touch(usize, Item),
    /// With the visitor's session until now.
    LogIn(Option<usize>, User),
    LogOut(usize),
    LogOutOthers(usize),
    LogOutAll(usize),
    /// The shop ends all sessions of a user.
    LogOutUser(User),
    Add(Option<usize>, Item, u8),
    Set(Option<usize>, Item, u8),
    Clear(usize),
    Order(usize, Item, u8),
    /// A report that stops after its first request.
    OrderAndStop(usize, Item, u8),
    /// Reports the last order again, with this session.
    OrderAgain(usize),
    Reserve(usize),
    /// Gives a reservation back. The second number counts reservations as the first counts sessions.
    Cancel(usize, usize),
    /// The shop sells the reserved piece and reports the order.
    Buy(usize, usize),
    CleanOverflow,
    CleanIdle,
    CleanAll,
    Rescale,
    /// Seconds pass.
    Wait(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Item {
    Mug,
    Cup,
    Pan,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum User {
    Ada,
    Bob,
}

/// An action of a visitor's tab.
pub fn visitor() -> impl Strategy<Value = Action> {
    use Action::*;
    let token = || prop_oneof![4 => Just(0), 2 => Just(1), 1 => 2..5_usize];
    let maybe = || prop::option::weighted(0.8, token());
    let item = || prop_oneof![4 => Just(Item::Mug), 2 => Just(Item::Cup), 1 => Just(Item::Pan)];
    let user = || prop_oneof![Just(User::Ada), Just(User::Bob)];
    prop_oneof![
        2 => token().prop_map(Check),
        3 => (token(), item()).prop_map(|(token, item)| Touch(token, item)),
        5 => (maybe(), user()).prop_map(|(old, user)| LogIn(old, user)),
        2 => token().prop_map(LogOut),
        2 => token().prop_map(LogOutOthers),
        2 => token().prop_map(LogOutAll),
        1 => user().prop_map(LogOutUser),
        4 => (maybe(), item(), 1..4_u8).prop_map(|(token, item, quantity)| Add(token, item, quantity)),
        2 => (maybe(), item(), 0..3_u8).prop_map(|(token, item, quantity)| Set(token, item, quantity)),
        1 => token().prop_map(Clear),
        2 => (token(), item(), 1..3_u8).prop_map(|(token, item, quantity)| Order(token, item, quantity)),
        1 => (token(), item(), 1..3_u8).prop_map(|(token, item, quantity)| OrderAndStop(token, item, quantity)),
        2 => token().prop_map(OrderAgain),
        4 => token().prop_map(Reserve),
        1 => (token(), 0..3_usize).prop_map(|(token, back)| Cancel(token, back)),
        2 => (token(), 0..3_usize).prop_map(|(token, back)| Buy(token, back)),
        1 => wait(),
    ]
}

/// The set-up of a case.
pub fn arrival() -> impl Strategy<Value = Action> {
    prop_oneof![
        2 => visitor(),
        2 => Just(Action::LogIn(None, User::Ada)),
        1 => Just(Action::LogIn(None, User::Bob)),
        1 => Just(Action::Add(None, Item::Mug, 2)),
        1 => Just(Action::Add(Some(0), Item::Cup, 1)),
        1 => Just(Action::Reserve(0)),
    ]
}

/// An action of the crons.
pub fn cron() -> impl Strategy<Value = Action> {
    prop_oneof![
        3 => Just(Action::CleanOverflow),
        2 => Just(Action::CleanIdle),
        2 => Just(Action::CleanAll),
        2 => Just(Action::Rescale),
        2 => wait(),
    ]
}

fn wait() -> impl Strategy<Value = Action> {
    prop_oneof![Just(1), Just(30), Just(61), Just(121), Just(300)].prop_map(Action::Wait)
}
