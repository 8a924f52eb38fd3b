//! Processes that we start. Each is the leader of a process group, and a group that is dropped has ended, with all that it started in turn
//! (wrangler starts workerd, cargo starts rustc): so Ctrl-C, an error and a normal end all leave nothing behind.

use std::{
    io,
    process::{ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    net::unix::pipe::Receiver,
    process::{Child, Command},
};

use crate::failure::Failure;

/// How long a group may take to end by itself. wrangler needs half a second to dispose of workerd.
const GRACE: Duration = Duration::from_secs(5);

/// A running process group, and what it prints.
pub struct Group {
    leader: Child,
    id: Option<Pid>,
    output: Lines<BufReader<Receiver>>,
}

impl Group {
    /// Starts `command`, without input (a terminal's keys are ours), both outputs in one stream, so that their order holds.
    ///
    /// # Errors
    /// When the program is missing, or the system refuses.
    pub fn start(mut command: Command) -> Result<Self, Failure> {
        let program = command.as_std().get_program().display().to_string();
        let failed = |cause: io::Error| {
            Failure::new(
                format!("{program} can not be started: {cause}"),
                format!("install {program}, and see that it is on the PATH"),
            )
        };
        let (reader, writer) = io::pipe().map_err(failed)?;
        let output = Receiver::from_owned_fd(reader.into()).map_err(failed)?;
        command.stdin(Stdio::null()).stdout(writer.try_clone().map_err(failed)?).stderr(writer).process_group(0);
        let leader = command.spawn().map_err(failed)?;
        let id = leader.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Self { leader, id, output: BufReader::new(output).lines() })
    }

    /// The leader's process id; None when it has ended.
    pub fn leader(&self) -> Option<u32> {
        self.leader.id()
    }

    /// The next line of output; None when all processes have closed it.
    pub async fn line(&mut self) -> Option<String> {
        self.output.next_line().await.ok().flatten()
    }

    /// Waits for the leader.
    ///
    /// # Errors
    /// When the system can not tell.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.leader.wait().await
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        let signal = |signal| kill_process_group(id, signal);
        // A group whose last process is gone answers with an error: then there is nothing to do.
        let deadline = Instant::now() + GRACE;
        let mut alive = signal(Signal::TERM).is_ok();
        while alive && Instant::now() < deadline {
            // The leader must be reaped: until then it counts as a member.
            let _ = self.leader.try_wait();
            thread::sleep(Duration::from_millis(10));
            alive = kill_process_group_exists(id);
        }
        if alive {
            let _ = signal(Signal::KILL);
        }
    }
}

fn kill_process_group_exists(id: Pid) -> bool {
    rustix::process::test_kill_process_group(id).is_ok()
}

/// A process that ended badly, with all that it printed.
pub struct Ended {
    pub status: String,
    pub output: String,
}

/// Runs `command` to its end, gives each line to `see`, and returns all that it printed.
///
/// # Errors
/// The outer when it can not be started, the inner when it ended badly.
pub async fn run(command: Command, mut see: impl FnMut(&str)) -> Result<Result<String, Ended>, Failure> {
    let mut group = Group::start(command)?;
    let mut output = String::new();
    while let Some(line) = group.line().await {
        see(&line);
        output.push_str(&line);
        output.push('\n');
    }
    let ended = |status: String, output| Ended { status, output };
    Ok(match group.wait().await {
        Ok(status) if status.success() => Ok(output),
        Ok(status) => Err(ended(status.to_string(), output)),
        Err(cause) => Err(ended(cause.to_string(), output)),
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
    async fn a_dropped_group_takes_its_grandchildren_with_it() {
        let mut group = Group::start(shell("sh -c 'echo $$; exec sleep 600' & wait")).unwrap();
        let grandchild: i32 = group.line().await.unwrap().parse().unwrap();
        let grandchild = Pid::from_raw(grandchild).unwrap();
        assert!(rustix::process::test_kill_process(grandchild).is_ok());
        drop(group);
        // Whoever adopts it reaps it in its own time; a zombie runs no more.
        let state = std::fs::read_to_string(format!("/proc/{grandchild}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{state}");
    }

    #[tokio::test]
    async fn output_and_errors_come_in_their_order() {
        let mut lines = Vec::new();
        let output =
            run(shell("echo one; echo two >&2; echo three"), |line| lines.push(line.to_owned())).await.unwrap();
        assert_eq!(lines, ["one", "two", "three"]);
        assert_eq!(output.ok().unwrap(), "one\ntwo\nthree\n");
    }

    #[tokio::test]
    async fn a_missing_program_names_itself() {
        let failure = Group::start(Command::new("no-such-program")).err().unwrap();
        assert!(failure.to_string().contains("no-such-program"), "{failure}");
    }
}
