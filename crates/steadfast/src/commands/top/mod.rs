//! `steadfast top`: what a running host does, as a live view of the whole terminal, or as text.
//!
//! [`view`] makes rows of two readings, [`draw`] puts them on a screen of any size, [`screen`] is
//! the terminal with its keys, and [`source`] asks the host beside it: one that does not answer
//! does not hold up the keys.

mod draw;
mod screen;
mod source;
mod view;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use self::view::{Sort, View};
use crate::{CommandEnd, Usage};

/// Columns of the text, unless COLUMNS says otherwise.
const COLUMNS: u16 = 80;

/// Which host, how often.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  steadfast top
  steadfast top --interval 0.5 --sort write
  steadfast top --once | less        one frame as text, of one interval

Keys: q quits, s sorts by the next column, S back, + and - change the interval,
arrows scroll, ? shows what the columns are.

Columns: r/s, w/s and flush/s are requests a second, read/s and write/s bytes,
queue the mean number of requests that were being served, ms how long one took.
dirty are regions: of a volume those that are being written to, of a leg those
that it lacks. A volume's legs are below it, as devices of their own.

Exit status: 0; 2 where the output is no terminal (use --once, or steadfast
iostat).")]
pub struct Top {
    /// Seconds between two readings
    #[arg(short, long, value_name = "SECONDS", default_value = "2")]
    pub interval: String,
    /// What is first
    #[arg(short, long, value_enum, default_value_t)]
    pub sort: Sort,
    /// Print one frame of one interval as text, and end
    #[arg(long, visible_alias = "batch")]
    pub once: bool,
    /// The host's control socket [default: $STEADFAST_SOCKET, or the user's own host]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
}

/// Shows a host until a key or a signal ends it.
///
/// # Errors
/// There is no host, or no terminal.
pub fn run(top: &Top, out: &mut dyn Write) -> Result<CommandEnd> {
    let interval = interval(&top.interval)?;
    let is_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if !top.once && !is_terminal {
        usage!("input or output is no terminal: use steadfast top --once, or steadfast iostat");
    }
    let client = super::serve::client(top.socket.as_deref())?;
    let first = source::read(&client).map_err(super::serve::said)?;
    let mut view = View::new(top.sort, interval);
    view.take(first);
    if top.once {
        std::thread::sleep(interval);
        view.take(source::read(&client).map_err(super::serve::said)?);
        let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
        let columns = columns.filter(|c| (20..=1000).contains(c)).unwrap_or(COLUMNS);
        out.write_all(draw::text(&view, columns).as_bytes())?;
        return Ok(CommandEnd::Good);
    }
    screen::run(view, source::begin(client, interval)?)
}

fn interval(text: &str) -> Result<Duration> {
    let seconds = text.parse::<f64>().ok().filter(|s| (0.1..=3600.0).contains(s));
    let wrong = || Usage(format!("--interval {text}: no interval: 0.1 to 3600 seconds"));
    Ok(seconds.map(Duration::from_secs_f64).ok_or_else(wrong)?)
}
