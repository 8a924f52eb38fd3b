//! A Lua script. The client sends its SHA-1, and its text only if the server does not know that hash.

/// A script that lives as long as the program. The macro [`script!`](crate::script!) makes one.
///
/// On Upstash, begin the text with `#!lua flags=allow-key-locking`: the server then locks the declared keys instead of
/// the whole database. Such a script declares every key that it touches in `KEYS`, and it never takes part in a
/// transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Script {
    /// A name for logs.
    pub name: &'static str,
    /// The Lua text.
    pub source: &'static str,
    /// SHA-1 of `source` in lower-case hexadecimal. With a wrong hash every call takes a second request, which carries
    /// the text.
    pub sha1: &'static str,
    /// SHA-1 of [`Script::read_only_source`]; empty if no call of the script only reads.
    pub read_only_sha1: &'static str,
}

impl Script {
    /// A script with calls that only read ([`Client::near`](crate::Client::near)), and the SHA-1 of their text.
    #[must_use]
    pub const fn readable(self, read_only_sha1: &'static str) -> Self {
        Self { read_only_sha1, ..self }
    }

    /// The text of calls that only read: its first line has the flag `no-writes`, too. Redis refuses `EVAL_RO` for a text
    /// whose first line names other flags only.
    #[must_use]
    pub fn read_only_source(&self) -> String {
        let rest = self.source.strip_prefix(FLAGS);
        rest.map_or_else(|| self.source.to_owned(), |rest| [FLAGS, "no-writes,", rest].concat())
    }
}

/// The beginning of a script that has flags.
const FLAGS: &str = "#!lua flags=";

/// Makes a [`Script`] at compile time: `script!(name, text)`, or `script!(name, text, sha1)` to pin its hash.
///
/// `text` is a string literal or an [`include_str!`]. The script is `text` without comment lines, blank lines and
/// indentation, and `sha1` is the hash of that. If it differs, the program does not compile: an accidental change of a
/// script then shows itself in review. Texts that hold a long bracket (`[[`, `[=`) or continue a line with a backslash
/// stay as they are.
///
/// ```
/// use upstash_rest::{Script, script};
///
/// static VISIT: Script = script!(
///     "visit",
///     "#!lua flags=allow-key-locking
///     -- Counts a visit, and returns how many there are.
///     return redis.call('INCR', KEYS[1])
///     "
/// );
/// assert_eq!(VISIT.source, "#!lua flags=allow-key-locking\nreturn redis.call('INCR', KEYS[1])\n");
/// ```
#[macro_export]
macro_rules! script {
    ($name:expr, $text:expr, $sha1:expr $(,)?) => {{
        const SCRIPT: $crate::Script = $crate::script!($name, $text);
        const { ::core::assert!($crate::__private::equal(SCRIPT.sha1, $sha1), "the script has another SHA-1") };
        SCRIPT
    }};
    ($name:expr, $text:expr $(,)?) => {{
        const TEXT: &str = $text;
        const LENGTH: usize = $crate::__private::strip_comments::<{ TEXT.len() }>(TEXT).1;
        const SOURCE: [u8; LENGTH] = $crate::__private::strip_comments(TEXT).0;
        const SHA1: [u8; 40] = $crate::__private::sha1_hex(&SOURCE);
        $crate::Script {
            name: $name,
            source: match ::core::str::from_utf8(&SOURCE) {
                Ok(source) => source,
                Err(_) => "",
            },
            sha1: match ::core::str::from_utf8(&SHA1) {
                Ok(sha1) => sha1,
                Err(_) => "",
            },
            read_only_sha1: "",
        }
    }};
}

/// Removes the lines of a Lua text that are comments or blank, and all indentation. Returns the text and its length in
/// bytes; an `N` that is larger than that shows how small `N` can be.
///
/// Replaces a build script that minifies. In a Worker with 21 scripts this made 33.0 KB of text 21.7 KB, and 9.9 KB
/// gzipped 5.5 KB.
#[must_use]
pub const fn strip_comments<const N: usize>(text: &str) -> ([u8; N], usize) {
    let is_stripped = is_line_by_line(text.as_bytes());
    let mut stripped = [0; N];
    let (mut free, mut length) = (stripped.as_mut_slice(), 0);
    let mut rest = text.as_bytes();
    loop {
        match rest {
            [] => break,
            [b' ' | b'\n' | b'\t' | b'\r', after @ ..] if is_stripped => rest = after,
            [b'-', b'-', ..] if is_stripped => {
                while let [byte, after @ ..] = rest
                    && *byte != b'\n'
                {
                    rest = after;
                }
            }
            // A line of code, with its end.
            _ => {
                while let [byte, after @ ..] = rest {
                    if let [slot, others @ ..] = free {
                        *slot = *byte;
                        free = others;
                    }
                    (rest, length) = (after, length + 1);
                    if *byte == b'\n' {
                        break;
                    }
                }
            }
        }
    }
    (stripped, length)
}

/// Returns whether no string and no comment of a Lua text goes over several lines.
const fn is_line_by_line(mut text: &[u8]) -> bool {
    loop {
        match text {
            [] => return true,
            [b'[', b'[' | b'=', ..] | [b'\\', b'\n' | b'\r' | b'z', ..] => return false,
            [_, after @ ..] => text = after,
        }
    }
}

