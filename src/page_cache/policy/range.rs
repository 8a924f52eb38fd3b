//! Range requests (RFC 9110 §14, §13.1.5). One byte range is served; several ranges or an invalid one get the whole
//! response, as §14.2 allows.

use http::{HeaderMap, header};

use super::freshness::date;

/// The part of a body that a request gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// From `start` to the byte before `end`.
    Bytes { start: usize, end: usize },
    /// 416: the range lies outside the body.
    Unsatisfiable,
}

/// The part of a body of `length` bytes that a request gets; `stored` are the stored response's headers.
#[must_use]
pub fn part(request: &HeaderMap, stored: &HeaderMap, length: usize) -> Part {
    let mut lines = request.get_all(header::RANGE).iter();
    let Some(range) = lines.next().and_then(|range| range.to_str().ok()) else { return Part::Whole };
    if lines.next().is_some() || !if_range_holds(request, stored) {
        return Part::Whole;
    }
    read(range, length).unwrap_or(Part::Whole)
}

/// `If-Range` (§13.1.5): a strong comparison; dates must be identical.
fn if_range_holds(request: &HeaderMap, stored: &HeaderMap) -> bool {
    let Some(condition) = request.get(header::IF_RANGE) else { return true };
    if let Some(modified) = date(condition) {
        // A page that was sent in the second of its change may have changed again in this second (§8.8.2.2).
        let is_strong = stored.get(header::DATE).and_then(date).is_some_and(|sent| sent > modified);
        return is_strong && stored.get(header::LAST_MODIFIED) == Some(condition);
    }
    !condition.as_bytes().starts_with(b"W/") && stored.get(header::ETAG) == Some(condition)
}

/// Parses `bytes=a-b`, `bytes=a-` or `bytes=-n`; None for anything else.
fn read(range: &str, length: usize) -> Option<Part> {
    let (unit, range) = range.split_once('=')?;
    let (first, last) = range.trim().split_once('-').filter(|_| unit.trim().eq_ignore_ascii_case("bytes"))?;
    let (start, end) = if first.is_empty() {
        (length.saturating_sub(number(last)?), length)
    } else {
        let (first, last) = (number(first)?, if last.is_empty() { usize::MAX } else { number(last)? });
        if last < first {
            return None;
        }
        (first, last.saturating_add(1).min(length))
    };
    Some(if start < end { Part::Bytes { start, end } } else { Part::Unsatisfiable })
}

/// A number that overflows counts as the largest one.
fn number(digits: &str) -> Option<usize> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::try_from(*value).unwrap())).collect()
    }

    // RFC 9110 §14.1.2
    #[test]
    fn one_range_of_bytes_is_a_part() {
        let bytes = |start, end| Part::Bytes { start, end };
        for (range, expected) in [
            ("bytes=0-1", bytes(0, 2)),
            ("bytes=1-", bytes(1, 10)),
            ("bytes=-3", bytes(7, 10)),
            ("bytes=-30", bytes(0, 10)),
            ("bytes=9-99999999999999999999999", bytes(9, 10)),
            ("Bytes = 0-0", bytes(0, 1)),
            ("bytes=10-", Part::Unsatisfiable),
            ("bytes=-0", Part::Unsatisfiable),
            ("bytes=5-4", Part::Whole),
            ("bytes=0-1,3-4", Part::Whole),
            ("bytes=", Part::Whole),
            ("bytes=-", Part::Whole),
            ("bytes=a-b", Part::Whole),
            ("items=0-1", Part::Whole),
        ] {
            assert_eq!(part(&headers(&[("range", range)]), &HeaderMap::new(), 10), expected, "{range}");
        }
        assert_eq!(part(&headers(&[("range", "bytes=0-")]), &HeaderMap::new(), 0), Part::Unsatisfiable);
    }

    // §13.1.5
    #[test]
    fn a_part_of_another_page_is_not_wanted() {
        let modified = "Sat, 21 Nov 2026 15:00:00 GMT";
        let dates = ["Sat, 21 Nov 2026 15:00:00 GMT", "Sat, 21 Nov 2026 15:00:01 GMT"];
        let [weak, stored] =
            dates.map(|date| headers(&[("etag", "\"a\""), ("last-modified", modified), ("date", date)]));
        let by_date = headers(&[("range", "bytes=0-1"), ("if-range", modified)]);
        assert_eq!(part(&by_date, &weak, 10), Part::Whole, "the page may have changed in that second (§8.8.2.2)");
        for (condition, is_part) in [
            ("\"a\"", true),
            ("\"b\"", false),
            ("W/\"a\"", false),
            (modified, true),
            ("Sat, 21 Nov 2026 15:00:01 GMT", false),
        ] {
            let request = headers(&[("range", "bytes=0-1"), ("if-range", condition)]);
            assert_eq!(part(&request, &stored, 10) != Part::Whole, is_part, "{condition}");
        }
        let weak = headers(&[("etag", "W/\"a\"")]);
        assert_eq!(part(&headers(&[("range", "bytes=0-1"), ("if-range", "W/\"a\"")]), &weak, 10), Part::Whole);
    }

    proptest! {
        #[test]
        fn a_part_lies_within_the_body(range in "(bytes=)?[0-9,-]{0,8}", length in 0usize..20) {
            if let Part::Bytes { start, end } = part(&headers(&[("range", &range)]), &HeaderMap::new(), length) {
                prop_assert!(start < end && end <= length);
            }
        }
    }
}
