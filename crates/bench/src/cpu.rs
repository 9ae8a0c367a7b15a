//! Processor time.

use std::time::Duration;

/// Processor time of this process so far, threads that have ended with it.
pub fn cpu_used() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).ok().filter(|cpu| !cpu.is_zero())
}

/// Nanoseconds of it since it was `before`.
pub(crate) fn cpu_since(before: Option<Duration>) -> Option<u64> {
    u64::try_from(cpu_used()?.saturating_sub(before?).as_nanos()).ok()
}

/// Processor time and the like of a job's tasks, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaskUse {
    /// In user code, in nanoseconds.
    pub user_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
    /// Context switches.
    pub switches: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
    /// Page faults without.
    pub minor_faults: u64,
}

impl TaskUse {
    /// What was taken since it was `before`.
    fn since(&self, before: &TaskUse) -> TaskUse {
        TaskUse {
            user_ns: self.user_ns.saturating_sub(before.user_ns),
            system_ns: self.system_ns.saturating_sub(before.system_ns),
            switches: self.switches.saturating_sub(before.switches),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
        }
    }

    pub(crate) fn merge(&mut self, other: &TaskUse) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
        self.switches += other.switches;
        self.major_faults += other.major_faults;
        self.minor_faults += other.minor_faults;
    }
}

/// What a thread takes from here on. In a simulation nothing is known of it.
pub(crate) struct TaskClock {
    before: Option<TaskUse>,
}

impl TaskClock {
    pub(crate) fn start() -> TaskClock {
        TaskClock { before: (!steadfast_runtime::is_simulated()).then(task_use).flatten() }
    }

    /// To be called in the thread that started it.
    pub(crate) fn used(&self) -> TaskUse {
        let (Some(before), Some(now)) = (self.before, task_use()) else {
            return TaskUse::default();
        };
        now.since(&before)
    }
}

/// Of this thread so far: processor time to the nanosecond, divided as the kernel's ticks are.
fn task_use() -> Option<TaskUse> {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").ok()?;
    let status = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    // The name before may have anything in it.
    let fields: Vec<u64> =
        stat.rsplit_once(')')?.1.split_whitespace().map(|word| word.parse().unwrap_or(0)).collect();
    // proc(5): behind the name, state is the first; minflt 10, majflt 12, utime 14, stime 15.
    let field = |number: usize| fields.get(number - 3).copied();
    let (user, system) = (field(14)?, field(15)?);
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let all = u64::try_from(Duration::try_from(time).ok()?.as_nanos()).ok()?;
    let user_ns = match user + system {
        0 => all,
        ticks => (u128::from(all) * u128::from(user) / u128::from(ticks)) as u64,
    };
    let switches = status
        .lines()
        .filter_map(|line| line.split_once("ctxt_switches:")?.1.trim().parse::<u64>().ok())
        .sum();
    Some(TaskUse {
        user_ns,
        system_ns: all - user_ns,
        switches,
        major_faults: field(12)?,
        minor_faults: field(10)?,
    })
}
