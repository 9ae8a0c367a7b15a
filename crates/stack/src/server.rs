//! The control socket.
//!
//! Its file may be used by the user who runs the host alone (mode 0600), and root; who connects is
//! looked at all the same.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::host::Host;
use crate::protocol::{Answer, Kind, LINE_MAX, Refusal, Request, reply};

/// How long a caller may take to say what he wants.
const PATIENCE: Duration = Duration::from_secs(30);
/// Callers that are answered at the same time.
const CALLERS_MAX: usize = 64;

/// The listening socket; its file goes with it.
pub struct Server {
    path: PathBuf,
    busy: Arc<AtomicUsize>,
}

impl Server {
    /// Listens at a path and answers for a host.
    ///
    /// # Errors
    /// Another host answers there; the socket cannot be made.
    pub fn open(path: &Path, host: &Arc<Host>) -> Result<Server, Refusal> {
        let shown = path.display();
        let failed = |e: std::io::Error| Refusal::new(Kind::Failed, format!("{shown}: {e}"));
        if UnixStream::connect(path).is_ok() {
            let what = "another host answers there: give this one a socket of its own (--socket)";
            return Err(Refusal::new(Kind::Busy, format!("{shown}: {what}")));
        }
        if path.symlink_metadata().is_ok_and(|m| !is_socket(&m)) {
            let what = "is there already, and is no socket";
            return Err(Refusal::new(Kind::Refused, format!("{shown}: {what}")));
        }
        // Left behind by a host that was killed.
        let _ = std::fs::remove_file(path);
        // Nobody may connect before the mode is what it is to be: under a name that nobody knows.
        let new = path.with_extension(format!("{}.new", std::process::id()));
        let _ = std::fs::remove_file(&new);
        let listener = UnixListener::bind(&new).map_err(failed)?;
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        std::fs::rename(&new, path).map_err(failed)?;
        let busy = Arc::new(AtomicUsize::new(0));
        let (host, counter) = (Arc::clone(host), Arc::clone(&busy));
        let listen = move || {
            for connection in listener.incoming().flatten() {
                if counter.load(Ordering::Acquire) >= CALLERS_MAX {
                    // He sees that it was closed.
                    continue;
                }
                counter.fetch_add(1, Ordering::AcqRel);
                let (host, busy) = (Arc::clone(&host), Arc::clone(&counter));
                let answer = move || {
                    // Who does not listen to the answer misses it.
                    let _ = converse(&connection, &host);
                    busy.fetch_sub(1, Ordering::AcqRel);
                };
                let started = std::thread::Builder::new().name("control".into()).spawn(answer);
                if started.is_err() {
                    counter.fetch_sub(1, Ordering::AcqRel);
                }
            }
        };
        std::thread::Builder::new().name("control".into()).spawn(listen).map_err(failed)?;
        Ok(Server { path: path.to_path_buf(), busy })
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stops listening, once the answers that are on their way have gone, or after `patience`.
    pub fn close(self, patience: Duration) {
        let until = Instant::now() + patience;
        while self.busy.load(Ordering::Acquire) > 0 && Instant::now() < until {
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

fn is_socket(meta: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    meta.file_type().is_socket()
}

fn converse(mut connection: &UnixStream, host: &Arc<Host>) -> std::io::Result<()> {
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    let answered = if is_allowed(connection) {
        let mut line = String::new();
        BufReader::new(connection.take(LINE_MAX)).read_line(&mut line)?;
        asked(&line, host)
    } else {
        let what = "this host answers the user who started it, and root";
        Err(Refusal::new(Kind::Refused, what))
    };
    writeln!(connection, "{}", reply(&answered))
}

/// Whether whoever connects is root, or the host's own user.
fn is_allowed(connection: &UnixStream) -> bool {
    let peer = rustix::net::sockopt::socket_peercred(connection);
    let own = rustix::process::geteuid();
    peer.is_ok_and(|peer| peer.uid.is_root() || peer.uid == own)
}

fn asked(line: &str, host: &Arc<Host>) -> Result<Answer, Refusal> {
    let request: Request = serde_json::from_str(line).map_err(|e| {
        Refusal::new(Kind::UsedWrongly, format!("a request that makes no sense: {e}"))
    })?;
    tracing::debug!("{request:?}");
    host.answer(request)
}
