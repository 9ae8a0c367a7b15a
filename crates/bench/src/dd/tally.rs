//! The counts, and the lines that print them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::words::StatusLevel;

/// Counts of a run that is going on: others may look at them meanwhile (SIGUSR1).
#[derive(Debug, Default)]
pub struct Tally {
    /// The time is that of the last block; the clock may be a simulation's.
    counts: Mutex<Counts>,
    /// Somebody wants the run to end before its end.
    stopped: AtomicBool,
    /// The counts have been printed at the end.
    printed: AtomicBool,
}

/// The counts at one moment.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Whole blocks that were read.
    pub whole_in: u64,
    /// Blocks that were read in part.
    pub part_in: u64,
    /// Whole blocks that were written.
    pub whole_out: u64,
    /// Blocks that were written in part.
    pub part_out: u64,
    /// Lines cut by `conv=block`.
    pub truncated: u64,
    /// Bytes that were written.
    pub bytes: u64,
    /// Time since the files were open.
    pub elapsed: Duration,
}

impl Tally {
    /// Ends the run behind the block that it is at, as if the input had no more.
    pub fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    /// Whether [`stop`](Self::stop) was called.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// Takes the right to print the counts at the end, which is done once; whether it was there.
    pub fn takes_last_word(&self) -> bool {
        !self.printed.swap(true, Relaxed)
    }

    /// The counts now.
    pub fn counts(&self) -> Counts {
        self.count(|counts| *counts)
    }

