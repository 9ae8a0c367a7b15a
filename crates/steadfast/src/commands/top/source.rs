//! Readings of a host, taken beside the screen.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use steadfast_stack::client::Client;
use steadfast_stack::protocol::RefusalKind::Failed;
use steadfast_stack::protocol::{Refusal, Request, StackCounters, StackStatus};

/// What a host was asked at one time.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// What there is.
    pub stack: StackStatus,
    /// What went through it.
    pub counters: StackCounters,
}

/// Asks a host.
///
/// # Errors
/// It does not answer.
pub fn read(client: &Client) -> std::result::Result<Reading, Refusal> {
    let lost = || Failed.because("the host's answer makes no sense");
    let stack = client.call(&Request::Status)?.stack.ok_or_else(lost)?;
    let counters = client.call(&Request::Counters)?.counters.ok_or_else(lost)?;
    Ok(Reading { stack, counters })
}

/// Readings as they come.
pub struct Source {
    /// Each reading, or why there is none.
    pub readings: Receiver<std::result::Result<Reading, String>>,
    interval: Arc<Mutex<Duration>>,
    wake: Sender<()>,
}

impl Source {
    /// Reads so often from now on.
    pub fn set_interval(&self, interval: Duration) {
        *self.interval.lock().unwrap_or_else(PoisonError::into_inner) = interval;
        // OK to ignore: it has ended.
        let _ = self.wake.send(());
    }
}

/// Begins to ask.
///
/// # Errors
/// No thread can be started.
pub fn begin(client: Client, interval: Duration) -> Result<Source> {
    let (sender, readings) = channel();
    let (wake, woken) = channel();
    let interval = Arc::new(Mutex::new(interval));
    let now = Arc::clone(&interval);
    std::thread::Builder::new().name("top".into()).spawn(move || {
        loop {
            let pause = *now.lock().unwrap_or_else(PoisonError::into_inner);
            // Woken: the interval is another one, and begins now.
            if woken.recv_timeout(pause).is_ok() {
                continue;
            }
            if sender.send(read(&client).map_err(|refusal| refusal.error)).is_err() {
                return;
            }
        }
    })?;
    Ok(Source { readings, interval, wake })
}
