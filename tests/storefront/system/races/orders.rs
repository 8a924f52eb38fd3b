//! Orders: the effects of their requests on the state.

use edgefront::orders::Order;

use super::{
    model::Model,
    state::State,
    world::{Deed, Doing},
};

impl Model<'_> {
    /// The effect of the next request of a report.
    pub fn order(&mut self, next: &mut State, doing: &mut Doing) {
        let Deed::Order { token, order, user, .. } = &doing.deed else { return };
        if self.keys.is_sharded() && doing.history.is_empty() {
            self.order_carts.entry(order.id.to_string()).or_insert_with(|| token.clone());
            return;
        }
        let first = self.order_carts.get(order.id.as_str()).unwrap_or(token);
        let cart = doing.cart.as_deref().unwrap_or(first.as_str());
        doing.cart = self.take_out(next, cart, order);
        if let (Some(user), Some(_)) = (user, &order.reservation)
            && next.counted.insert(order.id.to_string())
        {
            next.sold += 1;
            next.bought.insert(user.to_string(), order.id.to_string());
            next.holds.remove(user.as_str());
        }
    }

    /// Removes the bought items from the cart, once for each order. If a login has moved the cart, changes nothing and
    /// returns the token of the session that has it.
    fn take_out(&self, state: &mut State, token: &str, order: &Order) -> Option<String> {
        if state.settled.contains(order.id.as_str()) {
            return None;
        }
        let cart = state.carts.entry(token.to_owned()).or_default();
        let has_some = order.lines.iter().any(|line| cart.contains_key(line.item.as_str()));
        for line in &order.lines {
            if let Some(quantity) = cart.get_mut(line.item.as_str()) {
                *quantity = quantity.saturating_sub(line.quantity.into());
            }
        }
        cart.retain(|_, quantity| *quantity > 0);
        state.carts.retain(|_, cart| !cart.is_empty());
        let place = self.followed.get(token).filter(|_| !has_some).and_then(|follower| follower.place.clone());
        if place.is_none() {
            state.settled.insert(order.id.to_string());
        }
        place
    }
}

/// The session that a login began in place of another one.
pub struct Follower {
    pub token: String,
    /// The session to which this login, or an earlier one, moved the cart.
    pub place: Option<String>,
}
