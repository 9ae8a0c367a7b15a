//! The client of a host.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::connection;
use crate::protocol::RefusalKind::Failed;
use crate::protocol::{Answer, Refusal, RefusalKind, Request, read_reply};

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
        connected(socket, Instant::now() + TIMEOUT)?;
        Ok(Client { socket: socket.to_path_buf() })
    }

    /// Where it answers.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Asks, and waits for the answer: for status and counters at most a minute, for what takes
    /// longer as long as the host answers others.
    ///
    /// # Errors
    /// What the host refused, or that it does not answer.
    pub fn call(&self, request: &Request) -> Result<Answer, Refusal> {
        self.call_within(request, TIMEOUT)
    }

    fn call_within(&self, request: &Request, time: Duration) -> Result<Answer, Refusal> {
        let socket = self.socket.display();
        let lost = |e: std::io::Error| {
            Failed.because(format!("the host at {socket} does not answer: {e}"))
        };
        let ask = |request: &Request| -> Result<UnixStream, Refusal> {
            let until = Instant::now() + time;
            let connection = connected(&self.socket, until)?;
            let text = serde_json::to_string(request).map_err(|e| lost(e.into()))?;
            connection::send(&connection, &text, Some(until)).map_err(lost)?;
            Ok(connection)
        };
        let answer = |connection: &UnixStream| {
            connection::receive(connection, Some(Instant::now() + time)).map_err(lost)
        };
        let connection = ask(request)?;
        let is_long = !takes_a_moment(request);
        while is_long && !connection::begins_within(&connection, time).map_err(lost)? {
            answer(&ask(&Request::Status)?)?;
        }
        let line = answer(&connection)?;
        if line.is_empty() {
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

fn connected(socket: &Path, until: Instant) -> Result<UnixStream, Refusal> {
    connection::connect(socket, until).map_err(|e| {
        let shown = socket.display();
        let (kind, what) = match e {
            Errno::NOENT | Errno::CONNREFUSED => (
                RefusalKind::NotFound,
                "no host answers: start one by 'steadfast serve'".to_owned(),
            ),
            Errno::ACCESS => {
                let what = "this user may not ask this host: it answers the user who started it, \
                            and root";
                (RefusalKind::Refused, what.to_owned())
            }
            Errno::AGAIN => (Failed, "the host there accepts nobody".to_owned()),
            _ => (Failed, std::io::Error::from(e).to_string()),
        };
        kind.because(format!("{shown}: {what}"))
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::protocol::{NameRequest, reply};

    /// What a client hears whose first caller is served by `serve`.
    fn heard(
        request: &Request,
        serve: impl Fn(UnixStream, usize) + Send + 'static,
    ) -> Result<Answer, Refusal> {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        std::thread::spawn(move || {
            let mut all = Vec::new();
            for (n, caller) in listener.incoming().map_while(Result::ok).enumerate() {
                all.push(caller.try_clone().unwrap());
                serve(caller, n);
            }
        });
        let start = Instant::now();
        let heard = Client { socket }.call_within(request, Duration::from_millis(300));
        assert!(start.elapsed() < Duration::from_secs(5));
        heard
    }

    #[test]
    fn a_host_that_drips_or_is_silent_is_not_waited_for() {
        let long = Request::Umount(NameRequest::of("d10"));
        for request in [&Request::Status, &long] {
            let silent = heard(request, |_, _| ()).unwrap_err().to_string();
            assert!(silent.contains("does not answer"), "{silent}");
            let drips = heard(request, |mut caller, _| {
                std::thread::spawn(move || {
                    while caller.write_all(b" ").is_ok() {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                });
            });
            assert!(drips.unwrap_err().to_string().contains("does not answer"));
        }
    }

    #[test]
    fn what_takes_long_is_waited_for_while_the_host_answers_others() {
        let long = Request::Umount(NameRequest::of("d10"));
        let answer = |mut caller: UnixStream, n: usize| {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(if n == 0 { 1000 } else { 0 }));
                writeln!(caller, "{}", reply(&Ok(Answer::default()))).unwrap();
            });
        };
        heard(&long, answer).unwrap();
    }
}
