//! Quality values (RFC 9110 §12.4.2): the preferences of a client, with their weights.

use http::{HeaderMap, header};

/// The members of a list such as `Accept-Language`, in lower case and without spaces, in the client's order.
#[must_use]
pub fn members(text: &str) -> Vec<String> {
    let members = text.split(',').map(str::trim).filter(|member| !member.is_empty());
    members.map(|member| member.replace(' ', "").to_ascii_lowercase()).collect()
}

/// The weight of a member such as `en;q=0.8`, in thousandths. Digits after the third decimal place do not count.
#[must_use]
pub fn weight(member: &str) -> u32 {
    let Some((_, weight)) = member.split_once(";q=") else { return 1000 };
    let (whole, parts) = weight.split_once('.').unwrap_or((weight, ""));
    let digits = parts.bytes().chain(std::iter::repeat(b'0')).take(3);
    let parts = digits.fold(0, |parts, digit| parts * 10 + u32::from(digit.wrapping_sub(b'0').min(9)));
    if whole == "1" { 1000 } else { parts }
}

/// Returns whether the client accepts gzip with a weight above 0 (§12.5.3).
#[must_use]
pub fn accepts_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(members).any(|member| member.split(';').next() == Some("gzip") && weight(&member) > 0)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_weight_has_up_to_three_digits_and_is_1_if_it_is_missing() {
        let weights =
            ["en", "en;q=1", "en;q=1.0", "en;q=0.8", "en;q=0.805", "en;q=0", "en;q=0.000", "en;q="].map(weight);
        assert_eq!(weights, [1000, 1000, 1000, 800, 805, 0, 0, 0]);
    }

    #[test]
    fn gzip_is_accepted_by_its_name_and_a_weight_above_0() {
        for (lines, expected) in [
            (&["gzip, deflate, br"][..], true),
            (&["br", "deflate, GZIP"], true),
            (&["gzip ; q=0.001"], true),
            (&["gzip;q=0"], false),
            (&["br, gzip; q=0.000"], false),
            (&["gzip;Q=0"], false),
            (&["x-gzip, br"], false),
            (&["*"], false),
            (&[], false),
        ] {
            let line = |line| (header::ACCEPT_ENCODING, HeaderValue::from_static(line));
            assert_eq!(accepts_gzip(&lines.iter().copied().map(line).collect()), expected, "{lines:?}");
        }
    }
}
