//! What else a machine does while something is measured on it.

/// Tasks that wanted to run, on average over the last minute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// How many.
    pub average: f64,
    /// Processors that there are for them.
    pub processors: usize,
}

/// A machine is quiet if at most so many tasks for each processor wanted to run.
const QUIET: f64 = 0.5;

impl Load {
    /// Of this machine; `None` where the kernel does not say it.
    pub fn now() -> Option<Load> {
        let text = std::fs::read_to_string("/proc/loadavg").ok()?;
        let average = text.split(' ').next()?.parse().ok()?;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Some(Load { average, processors })
    }

    /// Whether what is measured from here on can be compared.
    fn is_quiet(&self) -> bool {
        self.average <= QUIET * self.processors as f64
    }
}

/// Why nothing is ranked that was measured from there on; `None`: it may be.
pub fn not_ranked(at_start: Option<Load>) -> Option<String> {
    match at_start {
        None => Some("not ranked: the load is not known".into()),
        Some(load) if load.is_quiet() => None,
        Some(load) => Some(format!("not ranked: load was {:.1}", load.average)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noisy_machine_ranks_nothing() {
        let of = |average| not_ranked(Some(Load { average, processors: 2 }));
        assert_eq!((of(0.0), of(1.0)), (None, None));
        assert_eq!(of(1.01).as_deref(), Some("not ranked: load was 1.0"));
        assert_eq!(of(8.61).as_deref(), Some("not ranked: load was 8.6"));
        assert!(not_ranked(None).is_some());
    }
}
