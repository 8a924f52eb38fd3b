//! A Lua script. It is sent by its SHA-1, and in full only when the server does not know that.

/// A script that lives as long as the program.
///
/// Each begins with `#!lua flags=allow-key-locking`: Upstash then locks the declared keys instead of the whole database. So
/// every key that a script touches is in KEYS, and a script never stands in a transaction.
#[derive(Debug)]
pub struct Script {
    /// For the log.
    pub name: &'static str,
    /// The Lua text.
    pub source: &'static str,
    /// SHA-1 of `source`, lower-case hexadecimal.
    pub sha1: &'static str,
}

/// The script in `scripts/{name}.lua`, [`dense`]: with the comments, which are for people, all scripts were 40 % of the Worker's data.
macro_rules! script {
    ($name:literal, $sha1:literal) => {{
        const TEXT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/schema/scripts/", $name, ".lua"));
        const LENGTH: usize = $crate::upstash::dense::<{ TEXT.len() }>(TEXT).1;
        const BYTES: [u8; LENGTH] = $crate::upstash::dense(TEXT).0;
        $crate::upstash::Script {
            name: $name,
            source: match std::str::from_utf8(&BYTES) {
                Ok(source) => source,
                Err(_) => "",
            },
            sha1: $sha1,
        }
    }};
}
pub(crate) use script;

/// Lua without the lines that are comments or empty, and without indentation; and how many bytes that is, which an `N` that is larger shows.
///
/// No string of a script may go over several lines.
pub(crate) const fn dense<const N: usize>(text: &str) -> ([u8; N], usize) {
    let mut dense = [0; N];
    let (mut free, mut length) = (dense.as_mut_slice(), 0);
    let mut rest = text.as_bytes();
    loop {
        match rest {
            [] => break,
            [b' ' | b'\n', after @ ..] => rest = after,
            [b'-', b'-', ..] => {
                while let [byte, after @ ..] = rest
                    && *byte != b'\n'
                {
                    rest = after;
                }
            }
            // A line, with its end.
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
    (dense, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_people_only_is_left_out() {
        let (text, length) = dense::<64>("#!lua\n-- why\n\n  local a = '--' -- b\n    -- c\n  return a\n");
        assert_eq!(&text[..length], b"#!lua\nlocal a = '--' -- b\nreturn a\n");
        assert_eq!(dense::<2>("return 1"), (*b"re", 8));
    }
}