/// Returns whether two texts are equal: `==` is not const.
#[must_use]
pub const fn equal(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.as_bytes(), other.as_bytes());
    while let ([a, one_rest @ ..], [b, other_rest @ ..]) = (one, other) {
        if *a != *b {
            return false;
        }
        (one, other) = (one_rest, other_rest);
    }
    one.is_empty() && other.is_empty()
}

/// SHA-1 (FIPS 180-4) of `text` in lower-case hexadecimal.
///
/// Replaces the crate `sha1`, which cannot run at compile time: a hash that is computed there costs the program
/// nothing.
#[must_use]
#[expect(clippy::indexing_slicing, reason = "runs at compile time, where an index out of bounds is an error")]
pub const fn sha1_hex(text: &[u8]) -> [u8; 40] {
    let mut hash: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    // The text, a bit that is 1, and the text's length in 8 bytes.
    let blocks = (text.len() + 8) / 64 + 1;
    let mut block = 0;
    while block < blocks {
        hash = add_block(hash, &block_of(text, block, blocks));
        block += 1;
    }
    let (mut hex, mut place) = ([0; 40], 0);
    while place < 40 {
        let digit = (hash[place / 8] >> (28 - 4 * (place % 8))) & 0xf;
        hex[place] = b"0123456789abcdef"[digit as usize];
        place += 1;
    }
    hex
}

/// Block number `block` of the padded text, as 16 words.
#[expect(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "as above; shifts leave one byte")]
const fn block_of(text: &[u8], block: usize, blocks: usize) -> [u32; 16] {
    let bits = (text.len() as u64) * 8;
    let (mut words, mut byte) = ([0; 16], 0);
    while byte < 64 {
        let (place, from_end) = (block * 64 + byte, (blocks - block) * 64 - byte);
        let value = if place < text.len() {
            text[place]
        } else if place == text.len() {
            0x80
        } else if from_end <= 8 {
            (bits >> (8 * (from_end - 1))) as u8
        } else {
            0
        };
        words[byte / 4] = (words[byte / 4] << 8) | value as u32;
        byte += 1;
    }
    words
}

#[expect(clippy::indexing_slicing, clippy::many_single_char_names, reason = "as above; the standard's names")]
const fn add_block(hash: [u32; 5], block: &[u32; 16]) -> [u32; 5] {
    let mut words = *block;
    let [mut a, mut b, mut c, mut d, mut e] = hash;
    let mut round = 0;
    while round < 80 {
        if round >= 16 {
            let word = words[(round + 13) % 16] ^ words[(round + 8) % 16] ^ words[(round + 2) % 16] ^ words[round % 16];
            words[round % 16] = word.rotate_left(1);
        }
        let (mixed, constant) = match round {
            0..20 => ((b & c) | (!b & d), 0x5a82_7999),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6_u32),
        };
        let sum = a.rotate_left(5).wrapping_add(mixed).wrapping_add(e).wrapping_add(constant);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, sum.wrapping_add(words[round % 16]));
        round += 1;
    }
    [
        hash[0].wrapping_add(a),
        hash[1].wrapping_add(b),
        hash[2].wrapping_add(c),
        hash[3].wrapping_add(d),
        hash[4].wrapping_add(e),
    ]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sha1::{Digest, Sha1};

    use super::*;

    fn stripped(text: &str) -> String {
        let (bytes, length) = strip_comments::<256>(text);
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    #[test]
    fn comment_lines_blank_lines_and_indentation_are_removed() {
        let text = "#!lua\n-- why\r\n\n  local a = '--' -- b\n\t-- c\n  return a\n";
        assert_eq!(stripped(text), "#!lua\nlocal a = '--' -- b\nreturn a\n");
        assert_eq!(strip_comments::<2>("return 1"), (*b"re", 8));
    }

    #[test]
    fn a_string_or_comment_over_several_lines_is_left_as_it_is() {
        for text in
            ["--[[ a\n b ]]\nreturn 1", "return [[\n  a\n]]", "--[==[ a\n]==]", "return 'a\\\n  b'", "'\\z\n  b'"]
        {
            assert_eq!(stripped(text), text);
        }
    }

    #[test]
    fn the_macro_strips_and_hashes_at_compile_time() {
        static ONE: Script = crate::script!("one", "  -- 1\n  return 1", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
        assert_eq!((ONE.name, ONE.source), ("one", "return 1"));
    }

    #[test]
    fn texts_are_equal_if_all_bytes_are() {
        assert!(equal("", "") && equal("ab", "ab"));
        assert!(!equal("ab", "a") && !equal("a", "ab") && !equal("a", "b"));
    }

    proptest! {
        #[test]
        fn the_hash_is_that_of_the_reference(text in prop::collection::vec(any::<u8>(), 0..300)) {
            let reference: String = Sha1::digest(&text).iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
            let hash = sha1_hex(&text);
            prop_assert_eq!(hash.as_slice(), reference.as_bytes());
        }
    }
}
