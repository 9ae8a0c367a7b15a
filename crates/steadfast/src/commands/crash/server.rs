//! A server that a client drives: started, waited for until it is ready, ended after the client.
//!
//! What it prints is no promise, and is not shown among the client's lines: logs are long. The last
//! of it is kept, and shown where the server was not ready or ended too early. It is read all the
//! time: a server never waits for us.
//!
//! It is ended by SIGTERM to its group, as service managers do: what it has outside of the folder
//! (shared memory, sockets) is its own to remove. What it writes to the folder then is recorded and
//! cut, too: the power may also fail while a machine goes down.

use std::collections::VecDeque;
use std::io::{PipeReader, Read, pipe};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use super::client::{ClientPlan, ReadyPlan};
use super::ended::{EndCause, ProgramEnd, SERVER_GRACE, ServerEnd, in_words};
use super::group::{Group, PAUSE};
use super::prepare::{last_line, printed};
use super::watch::{RunPlace, Watch};
use crate::{Usage, terminal};

/// How long a client has to end whose server has failed.
const WITHOUT_SERVER: Duration = Duration::from_secs(10);
/// How long nothing is asked after a server was not ready.
const NOT_READY: Duration = Duration::from_millis(50);
/// How long what it printed last is waited for.
const LAST_READ: Duration = Duration::from_millis(500);
/// So many of its last bytes are kept.
const KEPT: usize = 64 << 10;
/// So many of its last lines are shown.
const LINES_SHOWN: usize = 10;

/// A server that runs.
pub struct Server<'a> {
    client: &'a ClientPlan,
    group: Group,
    output: OutputEnd,
    /// When it was seen that it has ended by itself.
    gone: Option<Instant>,
}

