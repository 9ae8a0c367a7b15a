//! The terminal: its keys, and that it is as before whatever ends the view.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::TryRecvError;
use std::time::Duration;

use anyhow::{Context, Result};
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::event::{poll, read};
use rustix::event::{PollFd, PollFlags, Timespec};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::draw;
use super::source::Source;
use super::view::View;
use crate::CommandEnd;

/// How long a key, a reading or a signal waits to be seen.
const PATIENCE: Duration = Duration::from_millis(100);
/// Intervals that + and - go through, in milliseconds.
const INTERVALS_MS: &[u64] = &[100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000];

/// What a key does.
enum KeyAction {
    Go,
    Draw,
    End,
}

/// The terminal's own state, which comes back when this goes; `ratatui::try_init` has it come back
/// in a panic as well.
struct TerminalGuard;

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        // OK to ignore: there is no terminal any more.
        let _ = ratatui::try_restore();
    }
}

/// Shows until q or a signal.
///
/// # Errors
/// The terminal fails.
pub fn run(mut view: View, source: Source) -> Result<CommandEnd> {
    let signal = Arc::new(AtomicUsize::new(0));
    let twice = Arc::new(AtomicBool::new(false));
    for number in [SIGTERM, SIGINT, SIGHUP] {
        // The second one ends it at once, whatever holds up the first.
        let second = Arc::clone(&twice);
        signal_hook::flag::register_conditional_shutdown(number, 128 + number, second)
            .context("signals")?;
        signal_hook::flag::register(number, Arc::clone(&twice)).context("signals")?;
        // OK to convert: signals are small positive numbers.
        signal_hook::flag::register_usize(number, Arc::clone(&signal), number as usize)
            .context("signals")?;
    }
    let mut terminal = ratatui::try_init().context("the terminal")?;
    let restored = TerminalGuard;
    let (mut changed, mut more) = (true, false);
    let ended = loop {
        let number = signal.load(Ordering::Relaxed);
        if number != 0 {
            break number;
        }
        match source.readings.try_recv() {
            Ok(Ok(reading)) => {
                view.take(reading);
                changed = true;
            }
            Ok(Err(problem)) => {
                view.problem = Some(problem);
                changed = true;
            }
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => break 0,
        }
        if std::mem::take(&mut changed) {
            terminal.draw(|frame| {
                let area = frame.area();
                draw::render(&view, area, frame.buffer_mut());
            })?;
        }
        // After a key there may be another one, which was read with it.
        match waited(if more { Duration::ZERO } else { PATIENCE })? {
            KeyWait::Gone => break SIGHUP as usize,
            KeyWait::Nothing if !more => continue,
            KeyWait::Nothing | KeyWait::Key => {}
        }
        more = false;
        if !poll(Duration::ZERO).or_else(interrupted)? {
            continue;
        }
        more = true;
        match read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                let lines = terminal.size()?.height;
                match pressed(key, &mut view, &source, lines) {
                    KeyAction::Go => {}
                    KeyAction::Draw => changed = true,
                    KeyAction::End => break 0,
                }
            }
            Event::Resize(..) => changed = true,
            _ => {}
        }
    };
    drop(restored);
    // As a shell reports a process that a signal has ended.
    Ok(if ended == 0 { CommandEnd::Good } else { CommandEnd::Status((128 + ended) as u8) })
}

/// What came of waiting for a key.
enum KeyWait {
    Nothing,
    Key,
    /// The terminal was closed.
    Gone,
}

/// Waits less than a second for a key. A terminal that was closed is not left to crossterm: it
/// reads the end of file again and again, and does not return.
fn waited(patience: Duration) -> std::io::Result<KeyWait> {
    let stdin = std::io::stdin();
    let mut keys = [PollFd::new(&stdin, PollFlags::IN)];
    let patience = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
    match rustix::event::poll(&mut keys, Some(&patience)) {
        Ok(0) => return Ok(KeyWait::Nothing),
        Err(rustix::io::Errno::INTR) => return Ok(KeyWait::Nothing),
        Err(error) => return Err(error.into()),
        Ok(_) => {}
    }
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    Ok(if keys[0].revents().intersects(gone) { KeyWait::Gone } else { KeyWait::Key })
}

/// A signal came while a key was waited for.
fn interrupted(error: std::io::Error) -> std::io::Result<bool> {
    match error.kind() {
        std::io::ErrorKind::Interrupted => Ok(false),
        _ => Err(error),
    }
}

fn pressed(key: KeyEvent, view: &mut View, source: &Source, lines: u16) -> KeyAction {
    let page = draw::page(view, lines);
    let last = view.rows().len().saturating_sub(page.max(1));
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            return KeyAction::End;
        }
        KeyCode::Char('q') | KeyCode::Esc => return KeyAction::End,
        KeyCode::Char('s') => view.sort = view.sort.turned(1),
        KeyCode::Char('S') => view.sort = view.sort.before(),
        KeyCode::Char('?' | 'h') => view.explains = !view.explains,
        KeyCode::Char('+') => change_interval(view, source, true),
        KeyCode::Char('-') => change_interval(view, source, false),
        KeyCode::Up | KeyCode::Char('k') => view.scrolled = view.scrolled.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => view.scrolled += 1,
        KeyCode::PageUp => view.scrolled = view.scrolled.saturating_sub(page),
        KeyCode::PageDown => view.scrolled += page,
        KeyCode::Home => view.scrolled = 0,
        KeyCode::End => view.scrolled = last,
        _ => return KeyAction::Go,
    }
    view.scrolled = view.scrolled.min(last);
    KeyAction::Draw
}

fn change_interval(view: &mut View, source: &Source, longer: bool) {
    let now = view.interval.as_millis() as u64;
    let mut all = INTERVALS_MS.iter().copied();
    let next = match longer {
        true => all.find(|ms| *ms > now),
        false => all.rfind(|ms| *ms < now),
    };
    if let Some(ms) = next {
        view.interval = Duration::from_millis(ms);
        source.set_interval(view.interval);
    }
}
