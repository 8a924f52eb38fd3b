//! The client's network, by which rate limits and view counts distinguish clients. Only `CF-Connecting-IP` is trusted,
//! because the platform overwrites it. Off the platform the header is missing, and clients are not distinguished.

use std::{fmt, net::IpAddr};

use http::HeaderMap;

/// An IPv4 address, or the /64 network of an IPv6 address: one client has all of its 2⁶⁴ addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientNetwork(IpAddr);

/// The network bits of an IPv6 address.
const NETWORK: u128 = !0 << 64;

impl ClientNetwork {
    /// The network of a request's client; None off the platform.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        Self::parse(headers.get("cf-connecting-ip")?.to_str().ok()?)
    }

    /// The network of an address.
    #[must_use]
    pub fn parse(address: &str) -> Option<Self> {
        let address: IpAddr = address.parse().ok()?;
        Some(Self(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6((address.to_bits() & NETWORK).into()),
            address @ IpAddr::V4(_) => address,
        }))
    }
}

impl fmt::Display for ClientNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(address: &'static str) -> Option<String> {
        let headers = [("cf-connecting-ip".parse().unwrap(), address.parse().unwrap())].into_iter().collect();
        ClientNetwork::of(&headers).map(|network| network.to_string())
    }

    #[test]
    fn addresses_of_one_network_are_one_client() {
        for (address, same) in [
            ("203.0.113.7", Some("203.0.113.7")),
            ("::ffff:203.0.113.7", Some("203.0.113.7")),
            ("2001:db8:1:2:3:4:5:6", Some("2001:db8:1:2::")),
            ("2001:DB8:1:2::ffff", Some("2001:db8:1:2::")),
            ("2001:db8:1:3::1", Some("2001:db8:1:3::")),
            ("203.0.113.7, 203.0.113.8", None),
            ("unknown", None),
            ("", None),
        ] {
            assert_eq!(network(address).as_deref(), same, "{address}");
        }
        assert_eq!(ClientNetwork::of(&HeaderMap::new()), None);
    }
}
