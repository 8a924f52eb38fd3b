//! The requests of one workload as bytes.

use std::{
    io::Write,
    sync::atomic::{AtomicU64, Ordering},
};

use super::workload::{CART_ITEMS, COLD_ITEMS, ITEMS, SESSIONS, Workload};
use crate::origin::PAGE_BYTES;

/// The headers that a browser sends from the shop's own pages.
const BROWSER_HEADERS: &str = " HTTP/1.1\r\nHost: shop.example\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n\
    Accept: text/html,application/xhtml+xml,application/json;q=0.9,*/*;q=0.8\r\nAccept-Language: en-US,en;q=0.5\r\n\
    Sec-Fetch-Site: same-origin\r\n";

/// The requests of one workload to one candidate. All connections take their next request from it.
pub struct RequestStream {
    workload: Workload,
    /// `__Host-session=…`, one for each session.
    cookies: Vec<String>,
    next: AtomicU64,
}

impl RequestStream {
    pub const fn new(workload: Workload, cookies: Vec<String>) -> Self {
        Self { workload, cookies, next: AtomicU64::new(0) }
    }

    /// The smallest body of a correct response, so that an error page or an empty body does not count as fast.
    pub const fn min_body_bytes(&self) -> usize {
        if self.workload.is_page() { PAGE_BYTES } else { 20 }
    }

    /// Appends the next request.
    pub fn write_next(&self, out: &mut Vec<u8>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // The requests take turns through all visitors. In each round, every visitor proceeds to the next item.
        let item = (number + number / SESSIONS) % ITEMS;
        let cold_item = number % COLD_ITEMS;
        // Writing to a Vec cannot fail.
        let _ = match self.workload {
            Workload::Hot | Workload::Guest => write!(out, "GET /products/item-{item}"),
            Workload::Holes => write!(out, "GET /flash/item-{item}"),
            Workload::Cold => write!(out, "GET /products/cold-{cold_item}"),
            // An item that is in the cart already: a growing cart would make each round slower.
            Workload::Cart => write!(out, "PUT /_edge/v1/cart/items/item-{}", number / SESSIONS % CART_ITEMS),
            Workload::Row => write!(out, "GET /_edge/v1/rows/item-{item}"),
            Workload::Session => write!(out, "GET /_edge/v1/session"),
        };
        out.extend_from_slice(BROWSER_HEADERS.as_bytes());
        // A row needs no session, but a browser sends its cookie anyway.
        if self.workload == Workload::Guest {
            // The platform adds this header. edgefront distinguishes visitors without a session by it.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(workload: Workload, count: usize) -> Vec<String> {
        let cookies = (0..SESSIONS).map(|number| format!("__Host-session=t{number}")).collect();
        let stream = RequestStream::new(workload, cookies);
        let next = |_| {
            let mut request = Vec::new();
            stream.write_next(&mut request);
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
