//! A listening control socket: which callers are accepted, how many, and for how long.
//!
//! Only the process's own user (mode 0600) and root may connect; the peer's credentials are checked
//! too. A request and its answer are a line each. The host's [`Server`](crate::server::Server) and
//! the control socket of a mount use it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use serde_json::Value;

use crate::protocol::{Kind, LINE_MAX, Refusal, reply};

/// Time limit for a caller to send its request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Callers that are served at the same time. Beyond that, the caller that has been silent for
/// longest is disconnected.
const CALLERS_MAX: usize = 64;

/// Connections that wait to be accepted; beyond that, connecting takes longer.
const WAITING_MAX: i32 = 128;
/// The answer to another user.
const NOT_ALLOWED: &str = "this process answers the user who started it, and root";

/// The connected callers: a number, and the connections of those that have not sent a request yet.
#[derive(Default)]
struct Callers {
    last: u64,
    silent: BTreeMap<u64, UnixStream>,
    answered: usize,
}

impl Callers {
    /// Whether there is room for one more, if necessary by disconnecting a silent caller.
    fn make_room(&mut self) -> bool {
        while self.silent.len() + self.answered >= CALLERS_MAX {
            let Some((_, oldest)) = self.silent.pop_first() else { return false };
            // OK to ignore: he has gone.
            let _ = oldest.shutdown(std::net::Shutdown::Both);
        }
        true
    }
}

fn locked(callers: &Mutex<Callers>) -> MutexGuard<'_, Callers> {
    callers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers a request: a line of any bytes.
pub type Handler = dyn Fn(&[u8]) -> Value + Send + Sync;

/// A listening socket. Its file is removed with it.
pub struct Listener {
    path: PathBuf,
    callers: Arc<Mutex<Callers>>,
}

impl Listener {
    /// Answers every accepted caller with `handler`.
    ///
    /// # Errors
    /// If there can be no more threads.
    pub fn open(
        listener: UnixListener,
        path: &Path,
        handler: Arc<Handler>,
    ) -> std::io::Result<Listener> {
        let callers = Arc::new(Mutex::new(Callers::default()));
        let all = Arc::clone(&callers);
        let listen = move || {
            for connection in listener.incoming().flatten() {
                serve_connection(connection, &handler, &all);
            }
        };
        std::thread::Builder::new().name("control".into()).spawn(listen)?;
        Ok(Listener { path: path.to_path_buf(), callers })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stops listening, after pending answers are sent, or after `timeout`.
    pub fn close(self, timeout: Duration) {
        let until = Instant::now() + timeout;
        while locked(&self.callers).answered > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // OK to ignore: a later caller finds no listener.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Listens at a path, for this user alone. Whatever socket was there is replaced.
///
/// # Errors
/// As the system says.
pub fn bind_private(path: &Path) -> std::io::Result<UnixListener> {
    // OK to ignore: there may be no file, and a failure is reported below.
    let _ = std::fs::remove_file(path);
    let kind = (AddressFamily::UNIX, SocketType::STREAM);
    let socket = rustix::net::socket_with(kind.0, kind.1, SocketFlags::CLOEXEC, None)?;
    // The file gets the socket's mode: nobody can connect before the mode is set. It is bound under
    // its own name, which `/proc/net/unix` shows.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, WAITING_MAX)?;
    Ok(UnixListener::from(socket))
}

/// Serves a caller in a thread of its own.
fn serve_connection(connection: UnixStream, handler: &Arc<Handler>, callers: &Arc<Mutex<Callers>>) {
    let mut all = locked(callers);
    if !all.make_room() {
        drop(all);
        let what = "too many requests are being answered here: ask again later";
        // OK to ignore: the caller has gone. The answer is short, and the kernel buffers it.
        let _ = connection.set_nonblocking(true);
        let _ = answer(&connection, &reply(&Err(Refusal::new(Kind::Busy, what))));
        return;
    }
    let Ok(silent) = connection.try_clone() else { return };
    all.last += 1;
    let number = all.last;
    all.silent.insert(number, silent);
    drop(all);
    let (handler, of) = (Arc::clone(handler), Arc::clone(callers));
    let converse = move || {
        let asked = listened(&connection);
        {
            let mut all = locked(&of);
            if all.silent.remove(&number).is_none() {
                // Disconnected.
                return;
            }
            all.answered += 1;
        }
        // A caller that does not read the answer misses it.
        if let Ok(line) = asked {
            let answered = match is_allowed(&connection) {
                true => handler(&line),
                false => reply(&Err(Refusal::new(Kind::Refused, NOT_ALLOWED))),
            };
            let _ = answer(&connection, &answered);
        }
        locked(&of).answered -= 1;
    };
    let started = std::thread::Builder::new().name("control".into()).spawn(converse);
    if started.is_err() {
        locked(callers).silent.remove(&number);
    }
}

/// A line, or its beginning when the time limit ends; it need not be text.
fn listened(mut connection: &UnixStream) -> std::io::Result<Vec<u8>> {
    let until = Instant::now() + TIMEOUT;
    let (mut line, mut piece) = (Vec::new(), [0; 4096]);
    while line.last() != Some(&b'\n') && (line.len() as u64) < LINE_MAX {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        // For each piece again: a caller that sends byte after byte gets no more time.
        connection.set_read_timeout(Some(left))?;
        match connection.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => line.extend_from_slice(&piece[..n]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(line)
}

fn answer(mut connection: &UnixStream, reply: &Value) -> std::io::Result<()> {
    connection.set_write_timeout(Some(TIMEOUT))?;
    writeln!(connection, "{reply}")
}

/// Whether the peer is root, or this process's own user.
fn is_allowed(connection: &UnixStream) -> bool {
    let peer = rustix::net::sockopt::socket_peercred(connection);
    let own = rustix::process::geteuid();
    peer.is_ok_and(|peer| peer.uid.is_root() || peer.uid == own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufRead;
    use std::os::unix::fs::PermissionsExt;

    fn ask(path: &Path) -> String {
        let mut connection = UnixStream::connect(path).unwrap();
        connection.write_all(b"hello\n").unwrap();
        let mut line = String::new();
        std::io::BufReader::new(connection).read_line(&mut line).unwrap();
        line
    }

    #[test]
    fn callers_that_say_nothing_keep_nobody_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        // What a dead process has left is replaced.
        drop(UnixListener::bind(&path).unwrap());
        let listener = bind_private(&path).unwrap();
        let handler = |line: &[u8]| serde_json::json!({ "bytes": line.len() });
        let listener = Listener::open(listener, &path, Arc::new(handler)).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let silent: Vec<_> =
            (0..3 * CALLERS_MAX).map(|_| UnixStream::connect(&path).unwrap()).collect();
        assert_eq!(ask(&path), "{\"bytes\":6}\n");
        drop(silent);
        listener.close(Duration::from_secs(5));
        assert!(!path.exists(), "its file goes with it");
    }
}
