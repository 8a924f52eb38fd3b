//! Progress lines of the set-up: one line for each step with its name, its result and its duration. A long step prints
//! a heartbeat every ten seconds.

use std::{
    cell::RefCell,
    fmt, fs,
    path::Path,
    rc::Rc,
    time::{Duration, Instant},
};

use tokio::{process::Command, time};

use crate::{
    failure::Failure,
    process_group::{self, ProgramError},
};

const HEARTBEAT: Duration = Duration::from_secs(10);

/// A running step.
#[derive(Clone)]
pub struct Step {
    name: Rc<str>,
    /// The latest line of output of the step's program, or the step's own report.
    latest_line: Rc<RefCell<String>>,
}

/// The result of a step: a few words for its progress line, and a value.
pub struct Done<T> {
    pub summary: String,
    pub value: T,
}

/// The result of a step without a value.
pub fn done(summary: impl Into<String>) -> Done<()> {
    Done { summary: summary.into(), value: () }
}

/// Runs one step and prints its progress line.
///
/// # Errors
/// Those of `work`.
pub async fn run_step<W, T>(name: &str, work: impl FnOnce(Step) -> W) -> Result<T, Failure>
where
    W: Future<Output = Result<Done<T>, Failure>>,
{
    let started = Instant::now();
    let step = Step { name: name.into(), latest_line: Rc::default() };
    let work = work(step.clone());
    tokio::pin!(work);
    let mut heartbeat = time::interval_at(time::Instant::now() + HEARTBEAT, HEARTBEAT);
    let done = loop {
        tokio::select! {
            done = &mut work => break done?,
            _ = heartbeat.tick() => {
                step.note(format_args!("{} s … {}", started.elapsed().as_secs(), step.latest_line.borrow()));
            }
        }
    };
    println!("ok   {name}: {} ({:.1} s)", done.summary, started.elapsed().as_secs_f32());
    Ok(done.value)
}

impl Step {
    /// Prints a line during the step.
    pub fn note(&self, text: impl fmt::Display) {
        println!("...  {}: {text}", self.name);
    }

    /// Sets what the next heartbeat prints.
    pub fn report(&self, text: impl fmt::Display) {
        *self.latest_line.borrow_mut() = text.to_string();
    }

    /// Runs a program of this step to its end and returns its output.
    ///
    /// # Errors
    /// When the program does not start or fails; see [`Step::program_failure`].
    pub async fn run_program(&self, command: Command, remedy: &str) -> Result<String, Failure> {
        self.try_program(command).await?.map_err(|error| self.program_failure(&error, remedy))
    }

    /// As [`Step::run_program`], but the caller decides about an unsuccessful end.
    ///
    /// # Errors
    /// The outer error when the program does not start, the inner one when it fails.
    pub async fn try_program(&self, command: Command) -> Result<Result<String, ProgramError>, Failure> {
        process_group::run(command, |line| {
            // Skips npm's warnings, and the frames and carets that compilers draw around code.
            let line = line.trim();
            if !line.starts_with("npm warn") && line.starts_with(|first: char| first.is_alphabetic() || first == '[') {
                line.clone_into(&mut self.latest_line.borrow_mut());
            }
        })
        .await
    }

    /// Writes the output of a failed program to `.cache/logs`. The cause is the program's own error line.
    #[must_use]
    pub fn program_failure(&self, error: &ProgramError, remedy: &str) -> Failure {
        let file: String =
            self.name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
        let path = Path::new(".cache/logs").join(file + ".log");
        let is_logged = fs::create_dir_all(".cache/logs").and_then(|()| fs::write(&path, &error.output)).is_ok();
        let log = if is_logged { format!("; its whole output is in {}", path.display()) } else { String::new() };
        let cause = error_line(&error.output).unwrap_or(&error.status);
        Failure::new(format!("{}: {cause}", self.name), format!("{remedy}{log}"))
    }
}

/// The most useful line of `output`: the first sentence that contains "error", otherwise the last line.
fn error_line(output: &str) -> Option<&str> {
    let mut lines = output.lines().map(str::trim).filter(|line| !line.is_empty());
    // npm prints codes first ("npm error code ENOTFOUND"), then the sentence.
    let is_error_sentence = |line: &&str| {
        let line = line.to_ascii_lowercase();
        line.contains("error") && line.split_whitespace().count() > 4
    };
    lines.clone().find(is_error_sentence).or_else(|| lines.next_back())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_the_first_error_sentence_of_the_program() {
        let npm = "npm warn old\nnpm error code E404\nnpm error 404 Not Found - GET left-pad\nnpm error A complete log";
        assert_eq!(error_line(npm), Some("npm error 404 Not Found - GET left-pad"));
        assert_eq!(error_line("Compiling a\n\n  killed \n"), Some("killed"));
        assert_eq!(error_line(""), None);
    }
}
