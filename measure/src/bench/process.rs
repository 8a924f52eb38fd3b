//! What a process has used of the CPU, and what memory it has.

use std::{fs, time::Duration};

/// A process that runs.
#[derive(Debug, Clone, Copy)]
pub struct Process(pub u32);

impl Process {
    /// User and system time since its start, all threads, in steps of a tick (10 ms); None where there is no `/proc`.
    pub fn cpu(self) -> Option<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0)).ok()?;
        let ticks = ticks(&stat)?;
        Duration::from_secs(ticks).checked_div(u32::try_from(rustix::param::clock_ticks_per_second()).ok()?)
    }

    /// Its memory that is not swapped out, MB; None where there is no `/proc`.
    pub fn resident(self) -> Option<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? / 1e3)
    }
}

/// utime + stime of proc(5). The program's name stands in parentheses and may hold anything, parentheses too.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_ascii_whitespace().skip(11).map(str::parse::<u64>);
    Some(times.next()?.ok()? + times.next()?.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_times_are_read_whatever_the_program_is_called() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 12 30 0 0 20 0 3 0 100 1 1";
        assert_eq!(ticks(stat), Some(42));
        assert_eq!(ticks("nonsense"), None);
    }
}
