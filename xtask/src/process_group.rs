//! Child processes. Each child leads a process group of its own. Dropping a [`ProcessGroup`] ends the whole group,
//! including the children of the child (wrangler starts workerd, cargo starts rustc). So Ctrl-C, an error and a normal
//! end all leave no process behind.

use std::{
    io,
    process::{ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    net::unix::pipe::Receiver,
    process::{Child, Command},
};

use crate::failure::Failure;

/// Time between SIGTERM and SIGKILL. wrangler needs half a second to dispose of workerd.
const GRACE_PERIOD: Duration = Duration::from_secs(5);

/// A running process group and its output.
pub struct ProcessGroup {
    leader: Child,
    id: Option<Pid>,
    output: Lines<BufReader<Receiver>>,
}

impl ProcessGroup {
    /// Starts `command` without standard input, because the keys of the terminal belong to xtask. Standard output and
    /// standard error share one pipe, which keeps their order.
    ///
    /// # Errors
    /// When the program is missing, or the system refuses to start it.
    pub fn start(mut command: Command) -> Result<Self, Failure> {
        let program = command.as_std().get_program().display().to_string();
        let failed = |cause: io::Error| {
            Failure::new(
                format!("cannot start {program}: {cause}"),
                format!("install {program} and check that it is on the PATH"),
            )
        };
        let (reader, writer) = io::pipe().map_err(failed)?;
        let output = Receiver::from_owned_fd(reader.into()).map_err(failed)?;
        command.stdin(Stdio::null()).stdout(writer.try_clone().map_err(failed)?).stderr(writer).process_group(0);
        let leader = command.spawn().map_err(failed)?;
        let id = leader.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Self { leader, id, output: BufReader::new(output).lines() })
    }

    /// The process id of the leader; `None` after its end.
    pub fn leader_id(&self) -> Option<u32> {
        self.leader.id()
    }

    /// The next line of output; `None` when all processes of the group have closed the pipe.
    pub async fn next_line(&mut self) -> Option<String> {
        self.output.next_line().await.ok().flatten()
    }

    /// Waits for the leader.
    ///
    /// # Errors
    /// When the system cannot tell its exit status.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.leader.wait().await
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        // A signal to a group without processes fails: then the group has ended.
        let deadline = Instant::now() + GRACE_PERIOD;
        let mut is_alive = kill_process_group(id, Signal::TERM).is_ok();
        while is_alive && Instant::now() < deadline {
            // The leader counts as a member until it is reaped.
            let _ = self.leader.try_wait();
            thread::sleep(Duration::from_millis(10));
            is_alive = test_kill_process_group(id).is_ok();
        }
        if is_alive {
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

/// The exit status and the output of a program that failed.
pub struct ProgramError {
    pub status: String,
    pub output: String,
}

/// Runs `command` to its end, passes each line to `on_line`, and returns the whole output.
///
/// # Errors
/// The outer error when the program does not start, the inner one when it fails.
pub async fn run(command: Command, mut on_line: impl FnMut(&str)) -> Result<Result<String, ProgramError>, Failure> {
    let mut group = ProcessGroup::start(command)?;
    let mut output = String::new();
    while let Some(line) = group.next_line().await {
        on_line(&line);
        output.push_str(&line);
        output.push('\n');
    }
    let failed = |status: String, output| ProgramError { status, output };
    Ok(match group.wait().await {
        Ok(status) if status.success() => Ok(output),
        Ok(status) => Err(failed(status.to_string(), output)),
        Err(cause) => Err(failed(cause.to_string(), output)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[tokio::test]
    async fn dropping_a_group_ends_its_grandchildren() {
        let mut group = ProcessGroup::start(shell("sh -c 'echo $$; exec sleep 600' & wait")).unwrap();
        let grandchild: i32 = group.next_line().await.unwrap().parse().unwrap();
        let grandchild = Pid::from_raw(grandchild).unwrap();
        assert!(rustix::process::test_kill_process(grandchild).is_ok());
        drop(group);
        // The process that adopts the grandchild may reap it later. Until then it is a zombie.
        let state = std::fs::read_to_string(format!("/proc/{grandchild}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{state}");
    }

    #[tokio::test]
    async fn output_and_errors_keep_their_order() {
        let mut lines = Vec::new();
        let output =
            run(shell("echo one; echo two >&2; echo three"), |line| lines.push(line.to_owned())).await.unwrap();
        assert_eq!(lines, ["one", "two", "three"]);
        assert_eq!(output.ok().unwrap(), "one\ntwo\nthree\n");
    }

    #[tokio::test]
    async fn the_error_names_a_missing_program() {
        let failure = ProcessGroup::start(Command::new("no-such-program")).err().unwrap();
        assert!(failure.to_string().contains("no-such-program"), "{failure}");
    }
}
