//! The ticket of a checkout: a random number in a cookie. All tabs of a browser share it, and the database accepts one
//! order for each ticket. So two tabs that check out the same cart at once place one order, although each form has an order
//! id of its own. A browser without the cookie lacks this protection.
//!
//! The ticket grants no access, so a sibling host that sets one gains nothing.

use http::{
    HeaderMap, HeaderValue,
    header::{COOKIE, SET_COOKIE},
};

use crate::{
    ports::{error::Error, fetch::Response, random},
    schema::hex,
};

const NAME: &str = "__Secure-checkout";

/// The ticket that the browser sent; None without a valid one.
pub(in crate::demo) fn of_cookies(headers: &HeaderMap) -> Option<String> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let (_, ticket) = pairs.find(|(name, _)| *name == NAME)?;
    let is_valid = ticket.len() == 32 && ticket.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_valid.then(|| ticket.to_owned())
}

/// Gives the browser a new ticket with `response`.
pub(super) fn renew(mut response: Response) -> Result<Response, Error> {
    let ticket = hex(&random::bytes::<16>()?);
    let cookie = format!("{NAME}={ticket}; Path=/checkout; HttpOnly; Secure; SameSite=Lax");
    response.headers_mut().extend(HeaderValue::try_from(cookie).map(|cookie| (SET_COOKIE, cookie)));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::fetch::Body;

    #[test]
    fn a_ticket_survives_a_round_trip_beside_other_cookies() {
        let response = renew(Response::new(Body::Empty)).unwrap();
        let cookie = response.headers()[SET_COOKIE].to_str().unwrap();
        let pair = cookie.split(';').next().unwrap();
        let read = |line: &str| of_cookies(&HeaderMap::from_iter([(COOKIE, HeaderValue::try_from(line).unwrap())]));
        assert_eq!(read(&format!("a=b; {pair}; c=d")).as_deref(), pair.split_once('=').map(|(_, ticket)| ticket));
        for line in ["", "__Secure-checkout=", "__Secure-checkout=1", "checkout=0123456789abcdef0123456789abcdef"] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
