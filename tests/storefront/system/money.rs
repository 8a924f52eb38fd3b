//! The money of docs/scaling.md, computed from the commands that edgefront and its peers take.

use edgefront_simulate::costs;

use super::commands::{CART_WRITE, HOT_VIEW, SESSION_CHECK};
use crate::schema::document;

/// Commands of one candidate: a page with a session and without, the same pages if they are not stored, a cart write, a
/// session check. The peers' figures are those of docs/bench.md.
struct Candidate {
    name: &'static str,
    page: [f64; 2],
    cold: [f64; 2],
    cart_write: f64,
    session_check: f64,
}

#[test]
fn the_document_states_the_money() {
    /// Dollars of a command (pay as you go), and of a request to Workers Paid.
    const COMMAND: f64 = 0.20 / 100_000.0;
    const REQUEST: f64 = 0.30 / 1_000_000.0;
    /// The assumed mix: visits with a session, pages that are not stored, pages that the isolate has in memory.
    const SESSIONS: f64 = 0.3;
    const MISSES: f64 = 0.01;
    const MEMORY: f64 = 0.9;
    // A hot page costs 2.6 commands for its view with a session (docs/bench.md), and one without.
    let from_redis = 1.0 - MEMORY - MISSES;
    let stored = |memory: f64, redis: f64| (MEMORY * memory + from_redis * redis) / (1.0 - MISSES);
    let edgefront = Candidate {
        name: "edgefront",
        page: [stored(HOT_VIEW, costs::PAGE_WITH_SESSION), stored(1.0, costs::PAGE_WITHOUT_SESSION)],
        cold: [costs::COLD_PAGE, costs::COLD_PAGE_WITHOUT_SESSION],
        cart_write: CART_WRITE,
        session_check: SESSION_CHECK,
    };
    let eval = Candidate { name: "eval", page: [9.0, 4.0], cold: [10.0, 5.0], cart_write: 4.0, session_check: 3.0 };
    let book = Candidate { name: "book", page: [8.0, 3.0], cold: [9.0, 4.0], cart_write: 3.0, session_check: 2.0 };
    let pipelined = Candidate { name: "pipelined", ..book };
    let rows = [edgefront, eval, pipelined, book].map(|candidate| {
        let mixed = |[with, without]: [f64; 2]| SESSIONS * with + (1.0 - SESSIONS) * without;
        let views = 1e6 * ((1.0 - MISSES) * mixed(candidate.page) + MISSES * mixed(candidate.cold));
        let orders = 1e3 * (4.0 * candidate.cart_write + 6.0 * candidate.session_check);
        let dollars = |commands: f64, requests: f64| format!("${:.2}", commands * COMMAND + requests * REQUEST);
        [
            candidate.name.to_owned(),
            format!("{:.2} million", views / 1e6),
            dollars(views, 1e6),
            format!("{orders:.0}"),
            dollars(orders, 1e4),
        ]
    });
    let heads = ["", "Commands, million page views", "Money", "Commands, thousand orders", "Money"];
    document::hold("docs/scaling.md", "money", &document::table(heads, rows));
}
