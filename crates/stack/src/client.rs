//! The client of a host.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::protocol::RefusalKind::Failed;
use crate::protocol::{Answer, LINE_MAX, Refusal, RefusalKind, Request, read_reply};

/// How long a host may take for what it does at once.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A host, by its socket. Each request is a connection of its own.
#[derive(Debug, Clone)]
pub struct Client {
    socket: PathBuf,
}

impl Client {
    /// The host at this socket.
    ///
    /// # Errors
    /// No host answers, or this user has no permission; the message says which, and what to do.
    pub fn connect(socket: &Path) -> Result<Client, Refusal> {
        connected(socket)?;
        Ok(Client { socket: socket.to_path_buf() })
    }

    /// Where it answers.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Asks, and waits for the answer: as long as it takes for a resync, a scrub and what closes a
    /// volume, at most a minute for the others.
    ///
    /// # Errors
    /// What the host refused, or that it does not answer.
    pub fn call(&self, request: &Request) -> Result<Answer, Refusal> {
        let mut connection = connected(&self.socket)?;
        let lost = |e: std::io::Error| {
            let what = format!("the host at {} does not answer: {e}", self.socket.display());
            Failed.because(what)
        };
        let timeout = takes_a_moment(request).then_some(TIMEOUT);
        connection.set_read_timeout(timeout).map_err(lost)?;
        connection.set_write_timeout(Some(TIMEOUT)).map_err(lost)?;
        let text = serde_json::to_string(request).map_err(|e| lost(e.into()))?;
        writeln!(connection, "{text}").map_err(lost)?;
        let mut line = Vec::new();
        let mut answer = BufReader::new(connection.take(LINE_MAX));
        answer.read_until(b'\n', &mut line).map_err(lost)?;
        if line.is_empty() {
            let socket = self.socket.display();
            let what = format!("the host at {socket} has ended without an answer: see its log");
            return Err(Failed.because(what));
        }
        read_reply(&line)
    }
}

/// Whether the answer comes soon, however large the volume is.
fn takes_a_moment(request: &Request) -> bool {
    matches!(request, Request::Status | Request::Counters)
}

fn connected(socket: &Path) -> Result<UnixStream, Refusal> {
    use std::io::ErrorKind;
    UnixStream::connect(socket).map_err(|e| {
        let shown = socket.display();
        let (kind, what) = match e.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => (
                RefusalKind::NotFound,
                "no host answers: start one by 'steadfast serve'".to_owned(),
            ),
            ErrorKind::PermissionDenied => {
                let what = "this user may not ask this host: it answers the user who started it, \
                            and root";
                (RefusalKind::Refused, what.to_owned())
            }
            _ => (RefusalKind::Failed, e.to_string()),
        };
        kind.because(format!("{shown}: {what}"))
    })
}
