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

    /// CPU time of all running threads since the start, microseconds; `None` on a system without `/proc/*/sched`.
    pub fn cpu_micros(self) -> Option<u64> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.id)).ok()?.flatten();
        threads.map(|thread| run_micros(&fs::read_to_string(thread.path().join("sched")).ok()?)).sum()
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

/// The microseconds in the line `se.sum_exec_runtime : 12.345678` of proc(5), which counts milliseconds.
fn run_micros(sched: &str) -> Option<u64> {
    let line = sched.lines().find_map(|line| line.strip_prefix("se.sum_exec_runtime"))?;
    let (millis, fraction) = line.trim_start_matches([' ', ':']).split_once('.')?;
    Some(millis.parse::<u64>().ok()? * 1000 + fraction.get(..3)?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_time_of_a_thread_is_read_in_microseconds() {
        let sched = "workerd (7, #threads: 2)\n-----\nse.exec_start  :  9.1\nse.sum_exec_runtime    :     12.045678\n";
        assert_eq!(run_micros(sched), Some(12_045));
        assert_eq!(run_micros("nonsense"), None);
    }

    #[test]
    fn a_parenthesis_in_the_program_name_does_not_shift_the_fields() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 12 30 0 0 20 0 3 0 100 1 1";
        assert_eq!(cpu_ticks(stat), Some(42));
        assert_eq!(cpu_ticks("nonsense"), None);
    }
}
