//! A random number generator with a fixed seed: each visitor acts the same in every run.

/// Marsaglia's xorshift (2003).
pub struct Xorshift {
    state: u64,
}

impl Xorshift {
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A number from 0 to `limit` - 1.
    pub fn below(&mut self, limit: u64) -> u64 {
        // The highest bit keeps the state from 0, where it would stay.
        let mut state = self.state | 1 << 63;
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.state = state;
        (state >> 20) % limit
    }
}
