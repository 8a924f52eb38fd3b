//! Child processes. Each child leads a process group of its own. Dropping a [`ProcessGroup`] ends the whole group,
//! including the children of the child (wrangler starts workerd, cargo starts rustc). So Ctrl-C, an error and a normal
//! end all leave no process behind.

use std::{
    io, mem,
    process::{ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::unix::pipe::Receiver,
    process::{Child, ChildStdin, Command},
    task::JoinSet,
};

use crate::failure::Failure;

/// Time between SIGTERM and SIGKILL, and between the end of standard input and SIGTERM. wrangler needs half a second to
/// dispose of workerd.
const GRACE_PERIOD: Duration = Duration::from_secs(5);

/// A running process group and its output.
pub struct ProcessGroup {
    leader: Child,
    id: Option<Pid>,
    output: BufReader<Receiver>,
    /// The part of the next line that has arrived. A cancelled [`ProcessGroup::next_line`] leaves it here.
    line: Vec<u8>,
}

impl ProcessGroup {
    /// Starts `command` without standard input, because the keys of the terminal belong to xtask. Standard output and
    /// standard error share one pipe, which keeps their order.
    ///
    /// # Errors
    /// When the program is missing, or the system refuses to start it.
    pub fn start(command: Command) -> Result<Self, Failure> {
        Self::start_with_stdin(command, Stdio::null())
    }

    /// As [`ProcessGroup::start`], with a pipe to the standard input of the program, which ends itself when the pipe
    /// closes. Dropping the group closes the pipe, and sends SIGTERM only if processes are left after the grace period.
    ///
    /// # Errors
    /// As [`ProcessGroup::start`].
    pub fn start_with_input(command: Command) -> Result<Self, Failure> {
        Self::start_with_stdin(command, Stdio::piped())
    }

    fn start_with_stdin(mut command: Command, stdin: Stdio) -> Result<Self, Failure> {
        let program = command.as_std().get_program().display().to_string();
        let failed = |cause: io::Error| {
            Failure::new(
                format!("cannot start {program}: {cause}"),
                format!("install {program} and check that it is on the PATH"),
            )
        };
        let (reader, writer) = io::pipe().map_err(failed)?;
        let output = Receiver::from_owned_fd(reader.into()).map_err(failed)?;
        command.stdin(stdin).stdout(writer.try_clone().map_err(failed)?).stderr(writer).process_group(0);
        let leader = command.spawn().map_err(failed)?;
        let id = leader.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Self { leader, id, output: BufReader::new(output), line: Vec::new() })
    }

    /// The process id of the leader; `None` after its end.
    pub fn leader_id(&self) -> Option<u32> {
        self.leader.id()
    }

    /// The pipe to the standard input; `None` without [`ProcessGroup::start_with_input`].
    pub fn input(&mut self) -> Option<&mut ChildStdin> {
        self.leader.stdin.as_mut()
    }

    /// The next line of output; `None` when all processes of the group have closed the pipe. Bytes that are not UTF-8
    /// are replaced by U+FFFD. Cancelling the future loses nothing.
    pub async fn next_line(&mut self) -> Option<String> {
        self.output.read_until(b'\n', &mut self.line).await.ok()?;
        let line = mem::take(&mut self.line);
        if line.is_empty() {
            return None;
        }
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Some(String::from_utf8_lossy(line).into_owned())
    }

    /// Reads lines until `find` returns a value for one.
    ///
    /// # Errors
    /// With the output so far, when all processes of the group have closed the pipe.
    pub async fn wait_for<T>(&mut self, mut find: impl FnMut(&str) -> Option<T>) -> Result<T, String> {
        let mut output = String::new();
        while let Some(line) = self.next_line().await {
            if let Some(found) = find(&line) {
                return Ok(found);
            }
            output.push_str(&line);
            output.push('\n');
        }
        Err(output)
    }

    /// Passes each further line to `on_line` in a task, because a full pipe would block the program.
    pub fn drain(mut self, mut on_line: impl FnMut(&str) + Send + 'static) -> DrainedGroup {
        let mut task = JoinSet::new();
        task.spawn(async move {
            while let Some(line) = self.next_line().await {
                on_line(&line);
            }
        });
        DrainedGroup { _task: task }
    }

    /// Waits for the leader.
    ///
    /// # Errors
    /// When the system cannot tell its exit status.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.leader.wait().await
    }

    /// Waits for the end of all processes, at most for [`GRACE_PERIOD`]. Returns whether they have ended.
    fn ends(&mut self, id: Pid) -> bool {
        let deadline = Instant::now() + GRACE_PERIOD;
        loop {
            // The leader counts as a member until it is reaped.
            let _ = self.leader.try_wait();
            if test_kill_process_group(id).is_err() {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        if self.leader.stdin.take().is_some() && self.ends(id) {
            return;
        }
        // A signal to a group without processes fails: then the group has ended.
        if kill_process_group(id, Signal::TERM).is_ok() && !self.ends(id) {
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

/// A running process group whose output a task reads. Dropping it ends the group.
pub struct DrainedGroup {
    /// The task owns the group.
    _task: JoinSet<()>,
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
    use tokio::io::AsyncWriteExt;

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
    async fn a_program_with_an_input_ends_itself_before_it_gets_a_signal() {
        let file = std::env::temp_dir().join(format!("edgefront-input-{}", std::process::id()));
        let mut script = shell("echo ready; cat > /dev/null; echo ended > \"$FILE\"");
        script.env("FILE", &file);
        let mut group = ProcessGroup::start_with_input(script).unwrap();
        assert_eq!(group.next_line().await.as_deref(), Some("ready"));
        drop(group);
        assert_eq!(std::fs::read_to_string(&file).unwrap_or_default(), "ended\n");
        std::fs::remove_file(file).unwrap();
    }

    #[tokio::test]
    async fn a_line_that_is_not_utf8_does_not_end_the_output() {
        let mut lines = Vec::new();
        let output = run(shell(r"printf 'caf\351\r\n\nlast'"), |line| lines.push(line.to_owned())).await.unwrap();
        assert_eq!(lines, ["caf\u{fffd}", "", "last"]);
        assert!(output.is_ok());
    }

    #[tokio::test]
    async fn a_cancelled_read_loses_no_part_of_a_line() {
        let mut group = ProcessGroup::start_with_input(shell("printf 'first '; read _; echo second")).unwrap();
        while group.line.is_empty() {
            let cancelled = tokio::time::timeout(Duration::from_millis(1), group.next_line()).await;
            assert!(cancelled.is_err(), "no line is complete");
        }
        group.input().unwrap().write_all(b"\n").await.unwrap();
        assert_eq!(group.next_line().await.as_deref(), Some("first second"));
    }

    #[tokio::test]
    async fn waiting_ends_with_the_value_or_with_the_output() {
        let mut group = ProcessGroup::start(shell("echo one; echo port=2; echo three")).unwrap();
        let port = |line: &str| line.strip_prefix("port=").map(str::to_owned);
        assert_eq!(group.wait_for(port).await.as_deref(), Ok("2"));
        assert_eq!(group.wait_for(port).await, Err("three\n".to_owned()));
    }

    #[tokio::test]
    async fn a_drained_group_writes_more_than_a_pipe_holds() {
        let (sender, mut last) = tokio::sync::mpsc::unbounded_channel();
        let group = ProcessGroup::start(shell("yes | head -n 100000; echo end")).unwrap();
        let _drained = group.drain(move |line| {
            if line == "end" {
                let _ = sender.send(());
            }
        });
        assert_eq!(last.recv().await, Some(()));
    }

    #[tokio::test]
    async fn the_error_names_a_missing_program() {
        let failure = ProcessGroup::start(Command::new("no-such-program")).err().unwrap();
        assert!(failure.to_string().contains("no-such-program"), "{failure}");
    }
}