impl<'a> Server<'a> {
    /// Starts it and waits until it is ready.
    ///
    /// # Errors
    /// It is not; it has ended; somebody has asked to stop.
    pub fn ready(
        place: RunPlace<'_>,
        client: &'a ClientPlan,
        watch: &mut Watch<'_>,
    ) -> Result<Server<'a>> {
        let (name, arguments) = watch.program.split_first().context("no server")?;
        let (out, prints) = pipe()?;
        let mut command = place.command(name);
        command.args(arguments).stdin(Stdio::null()).stdout(prints.try_clone()?).stderr(prints);
        let group = Group::start(&mut command).map_err(|e| Usage(format!("{name}: {e}")))?;
        // Our end of what it prints into goes with it.
        drop(command);
        let output = OutputEnd::read(out)?;
        let mut server = Server { client, group, output, gone: None };
        let is_ready = match &client.ready {
            None => Ok(()),
            Some(ready) => server.wait_for(ready, place, watch),
        };
        is_ready.map(|()| server)
    }

    fn wait_for(
        &mut self,
        ready: &ReadyPlan,
        place: RunPlace<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<()> {
        let end = Instant::now() + ready.limit;
        loop {
            // No pipes: what the command leaves running would keep them open.
            let (out, errors) = (tempfile::tempfile()?, tempfile::tempfile()?);
            let mut command = place.command("sh");
            command.args(["-c", &ready.command]).stdin(Stdio::null());
            command.stdout(out.try_clone()?).stderr(errors.try_clone()?);
            let asks = Group::start(&mut command).context("--ready: sh")?;
            let is_late = loop {
                if asks.has_ended()? {
                    break false;
                }
                self.go_on(watch)?;
                if Instant::now() >= end {
                    break true;
                }
                std::thread::sleep(PAUSE);
            };
            let status = asks.end()?;
            if status.success() {
                return Ok(());
            }
            if is_late || Instant::now() + NOT_READY >= end {
                let last = match is_late {
                    true => "it has not ended".to_owned(),
                    false => format!(
                        "{}: {}",
                        in_words(status),
                        last_line(&printed(errors)?, &printed(out)?)
                    ),
                };
                self.show_last();
                let (command, limit) = (&ready.command, ready.limit.as_secs_f64());
                usage!("--ready: {command:?} did not succeed within {limit} s: at last {last}");
            }
            std::thread::sleep(NOT_READY);
            self.go_on(watch)?;
        }
    }

    /// Whether there is something to wait for, before the client is begun.
    fn go_on(&mut self, watch: &mut Watch<'_>) -> Result<()> {
        if watch.is_asked() {
            watch.answered += 1;
            bail!("the client was not begun");
        }
        // One that goes to the background ends well.
        let Some(failed) = self.has_ended()?.then(|| self.group.failed()).transpose()?.flatten()
        else {
            return Ok(());
        };
        self.show_last();
        usage!("the server {failed} before it was ready");
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> Result<bool> {
        if self.gone.is_none() && self.group.has_ended()? {
            self.gone = Some(Instant::now());
        }
        Ok(self.gone.is_some())
    }

    /// Why the client, which began then, is not waited for any more.
    pub fn ends_client(&mut self, begun: Instant) -> Result<Option<ProgramEnd>> {
        if begun.elapsed() >= self.client.limit {
            return Ok(Some(ProgramEnd::Late(self.client.limit)));
        }
        if !self.has_ended()? || self.group.failed()?.is_none() {
            return Ok(None);
        }
        let is_late = self.gone.is_some_and(|gone| gone.elapsed() >= WITHOUT_SERVER);
        Ok(is_late.then_some(ProgramEnd::WithoutServer(WITHOUT_SERVER)))
    }

    /// Ends it; a signal to us ends the waiting.
    pub fn end(mut self, client_gone: Instant, watch: &Watch<'_>) -> Result<ServerEnd> {
        let cause = if self.has_ended()? {
            match self.gone.is_some_and(|gone| gone < client_gone) {
                true => EndCause::BeforeClient,
                false => EndCause::AfterClient,
            }
        } else {
            self.group.signal(Signal::TERM);
            let end = Instant::now() + SERVER_GRACE;
            while !self.has_ended()? && Instant::now() < end && !watch.is_asked() {
                std::thread::sleep(PAUSE);
            }
            if self.gone.is_some() { EndCause::Asked } else { EndCause::Killed }
        };
        let last = self.output.last_lines();
        Ok(ServerEnd { status: self.group.end()?, cause, last })
    }

    fn show_last(&self) {
        let lines = self.output.last_lines();
        match lines.is_empty() {
            true => terminal::note("the server has printed nothing"),
            false => terminal::note(&format!("the server printed last:\n{}", lines.join("\n"))),
        }
    }
}

/// The end of what a server prints. Who reads it lives as long as somebody may print, as a server
/// in the background that has left the group.
struct OutputEnd {
    kept: Arc<Mutex<VecDeque<u8>>>,
    reader: JoinHandle<()>,
}

impl OutputEnd {
    fn read(mut out: PipeReader) -> Result<OutputEnd> {
        let kept = Arc::<Mutex<VecDeque<u8>>>::default();
        let of = Arc::clone(&kept);
        let thread = std::thread::Builder::new().name("server output".into());
        let reading = move || {
            let mut piece = vec![0; KEPT];
            while let Ok(count @ 1..) = out.read(&mut piece) {
                let mut kept = of.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend(&piece[..count]);
                let too_many = kept.len().saturating_sub(KEPT);
                kept.drain(..too_many);
            }
        };
        let reader = thread.spawn(reading).context("a thread that reads the server's output")?;
        Ok(OutputEnd { kept, reader })
    }

    /// What it printed last; its reader may be behind it for a moment.
    fn last_lines(&self) -> Vec<String> {
        let end = Instant::now() + LAST_READ;
        while !self.reader.is_finished() && Instant::now() < end {
            std::thread::sleep(PAUSE);
        }
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let from = lines.len().saturating_sub(LINES_SHOWN);
        lines[from..].iter().map(|line| (*line).to_owned()).collect()
    }
}
