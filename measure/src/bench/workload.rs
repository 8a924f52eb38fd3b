//! What visitors ask for: the same bytes to every candidate. The pages, the cart, the row and the session have the addresses of edgefront's
//! API, which the peers answer too.

use std::{
    io::Write,
    sync::atomic::{AtomicU64, Ordering},
};

/// Signed-in visitors.
pub const SESSIONS: u64 = 1_000;
/// Items whose pages are popular, and rows.
pub const ITEMS: u64 = 100;
/// Items in each cart, from the first on.
pub const CART_ITEMS: u64 = 5;
/// Items that rank below them and whose pages nobody has asked for yet.
pub const COLD_ITEMS: u64 = 200_000;
/// A page is at least so long.
pub const PAGE_BYTES: usize = 20_000;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, clap::ValueEnum)]
pub enum Workload {
    /// A popular page, by a visitor who is signed in.
    Hot,
    /// A popular page, by a visitor without a session.
    Guest,
    /// A page that is not stored yet, by a visitor who is signed in.
    Cold,
    /// Sets the quantity of an item in the cart.
    Cart,
    /// A row of the database.
    Row,
    /// Who am I, and what is in my cart?
    Session,
}

impl Workload {
    pub const ALL: [Self; 6] = [Self::Hot, Self::Guest, Self::Cold, Self::Cart, Self::Row, Self::Session];

    /// As in tables.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Hot => "hot page, signed in",
            Self::Guest => "hot page, no session",
            Self::Cold => "cold page, signed in",
            Self::Cart => "cart write",
            Self::Row => "row read",
            Self::Session => "session check",
        }
    }

    /// As on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hot => "hot",
            Self::Guest => "guest",
            Self::Cold => "cold",
            Self::Cart => "cart",
            Self::Row => "row",
            Self::Session => "session",
        }
    }

    pub const fn is_page(self) -> bool {
        matches!(self, Self::Hot | Self::Guest | Self::Cold)
    }

    /// Whether Workers that touch nothing are measured beside it; once is enough, they answer everybody alike.
    pub const fn is_bare(self) -> bool {
        matches!(self, Self::Hot)
    }
}

/// The requests of one workload to one candidate, one after the other, however many connections send them.
pub struct Visits {
    workload: Workload,
    /// `__Host-session=…`, one for each session.
    cookies: Vec<String>,
    next: AtomicU64,
}

impl Visits {
    pub const fn new(workload: Workload, cookies: Vec<String>) -> Self {
        Self { workload, cookies, next: AtomicU64::new(0) }
    }

    /// What an answer has at the least, so that an error page or a forgotten body does not look fast.
    pub const fn least_bytes(&self) -> usize {
        if self.workload.is_page() { PAGE_BYTES } else { 20 }
    }

    /// Appends the next request.
    pub fn write_next(&self, out: &mut Vec<u8>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // A visitor looks at one item after another: each lap of all visitors, everybody is one item further.
        let item = (number + number / SESSIONS) % ITEMS;
        let cold = number % COLD_ITEMS;
        // Writing to a Vec can not fail.
        let _ = match self.workload {
            Workload::Hot | Workload::Guest => write!(out, "GET /products/item-{item}"),
            Workload::Cold => write!(out, "GET /products/cold-{cold}"),
            // What is in already: a cart that grew would make each round slower than the one before.
            Workload::Cart => write!(out, "PUT /_edge/v1/cart/items/item-{}", number / SESSIONS % CART_ITEMS),
            Workload::Row => write!(out, "GET /_edge/v1/rows/item-{item}"),
            Workload::Session => write!(out, "GET /_edge/v1/session"),
        };
        out.extend_from_slice(HEADERS.as_bytes());
        // A row is for everybody; a browser sends its cookie all the same.
        if self.workload == Workload::Guest {
            // As the platform says it of each visitor; by it edgefront tells apart who has no session.
            let [.., high, low] = (number % SESSIONS).to_be_bytes();
            let _ = write!(out, "CF-Connecting-IP: 203.0.{high}.{low}\r\n");
        } else {
            let session = usize::try_from(number % SESSIONS).unwrap_or_default();
            let cookie = self.cookies.get(session).map_or("", String::as_str);
            let _ = write!(out, "Cookie: {cookie}\r\n");
        }
        if self.workload == Workload::Cart {
            let body = format!("{{\"quantity\":{}}}", number % 9 + 1);
            let _ = write!(out, "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        } else {
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Of a browser that runs on the shop's own pages.
const HEADERS: &str = " HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n\
    Accept: text/html,application/xhtml+xml,application/json;q=0.9,*/*;q=0.8\r\nAccept-Language: en-US,en;q=0.5\r\n\
    Sec-Fetch-Site: same-origin\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(workload: Workload, count: usize) -> Vec<String> {
        let cookies = (0..SESSIONS).map(|number| format!("__Host-session=t{number}")).collect();
        let visits = Visits::new(workload, cookies);
        let next = |_| {
            let mut request = Vec::new();
            visits.write_next(&mut request);
            String::from_utf8(request).unwrap()
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn a_visitor_looks_at_one_item_after_another() {
        let requests = requests(Workload::Hot, 2001);
        let seen: Vec<_> = requests.iter().filter(|request| request.contains("=t0\r\n")).collect();
        let items: Vec<_> = seen.iter().map(|request| request.split(' ').nth(1).unwrap()).collect();
        assert_eq!(items, ["/products/item-0", "/products/item-1", "/products/item-2"]);
    }

    #[test]
    fn only_a_guest_has_no_cookie_and_only_a_write_has_a_body() {
        for workload in Workload::ALL {
            let request = requests(workload, 1).remove(0);
            assert_eq!(request.contains("Cookie: __Host-session=t0"), workload != Workload::Guest, "{request}");
            assert_eq!(request.ends_with("\r\n\r\n{\"quantity\":1}"), workload == Workload::Cart, "{request}");
            assert_eq!(request.ends_with("\r\n\r\n"), workload != Workload::Cart, "{request}");
        }
    }
}
