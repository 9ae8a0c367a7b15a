//! The door of a process that answers over a socket: who is let in, how many, for how long.
//!
//! The socket's file may be used by the process's own user alone (mode 0600), and root; who
//! connects is looked at all the same. A request and its answer are a line each. The host's
//! [`Server`](crate::server::Server) and the control socket of a mount are behind one each.

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

/// How long a caller may take to say what he wants, all of it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Callers that are listened to, or answered, at the same time. Of more the one goes that has been
/// silent for longest.
const CALLERS_MAX: usize = 64;

/// Callers that wait to be let in; of more, connecting takes longer.
const WAITING_MAX: i32 = 128;
/// What a stranger is told.
const NOT_ALLOWED: &str = "this process answers the user who started it, and root";

/// Who has connected: a number, and the connection of those that have not asked yet.
#[derive(Default)]
struct Callers {
    last: u64,
    silent: BTreeMap<u64, UnixStream>,
    answered: usize,
}

impl Callers {
    /// Whether there is room for one more, perhaps by sending away who says nothing.
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

/// A listening socket; its file goes with it.
pub struct Listener {
    path: PathBuf,
    callers: Arc<Mutex<Callers>>,
}

impl Listener {
    /// Has `handler` answer whoever connects.
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

    /// Stops listening, once the answers that are on their way have gone, or after `timeout`.
    pub fn close(self, timeout: Duration) {
        let until = Instant::now() + timeout;
        while locked(&self.callers).answered > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // OK to ignore: whoever finds it finds nobody behind it.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Listens at a path, for this user alone. Whatever socket was there is replaced.
///
/// # Errors
/// As the system says.
pub fn bind_private(path: &Path) -> std::io::Result<UnixListener> {
    // OK to ignore: nothing need be there, and what cannot be removed is told below.
    let _ = std::fs::remove_file(path);
    let kind = (AddressFamily::UNIX, SocketType::STREAM);
    let socket = rustix::net::socket_with(kind.0, kind.1, SocketFlags::CLOEXEC, None)?;
    // The file gets the socket's mode: nobody may connect before it is what it is to be. It is
    // bound under its own name, by which `/proc/net/unix` has it.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, WAITING_MAX)?;
    Ok(UnixListener::from(socket))
}

/// Listens to a caller, and answers him, in a thread of its own.
fn serve_connection(connection: UnixStream, handler: &Arc<Handler>, callers: &Arc<Mutex<Callers>>) {
    let mut all = locked(callers);
    if !all.make_room() {
        drop(all);
        let what = "too many requests are being answered here: ask again later";
        // OK to ignore: he has gone. It is short, and the kernel takes it.
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
                // Sent away.
                return;
            }
            all.answered += 1;
        }
        // Who does not listen to the answer misses it.
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

/// A line, or what there is of it at the end of his patience; it need not be text.
fn listened(mut connection: &UnixStream) -> std::io::Result<Vec<u8>> {
    let until = Instant::now() + TIMEOUT;
    let (mut line, mut piece) = (Vec::new(), [0; 4096]);
    while line.last() != Some(&b'\n') && (line.len() as u64) < LINE_MAX {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        // Anew for each piece: who sends byte after byte gets no more time for it.
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

/// Whether whoever connects is root, or this process's own user.
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
