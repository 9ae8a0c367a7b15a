//! `steadfast iostat`: rates of a host's devices and volumes, as Solaris' `iostat -xn` has them.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use jiff::Zoned;
use steadfast_svm::iostat::{COLUMNS, COLUMNS_IN_MEGABYTES, HEAD, IostatRates};

use crate::Usage;
use crate::commands::svm::host::{Reading, SvmHost};

/// Which devices, how often.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  steadfast iostat -xn             since the host started
  steadfast iostat -xn 1           and then every second
  steadfast iostat -xnz 5 12 d10 c0d1s0

The first report is of the time since the host started, each further one of the
interval before it.

  r/s w/s        reads and writes a second
  kr/s kw/s      kilobytes a second
  wait actv      requests that waited, and that were being served, in the mean
  wsvc_t asvc_t  milliseconds that a request waited, and was being served
  %w %b          share of the time in which requests waited, were being served

-x and -n are what is printed anyway; the words may be in any order.")]
pub struct Iostat {
    /// Extended statistics
    #[arg(short = 'x')]
    pub extended: bool,
    /// Names as the host has them
    #[arg(short = 'n')]
    pub names: bool,
    /// Leave out what did nothing
    #[arg(short = 'z')]
    pub busy_only: bool,
    /// Megabytes in place of kilobytes
    #[arg(short = 'M')]
    pub megabytes: bool,
    /// The time above each report: u as a number of seconds, d as a date
    #[arg(short = 'T', value_name = "u|d", value_enum, hide_possible_values = true)]
    pub time: Option<TimeForm>,
    /// The host's control socket [default: $STEADFAST_SOCKET, or the user's own host]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Names of devices and volumes; then the interval in seconds, and how many reports
    #[arg(value_name = "DEVICE|INTERVAL [COUNT]")]
    pub words: Vec<String>,
}

/// How the time is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TimeForm {
    /// Seconds since 1970.
    U,
    /// As date(1).
    D,
}

/// What the words say.
#[derive(Debug, Default, PartialEq)]
struct IostatArgs {
    devices: Vec<String>,
    /// Between two reports; `None`: there is one.
    interval: Option<Duration>,
    /// Reports; `None`: until it is stopped.
    count: Option<u64>,
}

/// Reports until the count, the host or the reader ends it.
pub fn run(iostat: &Iostat, out: &mut dyn Write) -> Result<()> {
    let asked = asked(&iostat.words)?;
    let to_anyhow = |error| anyhow!("{error}");
    // That there is no host is reported as by `host status` and `top`, with the same exit status.
    drop(super::serve::client(iostat.socket.as_deref())?);
    let host = SvmHost::connect(iostat.socket.as_deref()).map_err(to_anyhow)?;
    let mut before: Option<Reading> = None;
    let mut left = if asked.interval.is_none() { Some(1) } else { asked.count };
    loop {
        let now = host.counters().map_err(to_anyhow)?;
        report(iostat, &asked.devices, before.as_ref(), &now, out)?;
        out.flush()?;
        left = left.map(|left| left - 1);
        let (None | Some(1..), Some(interval)) = (left, asked.interval) else { return Ok(()) };
        before = Some(now);
        std::thread::sleep(interval);
    }
}

fn asked(words: &[String]) -> Result<IostatArgs> {
    let is_number = |word: &String| word.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let (numbers, devices): (Vec<&String>, Vec<&String>) = words.iter().partition(|w| is_number(w));
    let devices = devices.into_iter().map(|name| plain(name)).collect();
    let (interval, count) = match numbers[..] {
        [] => (None, None),
        [interval] => (Some(interval), None),
        [interval, count] => (Some(interval), Some(count)),
        _ => {
            usage!("iostat: an interval, and a count, and no more numbers");
        }
    };
    let interval = interval.map(|text| {
        let seconds = text.parse::<f64>().ok().filter(|s| (0.1..=86_400.0).contains(s));
        let wrong = || Usage(format!("{text}: no interval: 0.1 to 86400 seconds"));
        seconds.map(Duration::from_secs_f64).ok_or_else(wrong)
    });
    let count = count.map(|text| {
        let count = text.parse::<u64>().ok().filter(|count| *count > 0);
        count.ok_or_else(|| Usage(format!("{text}: no count: a whole number from 1")))
    });
    Ok(IostatArgs { devices, interval: interval.transpose()?, count: count.transpose()? })
}

/// `md/d10` and `/dev/md/dsk/d10` are `d10`, too.
fn plain(name: &str) -> String {
    name.rsplit('/').next().unwrap_or(name).to_owned()
}

fn report(
    iostat: &Iostat,
    devices: &[String],
    before: Option<&Reading>,
    now: &Reading,
    out: &mut dyn Write,
) -> Result<()> {
    if let Some(absent) = devices.iter().find(|d| !now.lines.iter().any(|l| l.name == **d)) {
        usage!("{absent}: the host has no device or volume of this name");
    }
    match iostat.time {
        Some(TimeForm::U) => writeln!(out, "{}", Zoned::now().timestamp().as_second())?,
        Some(TimeForm::D) => writeln!(out, "{}", Zoned::now().strftime("%a %b %e %H:%M:%S %Z %Y"))?,
        None => {}
    }
    let columns = if iostat.megabytes { COLUMNS_IN_MEGABYTES } else { COLUMNS };
    write!(out, "{HEAD}{columns}")?;
    // The host may have been started anew in between: then it is the first report again.
    let before = before.filter(|before| before.process == now.process);
    let since = before.map_or(0, |before| before.at_ns);
    for line in &now.lines {
        let is_asked = devices.is_empty() || devices.contains(&line.name);
        let earlier = before.and_then(|b| b.lines.iter().find(|l| l.shown == line.shown));
        let earlier = earlier.map(|line| line.counters).unwrap_or_default();
        let rates = IostatRates::between(&earlier, &line.counters, now.at_ns.saturating_sub(since));
        if is_asked && !(iostat.busy_only && rates.is_idle()) {
            write!(out, "{}", rates.line(&line.shown, iostat.megabytes))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<IostatArgs> {
        asked(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn numbers_are_the_interval_and_the_count() {
        assert_eq!(of("").unwrap(), IostatArgs::default());
        let second = Some(Duration::from_secs(1));
        let two = IostatArgs { devices: vec!["d10".into()], interval: second, count: Some(2) };
        assert_eq!(of("1 2 md/d10").unwrap(), two);
        assert_eq!(of("d10 1 2").unwrap(), two);
        assert_eq!(of("0.5").unwrap().interval, Some(Duration::from_millis(500)));
        for wrong in ["0", "1 0", "1 2 3", "1 1.5", "0.01", "1e9", "1x"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
