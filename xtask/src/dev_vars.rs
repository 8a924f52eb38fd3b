//! The secrets of local development, in .dev.vars. What is there is never changed; what is missing is added once, with random values.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};

use xtask::failure::Failure;

/// What `cargo xtask dev` needs and may invent.
pub const GENERATED: [&str; 4] = ["UPSTASH_REDIS_REST_TOKEN", "SESSION_KEYS", "SERVICE_KEY", "ORIGIN_KEY"];

/// Variables by name.
pub type Vars = BTreeMap<String, String>;

/// The variables of the file; adds those that are missing.
///
/// # Errors
/// When the file can not be read or written, or a line is none of `NAME=VALUE`.
pub fn ensure(path: &Path) -> Result<Vars, Failure> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => String::new(),
        Err(cause) => return Err(Failure::file(path, &cause)),
    };
    let present = parse(&text).map_err(|line| {
        let cause = format!("{}, line {line}: this is not NAME=VALUE", path.display());
        Failure::new(cause, "mend the line, or delete the file: it is written anew")
    })?;
    let additions = additions(&text, &present)?;
    if !additions.is_empty() {
        append(path, &additions).map_err(|cause| Failure::file(path, &cause))?;
    }
    let added = parse(&additions).unwrap_or_default();
    Ok(present.into_iter().chain(added).collect())
}

fn append(path: &Path, text: &str) -> io::Result<()> {
    // Only its owner reads it, from its first byte on.
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())
}

/// The lines to add to `text`, which has the variables `present`.
fn additions(text: &str, present: &Vars) -> Result<String, Failure> {
    let mut lines = String::new();
    for name in GENERATED.into_iter().filter(|name| !present.contains_key(*name)) {
        if lines.is_empty() {
            let break_line = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            lines = format!("{break_line}# Written by cargo xtask dev, for this machine only.\n");
        }
        lines.extend([name, "=", &random()?, "\n"]);
    }
    Ok(lines)
}

/// 256 random bits.
fn random() -> Result<String, Failure> {
    let half = || {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|cause| Failure::new(format!("no random numbers: {cause}"), ""))?;
        Ok(u128::from_ne_bytes(bytes))
    };
    Ok(format!("{:032x}{:032x}", half()?, half()?))
}

/// Reads the part of the dotenv format that wrangler and people use: `NAME=VALUE`, `export`, comments, quotes. Err is the number of a bad line.
fn parse(text: &str) -> Result<Vars, usize> {
    let lines = (1..).zip(text.lines()).map(|(number, line)| (number, line.trim()));
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| variable(line).ok_or(number))
        .collect()
}

fn variable(line: &str) -> Option<(String, String)> {
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let quote = value.chars().next().filter(|first| "'\"`".contains(*first));
    let value = match quote {
        Some(quote) => value.get(1..)?.split_once(quote)?.0,
        None => value.split_once(" #").map_or(value, |(value, _)| value.trim_end()),
    };
    is_name.then(|| (name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_comments_and_export_are_understood() {
        let text = "# a comment\n\n A = 1 # one\nexport B=\"two # 2\" # B\nC='x=y'\nD=\n";
        let vars = parse(text).unwrap();
        let pairs: Vec<_> = vars.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("A", "1"), ("B", "two # 2"), ("C", "x=y"), ("D", "")]);
    }

    #[test]
    fn a_bad_line_is_named_by_its_number() {
        assert_eq!(parse("A=1\nnonsense\n"), Err(2));
        assert_eq!(parse("=1"), Err(1));
        assert_eq!(parse("A B=1"), Err(1));
        assert_eq!(parse("A=1\n\nB=\"open"), Err(3));
    }

    #[test]
    fn what_is_there_is_kept_and_only_the_rest_is_added() {
        let text = "SERVICE_KEY=mine\nORIGIN_KEY=";
        let added = additions(text, &parse(text).unwrap()).unwrap();
        let vars = parse(&format!("{text}{added}")).unwrap();
        assert_eq!((vars["SERVICE_KEY"].as_str(), vars["ORIGIN_KEY"].as_str()), ("mine", ""));
        assert_eq!(vars["SESSION_KEYS"].len(), 64);
        assert_ne!(vars["SESSION_KEYS"], vars["UPSTASH_REDIS_REST_TOKEN"]);
        assert_eq!(additions(text, &vars).unwrap(), "");
    }

    #[test]
    fn the_file_is_written_once_and_only_its_owner_reads_it() {
        let path = std::env::temp_dir().join(format!("edgefront-dev-vars-{}", std::process::id()));
        let first = ensure(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let written = fs::read_to_string(&path).unwrap();
        assert_eq!(ensure(&path).unwrap(), first);
        assert_eq!(fs::read_to_string(&path).unwrap(), written);
        fs::remove_file(path).unwrap();
    }
}
