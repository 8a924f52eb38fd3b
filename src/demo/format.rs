//! Formats money and times for pages.

use std::{
    fmt,
    time::{Duration, UNIX_EPOCH},
};

/// An amount of money. Displays with two decimals and thousands separators: `€14.00`, `€30,719.25`.
pub(super) struct Money<'a> {
    pub cents: i64,
    /// ISO 4217.
    pub currency: &'a str,
}

impl fmt::Display for Money<'_> {
    /// Formats as `assets/shop/page.js` does, so that an amount looks the same with and without JavaScript.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cents = self.cents % 100;
        let whole = match (self.cents / 100, self.cents / 100_000) {
            (whole, 0) => whole.to_string(),
            (whole, thousands) => format!("{thousands},{:03}", whole % 1000),
        };
        match self.currency {
            "EUR" => write!(f, "€{whole}.{cents:02}"),
            "GBP" => write!(f, "£{whole}.{cents:02}"),
            "USD" => write!(f, "${whole}.{cents:02}"),
            other => write!(f, "{whole}.{cents:02} {other}"),
        }
    }
}

/// `21 Nov 2026 18:12:05 GMT`, of Unix seconds. A script replaces it with the visitor's local time.
pub(super) fn date_and_time(seconds: u64) -> String {
    // Skips the weekday of `Sat, 21 Nov 2026 18:12:05 GMT`.
    http_date(seconds).split_off(5)
}

/// `21 Nov 2026`, of Unix seconds.
pub(super) fn date(seconds: u64) -> String {
    http_date(seconds).get(5..16).unwrap_or_default().to_owned()
}

/// `20261121T181205Z` (RFC 5545, §3.3.5), of Unix seconds.
pub(super) fn calendar_time(seconds: u64) -> String {
    let text = http_date(seconds);
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default();
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = months.iter().position(|name| *name == part(8..11)).map_or(1, |index| index + 1);
    format!("{}{month:02}{}T{}{}{}Z", part(12..16), part(5..7), part(17..19), part(20..22), part(23..25))
}

fn http_date(seconds: u64) -> String {
    /// The last second of the year 9999: `httpdate` supports no later time.
    const LAST: u64 = 253_402_300_799;
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds.min(LAST)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_show_their_currency() {
        for (cents, currency, shown) in
            [(1400, "EUR", "€14.00"), (5, "GBP", "£0.05"), (129_900, "USD", "$1,299.00"), (250, "SEK", "2.50 SEK")]
        {
            assert_eq!(Money { cents, currency }.to_string(), shown);
        }
    }

    #[test]
    fn dates_have_no_weekday() {
        assert_eq!(date(1_795_284_725), "21 Nov 2026");
        assert_eq!(date_and_time(1_795_284_725), "21 Nov 2026 18:12:05 GMT");
        assert_eq!(date(u64::MAX), "31 Dec 9999");
    }

    #[test]
    fn a_calendar_gets_a_time_without_punctuation() {
        assert_eq!(calendar_time(1_795_284_725), "20261121T181205Z");
    }
}
