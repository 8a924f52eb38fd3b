//! One line for each step of the set-up: its name, what happened, how long it took. A step that takes long shows every ten seconds that it lives.

use std::{
    cell::RefCell,
    fmt, fs,
    path::Path,
    rc::Rc,
    time::{Duration, Instant},
};

use tokio::{process::Command, time};

use crate::{children, failure::Failure};

const HEARTBEAT: Duration = Duration::from_secs(10);

/// A step that runs.
#[derive(Clone)]
pub struct Step {
    name: Rc<str>,
    latest: Rc<RefCell<String>>,
}

/// Runs one step and prints its line. `work` answers with what happened, in a few words.
///
/// # Errors
/// Those of `work`.
pub async fn step<W, T>(name: &str, work: impl FnOnce(Step) -> W) -> Result<T, Failure>
where
    W: Future<Output = Result<Done<T>, Failure>>,
{
    let started = Instant::now();
    let step = Step { name: name.into(), latest: Rc::default() };
    let work = work(step.clone());
    tokio::pin!(work);
    let mut heartbeat = time::interval_at(time::Instant::now() + HEARTBEAT, HEARTBEAT);
    let done = loop {
        tokio::select! {
            done = &mut work => break done?,
            _ = heartbeat.tick() => step.note(format_args!("{} s … {}", started.elapsed().as_secs(), step.latest.borrow())),
        }
    };
    println!("ok   {name}: {} ({:.1} s)", done.what, started.elapsed().as_secs_f32());
    Ok(done.value)
}

/// What a step leaves: a few words for its line, and its result.
pub struct Done<T> {
    pub what: String,
    pub value: T,
}

/// A step that is done and has no result.
pub fn done(what: impl Into<String>) -> Done<()> {
    Done { what: what.into(), value: () }
}

impl Step {
    /// A line in between, for what takes long.
    pub fn note(&self, text: impl fmt::Display) {
        println!("...  {}: {text}", self.name);
    }

    /// Runs a program of this step; its latest line of output shows in the heartbeat.
    ///
    /// # Errors
    /// With the program's own error line; all that it printed is in `.cache/logs`.
    pub async fn run(&self, command: Command, remedy: &str) -> Result<String, Failure> {
        self.try_run(command).await?.map_err(|ended| self.failure(&ended, remedy))
    }

    /// As [`Step::run`]; the caller decides what a bad end means.
    ///
    /// # Errors
    /// The outer when the program can not be started, the inner when it ended badly.
    pub async fn try_run(&self, command: Command) -> Result<Result<String, children::Ended>, Failure> {
        children::run(command, |line| {
            // Words only: not the frames and carets that compilers draw around code.
            let line = line.trim();
            if line.starts_with(|first: char| first.is_alphabetic() || first == '[') {
                line.clone_into(&mut self.latest.borrow_mut());
            }
        })
        .await
    }

    /// The failure of a program that ended badly; writes its log.
    #[must_use]
    pub fn failure(&self, ended: &children::Ended, remedy: &str) -> Failure {
        let file: String =
            self.name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
        let path = Path::new(".cache/logs").join(file + ".log");
        let logged = fs::create_dir_all(".cache/logs").and_then(|()| fs::write(&path, &ended.output));
        let log = if logged.is_ok() { format!("; all it said is in {}", path.display()) } else { String::new() };
        let cause = error_line(&ended.output).unwrap_or(&ended.status);
        Failure::new(format!("{}: {cause}", self.name), format!("{remedy}{log}"))
    }
}

/// The line that says best what went wrong: the first that tells of an error and why, else the last.
fn error_line(output: &str) -> Option<&str> {
    let mut lines = output.lines().map(str::trim).filter(|line| !line.is_empty());
    // npm opens with codes ("npm error code ENOTFOUND"), the sentence comes after them.
    let tells = |line: &&str| {
        let line = line.to_ascii_lowercase();
        line.contains("error") && line.split_whitespace().count() > 4
    };
    lines.clone().find(tells).or_else(|| lines.next_back())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_the_programs_first_sentence_of_error() {
        let npm = "npm warn old\nnpm error code E404\nnpm error 404 Not Found - GET left-pad\nnpm error A complete log";
        assert_eq!(error_line(npm), Some("npm error 404 Not Found - GET left-pad"));
        assert_eq!(error_line("Compiling a\n\n  killed \n"), Some("killed"));
        assert_eq!(error_line(""), None);
    }
}
