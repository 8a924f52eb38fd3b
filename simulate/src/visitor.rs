//! A visitor's visit: pages, additions to the cart, an order. It does not depend on the answers, so the same visits can
//! be sent to a real Worker.

use std::time::Duration;

use edgefront::{
    ports::{network::ClientNetwork, time::Timestamp},
    schema::token::Token,
};

use crate::{catalogue::Item, shared::Shared};

/// One request of a visitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    View(Item),
    Add(Item),
    CheckSession,
    /// The page of the checkout, which is dynamic.
    CheckOut,
    Order,
    Reserve,
}

/// An action that was simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceEntry {
    pub at: Timestamp,
    pub visitor: usize,
    /// The visitor was signed in on arrival.
    pub is_signed_in: bool,
    pub action: Action,
}

/// See the [module](self).
pub struct Visitor {
    pub number: usize,
    pub city: usize,
    /// The place of the visitor's isolate among those of its location.
    pub isolate: usize,
    pub is_signed_in: bool,
    pub token: Option<Token>,
    pub network: Option<ClientNetwork>,
    pub has_cart: bool,
    /// A visitor of the flash sale: one page, one reservation.
    pub is_for_sale: bool,
    pub next: Action,
}

impl Visitor {
    /// The action after the current one, and the pause before it. None: the visit ends.
    pub fn proceed(&mut self, shared: &Shared) -> Option<(Action, Duration)> {
        let traffic = &shared.scenario.traffic;
        let soon = Duration::from_millis(300);
        if self.is_for_sale {
            return match self.next {
                Action::View(_) => Some((Action::Reserve, soon)),
                _ => None,
            };
        }
        match self.next {
            Action::View(item) if shared.chance() < traffic.additions => Some((Action::Add(item), soon * 10)),
            Action::Add(_) => Some((Action::CheckSession, soon)),
            Action::CheckOut => Some((Action::Order, soon * 30)),
            Action::Order | Action::Reserve => None,
            Action::View(_) | Action::CheckSession => {
                if shared.chance() < 1.0 / traffic.views {
                    let buys = self.has_cart && shared.chance() < traffic.buyers;
                    return buys.then_some((Action::CheckOut, soon * 10));
                }
                let pause = Duration::from_secs_f64(shared.exponential(traffic.pause.as_secs_f64()));
                Some((Action::View(shared.draw_item()), pause))
            }
        }
    }

    /// A token for a session that begins now. Its bits are the visitor's number, so that runs repeat.
    #[must_use]
    pub fn make_token(number: usize) -> Option<Token> {
        Token::parse(&format!("AGr9hsAA{number:020}"))
    }

    /// The visitor's own network.
    #[must_use]
    pub fn make_network(number: usize) -> Option<ClientNetwork> {
        ClientNetwork::parse(&address(number))
    }
}

/// The IP address of a visitor.
#[must_use]
pub fn address(number: usize) -> String {
    let [.., a, b, c] = number.to_be_bytes();
    format!("10.{a}.{b}.{c}")
}
