//! A Redis command as bytes.

/// A command's name and arguments. The parsers of [`crate::request`] never return one without a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The name, then the arguments.
    pub args: Vec<Vec<u8>>,
    /// Bytes of arguments that were counted, but not kept, because the command exceeds the limit for its size.
    omitted: usize,
}

impl Command {
    /// A command of name and arguments.
    pub(crate) fn new(args: Vec<Vec<u8>>) -> Self {
        Self { args, omitted: 0 }
    }

    /// A command that was sent with so many bytes, of which `args` is what was kept.
    pub(super) fn of_size(args: Vec<Vec<u8>>, size: usize) -> Self {
        let kept = args.iter().map(Vec::len).sum();
        Self { args, omitted: size.saturating_sub(kept) }
    }

    /// A command of these words.
    pub(crate) fn from_words(words: &[&str]) -> Self {
        Self::new(words.iter().map(|word| word.as_bytes().to_vec()).collect())
    }

    /// The name in upper case, or `?` if it does not look like a name. A client may put a value in the wrong place, and
    /// logs must not contain values.
    #[must_use]
    pub fn name(&self) -> String {
        let name = self.word(0);
        let is_plausible = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        if name.len() > 32 || !name.iter().all(is_plausible) {
            return "?".to_owned();
        }
        String::from_utf8_lossy(name).to_ascii_uppercase()
    }

    /// The argument at `index`; index 0 is the name. Empty if there is none.
    #[must_use]
    pub fn arg(&self, index: usize) -> &[u8] {
        self.args.get(index).map_or(&[], Vec::as_slice)
    }

    /// The argument at `index` as the server reads a name, a subcommand or an option: up to the first NUL. The server
    /// compares them as strings of C, so `SYNC\0x` is SYNC.
    pub(crate) fn word(&self, index: usize) -> &[u8] {
        up_to_nul(self.arg(index))
    }

    /// Returns whether the command runs a script or a function, whose reply may be any error.
    pub(crate) fn runs_script(&self) -> bool {
        let scripts = ["EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO"];
        scripts.contains(&self.name().as_str())
    }

    /// The words of XREAD or XREADGROUP that may be names of options, with their indices. The names of a group and its
    /// consumer are left out.
    pub(crate) fn stream_options(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let mut names_left = 0;
        self.args.iter().map(|arg| up_to_nul(arg)).enumerate().filter(move |(_, word)| {
            let is_option = names_left == 0;
            names_left = if !is_option {
                names_left - 1
            } else if word.eq_ignore_ascii_case(b"GROUP") {
                2
            } else {
                0
            };
            is_option
        })
    }

    /// Size of name and arguments, in bytes. Above 10 MiB, `args` has the name only.
    #[must_use]
    pub fn size(&self) -> usize {
        self.args.iter().map(Vec::len).sum::<usize>() + self.omitted
    }
}

fn up_to_nul(arg: &[u8]) -> &[u8] {
    arg.split(|byte| *byte == 0).next().unwrap_or_default()
}
