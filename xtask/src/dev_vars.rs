//! The secrets of local development in .dev.vars. Existing lines stay unchanged; missing secrets are appended once,
//! with random values.

use std::{
    fs::{self, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};

use xtask::{failure::Failure, variables::Variables};

/// The secrets that `cargo xtask dev` needs and may generate.
pub const GENERATED: [&str; 4] = ["UPSTASH_REDIS_REST_TOKEN", "SESSION_KEYS", "SERVICE_KEY", "ORIGIN_KEY"];

/// Reads the file and appends the missing secrets.
///
/// # Errors
/// When the file cannot be read or written, or a line is not `NAME=VALUE`.
pub fn read_or_generate(path: &Path) -> Result<Variables, Failure> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => String::new(),
        Err(cause) => return Err(Failure::file(path, &cause)),
    };
    let present = parse(&text).map_err(|line| {
        let cause = format!("{}, line {line}: this is not NAME=VALUE", path.display());
        Failure::new(cause, "correct the line, or delete the file: xtask then generates a new one")
    })?;
    let additions = generate_missing(&text, &present)?;
    if !additions.is_empty() {
        append(path, &additions).map_err(|cause| Failure::file(path, &cause))?;
    }
    let added = parse(&additions).unwrap_or_default();
    Ok(present.into_iter().chain(added).collect())
}

fn append(path: &Path, text: &str) -> io::Result<()> {
    // Only the owner may read the file, from its first byte on.
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())
}

/// The lines to append to `text`, whose variables are `present`.
fn generate_missing(text: &str, present: &Variables) -> Result<String, Failure> {
    let mut lines = String::new();
    for name in GENERATED.into_iter().filter(|name| !present.contains_key(*name)) {
        if lines.is_empty() {
            let line_break = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            lines = format!("{line_break}# Written by cargo xtask dev, for this machine only.\n");
        }
        lines.extend([name, "=", &random_hex()?, "\n"]);
    }
    Ok(lines)
}

/// 256 random bits as 64 hexadecimal digits.
fn random_hex() -> Result<String, Failure> {
    let half = || {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|cause| Failure::new(format!("no random numbers: {cause}"), ""))?;
        Ok(u128::from_ne_bytes(bytes))
    };
    Ok(format!("{:032x}{:032x}", half()?, half()?))
}

/// Parses the part of the dotenv format that wrangler and people use: `NAME=VALUE`, `export`, comments, quotes. The
/// error is the number of the first invalid line.
fn parse(text: &str) -> Result<Variables, usize> {
    let lines = (1..).zip(text.lines()).map(|(number, line)| (number, line.trim()));
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| parse_line(line).ok_or(number))
        .collect()
}

fn parse_line(line: &str) -> Option<(String, String)> {
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
        let variables = parse(text).unwrap();
        let pairs: Vec<_> = variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("A", "1"), ("B", "two # 2"), ("C", "x=y"), ("D", "")]);
    }

    #[test]
    fn an_error_has_the_number_of_the_invalid_line() {
        assert_eq!(parse("A=1\nnonsense\n"), Err(2));
        assert_eq!(parse("=1"), Err(1));
        assert_eq!(parse("A B=1"), Err(1));
        assert_eq!(parse("A=1\n\nB=\"open"), Err(3));
    }

    #[test]
    fn existing_variables_stay_and_missing_ones_are_added() {
        let text = "SERVICE_KEY=mine\nORIGIN_KEY=";
        let added = generate_missing(text, &parse(text).unwrap()).unwrap();
        let variables = parse(&format!("{text}{added}")).unwrap();
        assert_eq!((variables["SERVICE_KEY"].as_str(), variables["ORIGIN_KEY"].as_str()), ("mine", ""));
        assert_eq!(variables["SESSION_KEYS"].len(), 64);
        assert_ne!(variables["SESSION_KEYS"], variables["UPSTASH_REDIS_REST_TOKEN"]);
        assert_eq!(generate_missing(text, &variables).unwrap(), "");
    }

    #[test]
    fn the_file_is_written_once_and_only_its_owner_may_read_it() {
        let path = std::env::temp_dir().join(format!("edgefront-dev-vars-{}", std::process::id()));
        let first = read_or_generate(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let written = fs::read_to_string(&path).unwrap();
        assert_eq!(read_or_generate(&path).unwrap(), first);
        assert_eq!(fs::read_to_string(&path).unwrap(), written);
        fs::remove_file(path).unwrap();
    }
}
