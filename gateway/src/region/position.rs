//! A place in a replication stream, which is the sync token of a region.

use http::HeaderValue;

/// Hexadecimal digits of a stream's name.
const STREAM_DIGITS: usize = 40;

/// A place in a primary's replication stream. As text: `<name of the stream>:<bytes>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The stream's name. It changes when another server becomes the primary, or the primary starts anew.
    stream: String,
    /// Bytes since the stream's begin.
    offset: u64,
    /// The stream of the primary before, and the bytes of it that the server has executed. It knows them if it took over from
    /// that primary, or follows the server that did.
    earlier: Option<(String, u64)>,
}

impl Position {
    /// The position of the server that sent this section `replication` of INFO.
    pub(crate) fn from_info(info: &str) -> Option<Self> {
        let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        // A replica has executed the stream up to here.
        let offset = field("slave_repl_offset").or_else(|| field("master_repl_offset"))?;
        // The number of the first byte that differs, or -1. The first byte has the number 1.
        let earlier = || {
            let first_own: u64 = field("second_repl_offset")?.parse().ok()?;
            Some((field("master_replid2")?.to_owned(), first_own.checked_sub(1)?))
        };
        Some(Self { stream: field("master_replid")?.to_owned(), offset: offset.parse().ok()?, earlier: earlier() })
    }

    /// The position in a sync token; `None` for the token of another service.
    pub(crate) fn parse(token: &HeaderValue) -> Option<Self> {
        let (stream, offset) = token.to_str().ok()?.split_once(':')?;
        let is_stream = stream.len() == STREAM_DIGITS && stream.bytes().all(|byte| byte.is_ascii_hexdigit());
        Some(Self { stream: stream.to_owned(), offset: offset.parse().ok()?, earlier: None }).filter(|_| is_stream)
    }

    /// Returns whether this is `other` or later. `None` if that will never be: in different streams, or beyond the part of the
    /// earlier stream that the server has.
    pub(crate) fn has_reached(&self, other: &Self) -> Option<bool> {
        if self.stream == other.stream {
            return Some(self.offset >= other.offset);
        }
        let (earlier, executed) = self.earlier.as_ref()?;
        (*earlier == other.stream && *executed >= other.offset).then_some(true)
    }
}

impl From<Position> for HeaderValue {
    fn from(Position { stream, offset, .. }: Position) -> Self {
        // Cannot fail: both sources of positions have visible ASCII only.
        Self::try_from(format!("{stream}:{offset}")).unwrap_or(Self::from_static(""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "8d7cc1a1f6c2bd0bd1d2c6d0f5b7e7f0a1b2c3d4";

    fn info(role: &str) -> String {
        format!("# Replication\r\n{role}\r\nmaster_replid:{STREAM}\r\nmaster_repl_offset:90\r\n")
    }

    #[test]
    fn a_replica_is_where_it_has_executed_the_stream() {
        let primary = Position::from_info(&info("role:master")).expect("a position");
        let replica = Position::from_info(&info("role:slave\r\nslave_repl_offset:70")).expect("a position");
        assert_eq!((primary.offset, replica.offset), (90, 70));
        assert_eq!((replica.has_reached(&primary), primary.has_reached(&replica)), (Some(false), Some(true)));
        let other = Position { stream: String::new(), offset: 1, earlier: None };
        assert_eq!(primary.has_reached(&other), None);
    }

    #[test]
    fn a_server_that_took_over_has_the_part_of_the_earlier_stream_that_it_executed() {
        let old = "1".repeat(STREAM_DIGITS);
        let taken_over = info(&format!("role:master\r\nmaster_replid2:{old}\r\nsecond_repl_offset:71"));
        let server = Position::from_info(&taken_over).expect("a position");
        let seen = |offset| Position { stream: old.clone(), offset, earlier: None };
        assert_eq!([69, 70, 71].map(|offset| server.has_reached(&seen(offset))), [Some(true), Some(true), None]);
        let never =
            info("role:master\r\nmaster_replid2:0000000000000000000000000000000000000000\r\nsecond_repl_offset:-1");
        assert_eq!(Position::from_info(&never).and_then(|position| position.earlier), None);
    }

    #[test]
    fn a_token_is_read_as_it_was_written_and_no_other_text_is_one() {
        let position = Position::from_info(&info("role:master")).expect("a position");
        assert_eq!(Position::parse(&HeaderValue::from(position.clone())), Some(position));
        for foreign in ["", "7", "a:1", &format!("{STREAM}:-1"), &format!("{STREAM}:x"), &format!("{STREAM}0:1")] {
            assert_eq!(Position::parse(&HeaderValue::from_str(foreign).expect("ASCII")), None, "{foreign}");
        }
    }
}
