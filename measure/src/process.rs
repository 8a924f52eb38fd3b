//! CPU time and memory of another process.

use std::{fs, time::Duration};

/// A running process.
#[derive(Debug, Clone, Copy)]
pub struct Process {
    pub id: u32,
}

impl Process {
    /// User and system time of all threads since the start, in ticks of 10 ms; `None` on a system without `/proc`.
    pub fn cpu_time(self) -> Option<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id)).ok()?;
        let ticks = cpu_ticks(&stat)?;
        Duration::from_secs(ticks).checked_div(u32::try_from(rustix::param::clock_ticks_per_second()).ok()?)
    }

    /// Resident memory, MB; `None` on a system without `/proc`.
    pub fn resident_megabytes(self) -> Option<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? / 1e3)
    }
}

/// utime + stime of proc(5). The name of the program is in parentheses and can itself contain parentheses.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_ascii_whitespace().skip(11).map(str::parse::<u64>);
    Some(times.next()?.ok()? + times.next()?.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parenthesis_in_the_program_name_does_not_shift_the_fields() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 12 30 0 0 20 0 3 0 100 1 1";
        assert_eq!(cpu_ticks(stat), Some(42));
        assert_eq!(cpu_ticks("nonsense"), None);
    }
}
