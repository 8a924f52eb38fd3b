//! Counts connections or streams, in total and by address.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The connections or streams that are open.
#[derive(Debug)]
pub(crate) struct Slots {
    max_total: usize,
    max_per_address: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    total: usize,
    by_client: HashMap<IpAddr, usize>,
}

/// The place of one connection or stream; free again when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Arc<Slots>,
    client: IpAddr,
}

impl Slots {
    /// All places are free.
    pub(crate) fn new(max_total: usize, max_per_address: usize) -> Arc<Self> {
        Arc::new(Self { max_total, max_per_address, open: Mutex::default() })
    }

    /// Takes a place for a client at this address; `None` if there is none.
    pub(crate) fn take(self: &Arc<Self>, address: IpAddr) -> Option<Slot> {
        let client = client_of(address);
        let mut open = self.lock();
        let of_client = open.by_client.get(&client).copied().unwrap_or_default();
        if open.total >= self.max_total || of_client >= self.max_per_address {
            return None;
        }
        open.total += 1;
        open.by_client.insert(client, of_client + 1);
        drop(open);
        Some(Slot { slots: Arc::clone(self), client })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut open = self.slots.lock();
        open.total -= 1;
        if let Some(of_client) = open.by_client.get_mut(&self.client) {
            *of_client -= 1;
            if *of_client == 0 {
                open.by_client.remove(&self.client);
            }
        }
    }
}

/// The client that an address stands for. An IPv6 client usually has a network of 64 bits.
fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_dropped_connection_makes_room_for_its_address() {
        let slots = Slots::new(10, 2);
        let taken = [slots.take(address("10.0.0.1")), slots.take(address("::ffff:10.0.0.1"))];
        assert!(taken.iter().all(Option::is_some));
        assert!(slots.take(address("10.0.0.1")).is_none());
        assert!(slots.take(address("10.0.0.2")).is_some());
        drop(taken);
        assert!(slots.take(address("10.0.0.1")).is_some());
        assert!(slots.lock().by_client.is_empty() && slots.lock().total == 0);
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let slots = Slots::new(10, 1);
        let _taken = slots.take(address("2001:db8::1")).expect("room");
        assert!(slots.take(address("2001:db8::2")).is_none());
        assert!(slots.take(address("2001:db8:0:1::1")).is_some());
    }

    #[test]
    fn the_total_holds_for_all_addresses() {
        let slots = Slots::new(2, 2);
        let _taken = [slots.take(address("10.0.0.1")), slots.take(address("10.0.0.2"))];
        assert!(slots.take(address("10.0.0.3")).is_none());
    }
}