    /// Counts more.
    pub(super) fn count<T>(&self, more: impl FnOnce(&mut Counts) -> T) -> T {
        more(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Counts {
    /// dd's lines at the end, or when asked.
    pub fn lines(&self, status: StatusLevel) -> Vec<String> {
        if status == StatusLevel::None {
            return Vec::new();
        }
        let mut lines = vec![
            format!("{}+{} records in", self.whole_in, self.part_in),
            format!("{}+{} records out", self.whole_out, self.part_out),
        ];
        match self.truncated {
            0 => {}
            1 => lines.push("1 truncated record".into()),
            n => lines.push(format!("{n} truncated records")),
        }
        if status != StatusLevel::NoXfer {
            lines.push(self.summary());
        }
        lines
    }

    /// `16777216 bytes (17 MB, 16 MiB) copied, 0.0370933 s, 452 MB/s`.
    pub fn summary(&self) -> String {
        self.line_of(&format!("{} s", general(self.elapsed.as_secs_f64())))
    }

    /// The same in whole seconds, as `status=progress` shows it.
    pub fn progress(&self) -> String {
        self.line_of(&format!("{:.0} s", self.elapsed.as_secs_f64()))
    }

    fn line_of(&self, time: &str) -> String {
        let bytes = self.bytes;
        let noun = if bytes == 1 { "byte" } else { "bytes" };
        let sizes = match bytes {
            0..1000 => String::new(),
            1000..1024 => format!(" ({})", size(bytes, 1000)),
            _ => format!(" ({}, {})", size(bytes, 1000), size(bytes, 1024)),
        };
        format!("{bytes} {noun}{sizes} copied, {time}, {}", self.rate())
    }

    fn rate(&self) -> String {
        const SECOND: u128 = 1_000_000_000;
        let (bytes, ns) = (u128::from(self.bytes), self.elapsed.as_nanos());
        if ns == 0 {
            return "Infinity B/s".into();
        }
        // dd calculates in whole numbers where the time divides the second or is a multiple of it.
        if SECOND.is_multiple_of(ns) || ns.is_multiple_of(SECOND) {
            return format!("{}/s", exact(bytes * SECOND, ns, 1000));
        }
        let (mut rate, mut unit) = (bytes as f64 * 1e9 / ns as f64 / 1e3, 0);
        while rate >= 1e3 && unit + 1 < UNITS.len() {
            (rate, unit) = (rate / 1e3, unit + 1);
        }
        let text = format!("{rate:.1}");
        // One digit behind the point where three fit before it.
        let text = if text.len() > 4 { format!("{rate:.0}") } else { text };
        format!("{text} {}B/s", if unit == 0 { 'k' } else { UNITS[unit] })
    }
}

const UNITS: [char; 6] = ['K', 'M', 'G', 'T', 'P', 'E'];

/// A size in the largest unit of which there is at least one.
pub(super) fn size(bytes: u64, base: u64) -> String {
    exact(u128::from(bytes), 1, base)
}

/// `over / under` bytes, rounded half to even at the digit that is shown.
fn exact(over: u128, under: u128, base: u64) -> String {
    let base = u128::from(base);
    let (mut power, mut unit) = (1, 0);
    while over >= under * power * base && unit < UNITS.len() {
        (power, unit) = (power * base, unit + 1);
    }
    let rounded = |scale: u128, power: u128| {
        let (n, d) = (over * scale, under * power);
        let (q, r) = (n / d, n % d);
        q + u128::from(2 * r > d || (2 * r == d && q % 2 == 1))
    };
    let mut text = if unit > 0 && over < under * power * 10 {
        let tenths = rounded(10, power);
        match tenths {
            100.. => "10".into(),
            t => format!("{}.{}", t / 10, t % 10),
        }
    } else {
        match rounded(1, power) {
            whole if whole == base && unit < UNITS.len() => {
                unit += 1;
                "1.0".into()
            }
            whole => whole.to_string(),
        }
    };
    text.push(' ');
    match (unit, base) {
        (0, _) => {}
        (1, 1000) => text.push('k'),
        (n, 1000) => text.push(UNITS[n - 1]),
        (n, _) => text.extend([UNITS[n - 1], 'i']),
    }
    text + "B"
}

/// A number as `%g` writes it: six significant digits.
fn general(x: f64) -> String {
    if x == 0.0 {
        return "0".into();
    }
    let scientific = format!("{x:.5e}");
    // OK to unwrap: that is how it is written.
    let (digits, exponent) = scientific.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..6).contains(&exponent) {
        return trimmed(&format!("{x:.*}", (5 - exponent) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed_of(bytes: u64, ns: u64) -> String {
        Counts { bytes, elapsed: Duration::from_nanos(ns), ..Counts::default() }.summary()
    }

    /// Lines that GNU dd has printed.
    #[test]
    fn summaries_to_the_letter() {
        for (bytes, ns, expected) in [
            (16_777_216, 37_093_300, "16777216 (17 MB, 16 MiB), 0.0370933 s, 452 MB/s"),
            (1_048_576, 480_993_000, "1048576 (1.0 MB, 1.0 MiB), 0.480993 s, 2.2 MB/s"),
            (16_777_216, 5_058_540, "16777216 (17 MB, 16 MiB), 0.00505854 s, 3.3 GB/s"),
            (0, 62_147, "0, 6.2147e-05 s, 0.0 kB/s"),
            (3, 23_487, "3, 2.3487e-05 s, 128 kB/s"),
            (1_947_205_632, 6_546_400_000, "1947205632 (1.9 GB, 1.8 GiB), 6.5464 s, 297 MB/s"),
            (51_200, 104_947, "51200 (51 kB, 50 KiB), 0.000104947 s, 488 MB/s"),
            (4_294_967_296, 4_558_990_000, "4294967296 (4.3 GB, 4.0 GiB), 4.55899 s, 942 MB/s"),
            (1, 0, "1 byte, 0 s, Infinity B/s"),
            (1000, 1_000_000_000, "1000 (1.0 kB), 1 s, 1.0 kB/s"),
            (1023, 2_000_000_000, "1023 (1.0 kB), 2 s, 512 B/s"),
        ] {
            let line = printed_of(bytes, ns);
            let line = line.replacen(" bytes", "", 1).replacen(" copied", "", 1);
            assert_eq!(line, expected);
        }
    }

    #[test]
    fn numbers_as_g_writes_them() {
        for (x, text) in [
            (1234567.0, "1.23457e+06"),
            (123456.0, "123456"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (12.5, "12.5"),
            (0.999_999_9, "1"),
        ] {
            assert_eq!(general(x), text);
        }
    }
}
