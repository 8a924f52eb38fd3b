//! Conversions of numbers that are small and not negative.

/// The number without its fraction.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers that are not negative")]
pub const fn to_usize(number: f64) -> usize {
    number as usize
}

/// As [`to_usize`].
#[must_use]
pub fn to_u32(number: f64) -> u32 {
    u32::try_from(to_usize(number)).unwrap_or(u32::MAX)
}

#[must_use]
#[expect(clippy::cast_precision_loss, reason = "below 2^52")]
pub const fn to_f64(number: usize) -> f64 {
    number as f64
}
