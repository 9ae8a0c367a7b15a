//! iostat(1M), form `-xn`: rates of devices and volumes between two readings of their counters.
//!
//! The counters are those of the Solaris kernel (`kstat_io`): requests and bytes, and for the queue
//! of what waits and of what is being served the time in which it was not empty, and the integral
//! of its length. From two readings follow, over the time between them: the mean length of a queue
//! (`wait`, `actv`: integral / time), the mean stay of a request in it (`wsvc_t`, `asvc_t`:
//! integral / requests), and the share of the time in which there was one (`%w`, `%b`).

/// Lines above each report.
pub const HEAD: &str = "                    extended device statistics              \n";
/// The columns.
pub const COLUMNS: &str = "    r/s    w/s   kr/s   kw/s wait actv wsvc_t asvc_t  %w  %b device\n";
/// The columns with sizes in megabytes (`-M`).
pub const COLUMNS_IN_MEGABYTES: &str =
    "    r/s    w/s   Mr/s   Mw/s wait actv wsvc_t asvc_t  %w  %b device\n";

/// A queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Queue {
    /// Nanoseconds in which it was not empty.
    pub busy_ns: u64,
    /// Nanoseconds times requests in it.
    pub length_ns: u64,
}

/// A reading of a device's or volume's counters, since they began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads that were answered.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes of the reads.
    pub bytes_read: u64,
    /// Bytes of the writes.
    pub bytes_written: u64,
    /// Requests that wait.
    pub waiting: Queue,
    /// Requests that are being served.
    pub served: Queue,
}

/// Rates and means over an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct IostatRates {
    /// Reads and writes in a second.
    pub requests: [f64; 2],
    /// Bytes in a second, read and written.
    pub bytes: [f64; 2],
    /// Mean length of the queues: waiting, served.
    pub length: [f64; 2],
    /// Mean milliseconds of a request in them.
    pub stay_ms: [f64; 2],
    /// Per cent of the time in which they were not empty.
    pub busy_percent: [f64; 2],
}

impl IostatRates {
    /// What happened from one reading to the next, `ns` nanoseconds later.
    ///
    /// A counter that went back (the device was made again) counts from zero.
    pub fn between(earlier: &Counters, later: &Counters, ns: u64) -> IostatRates {
        let since = |from: u64, to: u64| if to >= from { to - from } else { to } as f64;
        let ns = ns.max(1) as f64;
        let per_second = |from: u64, to: u64| since(from, to) * 1e9 / ns;
        let requests = since(earlier.reads, later.reads) + since(earlier.writes, later.writes);
        let queues = [(earlier.waiting, later.waiting), (earlier.served, later.served)];
        let integral = |(from, to): (Queue, Queue)| since(from.length_ns, to.length_ns);
        let stay = |queue| if requests > 0.0 { integral(queue) / requests / 1e6 } else { 0.0 };
        let busy = |(from, to): (Queue, Queue)| since(from.busy_ns, to.busy_ns) * 100.0 / ns;
        IostatRates {
            requests: [
                per_second(earlier.reads, later.reads),
                per_second(earlier.writes, later.writes),
            ],
            bytes: [
                per_second(earlier.bytes_read, later.bytes_read),
                per_second(earlier.bytes_written, later.bytes_written),
            ],
            length: queues.map(|queue| integral(queue) / ns),
            stay_ms: queues.map(stay),
            busy_percent: queues.map(|queue| busy(queue).min(100.0)),
        }
    }

    /// Whether nothing happened.
    pub fn is_idle(&self) -> bool {
        *self == IostatRates::default()
    }

    /// The line of a device.
    pub fn line(&self, device: &str, in_megabytes: bool) -> String {
        let unit = if in_megabytes { f64::from(1 << 20) } else { 1024.0 };
        let [reads, writes] = self.requests;
        let [read, written] = self.bytes.map(|bytes| bytes / unit);
        let ([wait, actv], [wsvc, asvc]) = (self.length, self.stay_ms);
        let [w, b] = self.busy_percent;
        format!(
            " {reads:6.1} {writes:6.1} {read:6.1} {written:6.1} {wait:4.1} {actv:4.1} {wsvc:6.1} \
             {asvc:6.1} {w:3.0} {b:3.0} {device}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn reads(count: u64, bytes: u64, busy_ns: u64, length_ns: u64) -> Counters {
        let served = Queue { busy_ns, length_ns };
        Counters { reads: count, bytes_read: bytes, served, ..Counters::default() }
    }

    #[test]
    fn lines_as_in_the_transcript() {
        // 38103 reads of 512 bytes in ten seconds, 85 % of the time one or more in flight,
        // 0.8 in the mean: 0.2 ms each.
        let later = reads(38_103, 38_103 * 512, 85 * SECOND / 10, 8 * SECOND);
        let rates = IostatRates::between(&Counters::default(), &later, 10 * SECOND);
        let line = " 3810.3    0.0 1905.2    0.0  0.0  0.8    0.0    0.2   0  85 md/d10\n";
        assert_eq!(rates.line("md/d10", false), line);
        let line = "    0.0    0.0    0.0    0.0  0.0  0.0    0.0    0.0   0   0 c0d0\n";
        assert_eq!(IostatRates::default().line("c0d0", false), line);
        // Wider numbers push the line to the right, as there.
        let fast = reads(160_221, 160_221 * 512, 62 * SECOND / 10, 6 * SECOND);
        let rates = IostatRates::between(&Counters::default(), &fast, 10 * SECOND);
        let line = " 16022.1    0.0 8011.1    0.0  0.0  0.6    0.0    0.0   0  62 md/d10\n";
        assert_eq!(rates.line("md/d10", false), line);
        assert_eq!(HEAD.len(), 61);
        assert!(COLUMNS.len() == COLUMNS_IN_MEGABYTES.len() && COLUMNS.len() == 68);
    }

    #[test]
    fn only_what_happened_between_two_readings_counts() {
        let earlier = Counters { writes: 7, bytes_written: 7 << 20, ..reads(5, 5, 9, 9) };
        let waiting = Queue { busy_ns: SECOND / 2, length_ns: SECOND };
        let later = Counters { writes: 9, bytes_written: 9 << 20, waiting, ..earlier };
        let rates = IostatRates::between(&earlier, &later, 2 * SECOND);
        assert_eq!((rates.requests, rates.bytes), ([0.0, 1.0], [0.0, f64::from(1 << 20)]));
        assert_eq!((rates.length, rates.stay_ms), ([0.5, 0.0], [500.0, 0.0]));
        assert_eq!(rates.busy_percent, [25.0, 0.0]);
        assert!(rates.line("x", true).contains("    0.0    1.0    0.0    1.0  0.5"));
        assert!(IostatRates::between(&later, &later, SECOND).is_idle());
        // Made anew in between, and asked twice in no time.
        let anew = IostatRates::between(&later, &reads(3, 3, 3, 3), SECOND);
        assert_eq!(anew.requests, [3.0, 0.0]);
        assert!(IostatRates::between(&earlier, &later, 0).requests[1].is_finite());
    }
}
