//! Adds up the results that `cargo test` prints for each suite, and collects the output of failed tests.

/// The lines that a summary keeps of a failed test's output.
const LINES_OF_A_FAILURE: usize = 40;

/// The results of all suites so far.
#[derive(Debug, Default)]
pub struct Summary {
    pub suites: Vec<Suite>,
    /// The first lines of each failed test's output, without the backtrace. They are repeated at the end, because
    /// thousands of lines follow the place where `cargo test` prints them.
    pub failures: Vec<Vec<String>>,
    /// The suite whose results come next.
    running: String,
    /// True between the title of a failed test's output and its backtrace or end.
    is_in_failure: bool,
}

/// The results of one test binary.
#[derive(Debug, PartialEq, Eq)]
pub struct Suite {
    pub name: String,
    pub passed: u32,
    pub failed: u32,
}

impl Summary {
    /// Reads one line of the output of `cargo test`.
    pub fn read(&mut self, line: &str) {
        self.read_failure(line);
        let line = line.trim();
        if let Some(binary) = line.strip_prefix("Running ") {
            self.running = suite_name(binary);
        } else if let Some(package) = line.strip_prefix("Doc-tests ") {
            self.running = format!("{package}, documentation");
        } else if let Some(result) = line.strip_prefix("test result: ") {
            let suite =
                Suite { name: self.running.clone(), passed: count(result, "passed"), failed: count(result, "failed") };
            // Every binary is a suite; those without tests are left out.
            if suite.passed + suite.failed > 0 {
                self.suites.push(suite);
            }
        }
    }

    /// Keeps a line of a failed test's output. `---- name stdout ----` opens the output of a test. A backtrace or the
    /// list `failures:` follows.
    fn read_failure(&mut self, line: &str) {
        if line.starts_with("---- ") && line.ends_with(" ----") {
            self.is_in_failure = true;
            self.failures.push(Vec::new());
        } else if ["stack backtrace:", "failures:"].contains(&line) {
            self.is_in_failure = false;
        }
        let failure = self.failures.last_mut().filter(|lines| self.is_in_failure && lines.len() < LINES_OF_A_FAILURE);
        if let Some(lines) = failure {
            lines.push(line.to_owned());
        }
    }

    /// The numbers of passed and failed tests in all suites.
    pub fn totals(&self) -> (u32, u32) {
        self.suites.iter().fold((0, 0), |(passed, failed), suite| (passed + suite.passed, failed + suite.failed))
    }
}

/// The number before the word `outcome` in `ok. 2 passed; 0 failed; …`.
fn count(result: &str, outcome: &str) -> u32 {
    let words: Vec<_> = result.split([' ', ';', '.']).filter(|word| !word.is_empty()).collect();
    let number = words.windows(2).find_map(|pair| match pair {
        [number, word] if *word == outcome => number.parse().ok(),
        _ => None,
    });
    number.unwrap_or(0)
}

/// `tests/a.rs (target/debug/deps/a-0123)` is the suite `a`; `unittests src/lib.rs (…/a-0123)` is
/// `a, unit tests of src/lib.rs`.
fn suite_name(binary: &str) -> String {
    let (source, file) = binary.split_once(" (").unwrap_or((binary, binary));
    let file = file.rsplit('/').next().unwrap_or(file).trim_end_matches(')');
    let name = file.rsplit_once('-').map_or(file, |(name, _)| name);
    match source.strip_prefix("unittests ") {
        Some(source) => format!("{name}, unit tests of {source}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_totals_cover_all_suites() {
        let output = "   Compiling edgefront v0.1.0\n\
            \x20    Running unittests src/lib.rs (target/debug/deps/edgefront-0a1b)\n\nrunning 2 tests\n\
            test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
            \x20    Running tests/storefront/main.rs (target/debug/deps/storefront-2c3d)\n\
            test result: FAILED. 10 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 9.12s\n\
            \x20    Running unittests src/main.rs (target/debug/deps/edgefront_gateway-4e5f)\n\
            test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
            \x20  Doc-tests edgefront\n\
            test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.30s\n";
        let mut summary = Summary::default();
        output.lines().for_each(|line| summary.read(line));
        let suite = |name: &str, passed, failed| Suite { name: name.to_owned(), passed, failed };
        assert_eq!(
            summary.suites,
            [
                suite("edgefront, unit tests of src/lib.rs", 2, 0),
                suite("storefront", 10, 3),
                suite("edgefront, documentation", 1, 0)
            ]
        );
        assert_eq!(summary.totals(), (13, 3));
    }

    #[test]
    fn the_output_of_each_failed_test_is_kept() {
        let long = "a line\n".repeat(100);
        let output = format!(
            "test a ... FAILED\n\nfailures:\n\n---- a stdout ----\nleft: 1\nstack backtrace:\n   0: f\n\n---- b stdout ----\n{long}\n\
             failures:\n    a\n    b\n\ntest result: FAILED. 0 passed; 2 failed;\n"
        );
        let mut summary = Summary::default();
        output.lines().for_each(|line| summary.read(line));
        assert_eq!(summary.failures[0], ["---- a stdout ----", "left: 1"]);
        assert_eq!(summary.failures[1].len(), LINES_OF_A_FAILURE);
        assert_eq!(summary.failures.len(), 2);
    }
}
