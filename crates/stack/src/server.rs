//! The control socket.
//!
//! Its file may be used by the user who runs the host alone (mode 0600), and root; who connects is
//! looked at all the same.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::host::Host;
use crate::protocol::{Answer, Kind, LINE_MAX, Refusal, Request, reply};

/// How long a caller may take to say what he wants, all of it.
const PATIENCE: Duration = Duration::from_secs(10);
/// Callers that are listened to, or answered, at the same time. Of more the one goes that has been
/// silent for longest.
const CALLERS_MAX: usize = 64;

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

/// The listening socket; its file goes with it.
pub struct Server {
    path: PathBuf,
    callers: Arc<Mutex<Callers>>,
}

impl Server {
    /// Listens at a path and answers for a host.
    ///
    /// # Errors
    /// Another host answers there; the socket cannot be made.
    pub fn open(path: &Path, host: &Arc<Host>) -> Result<Server, Refusal> {
        let shown = path.display();
        let failed = |e: std::io::Error| Refusal::new(Kind::Failed, format!("{shown}: {e}"));
        let listener = bind(path, "--socket")?;
        let callers = Arc::new(Mutex::new(Callers::default()));
        let (host, all) = (Arc::clone(host), Arc::clone(&callers));
        let listen = move || {
            for connection in listener.incoming().flatten() {
                admit(connection, &host, &all);
            }
        };
        std::thread::Builder::new().name("control".into()).spawn(listen).map_err(failed)?;
        Ok(Server { path: path.to_path_buf(), callers })
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stops listening, once the answers that are on their way have gone, or after `patience`.
    pub fn close(self, patience: Duration) {
        let until = Instant::now() + patience;
        while locked(&self.callers).answered > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // OK to ignore: whoever finds it finds nobody behind it.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Listens at a path, for this user alone. What a host that was killed has left there is taken
/// away; anything else is not. `option` is how another path is given.
pub(crate) fn bind(path: &Path, option: &str) -> Result<UnixListener, Refusal> {
    let shown = path.display();
    let failed = |e: std::io::Error| Refusal::new(Kind::Failed, format!("{shown}: {e}"));
    if UnixStream::connect(path).is_ok() {
        let what = format!("another host answers there: give this one its own ({option})");
        return Err(Refusal::new(Kind::Busy, format!("{shown}: {what}")));
    }
    if path.symlink_metadata().is_ok_and(|m| !is_socket(&m)) {
        let what = "is there already, and is no socket";
        return Err(Refusal::new(Kind::Refused, format!("{shown}: {what}")));
    }
    let _ = std::fs::remove_file(path);
    // Nobody may connect before the mode is what it is to be: under a name that nobody knows.
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let _ = std::fs::remove_file(&new);
    let listener = UnixListener::bind(&new).map_err(failed)?;
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    std::fs::rename(&new, path).map_err(failed)?;
    Ok(listener)
}

fn is_socket(meta: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    meta.file_type().is_socket()
}

/// Listens to a caller, and answers him, in a thread of its own.
fn admit(connection: UnixStream, host: &Arc<Host>, callers: &Arc<Mutex<Callers>>) {
    let mut all = locked(callers);
    if !all.make_room() {
        drop(all);
        let what = "the host has too many requests to answer: ask again later";
        // OK to ignore: he has gone. It is short, and the kernel takes it.
        let _ = connection.set_nonblocking(true);
        let _ = answer(&connection, &Err(Refusal::new(Kind::Busy, what)));
        return;
    }
    let Ok(silent) = connection.try_clone() else { return };
    all.last += 1;
    let number = all.last;
    all.silent.insert(number, silent);
    drop(all);
    let (host, of) = (Arc::clone(host), Arc::clone(callers));
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
            let _ = answer(&connection, &asked_by(&connection, &line, &host));
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
    let until = Instant::now() + PATIENCE;
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

fn asked_by(connection: &UnixStream, line: &[u8], host: &Arc<Host>) -> Result<Answer, Refusal> {
    if !is_allowed(connection) {
        let what = "this host answers the user who started it, and root";
        return Err(Refusal::new(Kind::Refused, what));
    }
    asked(line, host)
}

fn answer(mut connection: &UnixStream, answered: &Result<Answer, Refusal>) -> std::io::Result<()> {
    connection.set_write_timeout(Some(PATIENCE))?;
    writeln!(connection, "{}", reply(answered))
}

/// Whether whoever connects is root, or the host's own user.
fn is_allowed(connection: &UnixStream) -> bool {
    let peer = rustix::net::sockopt::socket_peercred(connection);
    let own = rustix::process::geteuid();
    peer.is_ok_and(|peer| peer.uid.is_root() || peer.uid == own)
}

fn asked(line: &[u8], host: &Arc<Host>) -> Result<Answer, Refusal> {
    let request: Request = serde_json::from_slice(line).map_err(|e| {
        Refusal::new(Kind::UsedWrongly, format!("a request that makes no sense: {e}"))
    })?;
    tracing::debug!("{request:?}");
    host.answer(request)
}
