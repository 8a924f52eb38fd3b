//! Circuit breaker for Redis, and for the home tier in the edge tier: after several timeouts in a row, visitors stop
//! waiting.

use std::{cell::Cell, time::Duration};

use upstash_rest::TransportError;

use super::time::Timestamp;

/// Consecutive timeouts that open the circuit.
const MAX_TIMEOUTS: u32 = 3;
/// Time between two probes of an open circuit.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// The state of one isolate's connection to Redis or the home tier.
#[derive(Debug, Default)]
pub struct CircuitBreaker {
    /// Consecutive timeouts.
    timeouts: Cell<u32>,
    /// The last probe, or the timeout that opened the circuit.
    probed: Cell<Option<Timestamp>>,
}

/// The state of the circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Circuit {
    /// Callers send their requests.
    Closed,
    /// The other side does not answer. With `probe`, the caller probes it after its response, alone in this interval.
    Open { probe: bool },
}

impl CircuitBreaker {
    /// Returns whether the circuit is open; unlike [`CircuitBreaker::state`], it hands out no probe.
    pub fn is_open(&self) -> bool {
        self.timeouts.get() >= MAX_TIMEOUTS
    }

    /// The state now. One caller per interval gets `probe`.
    pub fn state(&self, now: Timestamp) -> Circuit {
        if !self.is_open() {
            return Circuit::Closed;
        }
        let probe = self.probed.get().is_none_or(|last| !now.is_near(PROBE_INTERVAL, last));
        if probe {
            self.probed.set(Some(now));
        }
        Circuit::Open { probe }
    }

    /// Records the outcome of a request. Only a timeout counts: an error that arrives at once delays nobody. Under a rate
    /// limit, opening the circuit would also block the calls that succeed.
    pub fn record<T>(&self, outcome: &Result<T, upstash_rest::Error>, now: Timestamp) {
        match outcome {
            Ok(_) => self.timeouts.set(0),
            Err(upstash_rest::Error::Transport(TransportError::Timeout)) => {
                self.timeouts.set(self.timeouts.get().saturating_add(1));
                // Only the timeout that opens the circuit delays the next probe: later ones must not.
                if self.timeouts.get() == MAX_TIMEOUTS {
                    self.probed.set(Some(now));
                }
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_timeouts_open_the_circuit_and_a_success_closes_it() {
        let start = Timestamp::from_millis(1_795_000_000_123);
        let breaker = CircuitBreaker::default();
        for _ in 0..MAX_TIMEOUTS {
            assert_eq!(breaker.state(start), Circuit::Closed);
            breaker.record::<()>(&Err(upstash_rest::Error::Unauthorized), start);
            breaker.record::<()>(&Err(TransportError::Timeout.into()), start);
        }
        assert_eq!(breaker.state(start), Circuit::Open { probe: false });
        let due = start + PROBE_INTERVAL;
        assert_eq!(breaker.state(due), Circuit::Open { probe: true });
        assert_eq!(breaker.state(due), Circuit::Open { probe: false }, "one probe per interval");
        assert_eq!(breaker.state(start), Circuit::Open { probe: true }, "the clock was set back");
        assert_eq!(breaker.state(start), Circuit::Open { probe: false });
        breaker.record(&Ok(()), due);
        assert_eq!(breaker.state(due), Circuit::Closed);
    }
}
