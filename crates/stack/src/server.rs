//! The control socket of a host.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::connection::connect;
use crate::host::Host;
use crate::listener::{Listener, bind_private};
use crate::protocol::RefusalKind::{Busy, Failed, Refused, UsedWrongly};
use crate::protocol::{Answer, Refusal, Request, reply};

/// The listening socket; its file goes with it.
pub struct Server(Listener);

impl Server {
    /// Listens at a path and answers for a host.
    ///
    /// # Errors
    /// Another host answers there; the socket cannot be made.
    pub fn open(path: &Path, host: &Arc<Host>) -> Result<Server, Refusal> {
        let listener = bind(path, "--socket")?;
        let host = Arc::clone(host);
        let listener =
            Listener::open(listener, path, Arc::new(move |line| reply(&asked(line, &host))));
        let failed = |e: std::io::Error| Failed.because(format!("{}: {e}", path.display()));
        listener.map(Server).map_err(failed)
    }

    /// Stops listening, once the answers that are in flight have gone, or after `timeout`.
    pub fn close(self, timeout: Duration) {
        self.0.close(timeout);
    }
}

/// Listens at a path, for this user alone. What a host that was killed has left there is taken
/// away; anything else is not. `option` is how another path is given.
pub(crate) fn bind(path: &Path, option: &str) -> Result<UnixListener, Refusal> {
    let shown = path.display();
    let failed = |e: std::io::Error| Failed.because(format!("{shown}: {e}"));
    // One that accepts nobody is one, too.
    if matches!(connect(path, Instant::now()), Ok(_) | Err(Errno::AGAIN)) {
        let what = format!("another host answers there: give this one its own ({option})");
        return Err(Busy.because(format!("{shown}: {what}")));
    }
    if path.symlink_metadata().is_ok_and(|m| !is_socket(&m)) {
        let what = "is there already, and is no socket";
        return Err(Refused.because(format!("{shown}: {what}")));
    }
    bind_private(path).map_err(failed)
}

fn is_socket(meta: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    meta.file_type().is_socket()
}

fn asked(line: &[u8], host: &Arc<Host>) -> Result<Answer, Refusal> {
    let request: Request = serde_json::from_slice(line)
        .map_err(|e| UsedWrongly.because(format!("a request that makes no sense: {e}")))?;
    tracing::debug!("{request:?}");
    host.answer(request)
}
