//! A listening socket: which callers are accepted, how many, and for how long.
//!
//! Each says one thing (`Talk`) and gets one answer. At the control sockets of the host
//! ([`Server`](crate::server::Server)) and of mounts that is a line of JSON each, and only the
//! process's own user (mode 0600) and root may connect; the peer's credentials are checked too.
//! Where lines of text are spoken, a caller may go on over the same connection.
//! [`Metrics`](crate::metrics::Metrics) are asked for here as well, also over TCP.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType};
use serde_json::Value;

use crate::connection::{peer, receive_whole, send_all};
use crate::protocol::{LINE_MAX, RefusalKind, reply};

/// Time limit for a caller to send its request, and for taking the answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Callers that are served at the same time. Beyond that, the caller that has been silent for
/// longest is disconnected.
const CALLERS_MAX: usize = 64;

/// Connections that wait to be accepted; beyond that, connecting takes longer.
const WAITING_MAX: i32 = 128;
/// Bytes of a socket's path (unix(7), `sun_path`, with its NUL 108).
const PATH_MAX: usize = 107;
/// The next try where nobody can be accepted: this process has no descriptor left.
const NO_DESCRIPTOR: Duration = Duration::from_millis(100);
/// The answer to another user.
const NOT_ALLOWED: &str = "this process answers the user who started it, and root";
/// The answer where all places are taken by callers that wait for theirs.
const BUSY: &str = "too many requests are being answered here: ask again later";

/// The connected callers: a number, and the connections of those that have not sent a request yet.
#[derive(Default)]
struct Callers {
    last: u64,
    silent: BTreeMap<u64, Arc<OwnedFd>>,
    answered: usize,
}

impl Callers {
    /// Whether there is room for one more, if necessary by disconnecting a silent caller.
    fn make_room(&mut self) -> bool {
        while self.silent.len() + self.answered >= CALLERS_MAX {
            let Some((_, oldest)) = self.silent.pop_first() else { return false };
            // OK to ignore: he has gone.
            let _ = rustix::net::shutdown(&*oldest, Shutdown::Both);
        }
        true
    }
}

fn locked(callers: &Mutex<Callers>) -> MutexGuard<'_, Callers> {
    callers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers a line of text, without its end, with another one.
pub type LineHandler = dyn Fn(&[u8]) -> String + Send + Sync;

/// Answers a request: a line of any bytes.
pub type Handler = dyn Fn(&[u8]) -> Value + Send + Sync;

type Answer = dyn Fn(&[u8]) -> Vec<u8> + Send + Sync;

/// What is spoken at a socket.
pub(crate) struct Talk {
    /// Bytes of a request, at most; what is longer is cut off.
    pub request_max: u64,
    /// Whether a request is complete.
    pub is_whole: fn(&[u8]) -> bool,
    /// The answer to a request, which need not be complete.
    pub answer: Box<Answer>,
    /// The answer where there is no room.
    pub busy: Vec<u8>,
    /// The answer to another user; `None`: anybody may ask.
    pub not_allowed: Option<Vec<u8>>,
    /// After a whole request the caller may send another one, whenever that is.
    pub goes_on: bool,
}

impl Talk {
    /// Lines of JSON, with this process's own user and root.
    fn of_lines(handler: Arc<Handler>) -> Talk {
        let line = |reply: &Value| format!("{reply}\n").into_bytes();
        let refused = |kind: RefusalKind, what| line(&reply(&Err(kind.because(what))));
        Talk {
            request_max: LINE_MAX,
            is_whole: |request| request.last() == Some(&b'\n'),
            answer: Box::new(move |request| line(&handler(request))),
            busy: refused(RefusalKind::Busy, BUSY),
            not_allowed: Some(refused(RefusalKind::Refused, NOT_ALLOWED)),
            goes_on: false,
        }
    }

    /// Lines of text of so many bytes, with this process's own user and root. Lines that were sent
    /// together are answered together.
    fn of_text(line_max: u64, handler: Arc<LineHandler>) -> Talk {
        let too_long = format!("error what is sent at once has at most {line_max} bytes");
        let answer = move |request: &[u8]| {
            let lines = request.split_inclusive(|byte| *byte == b'\n');
            // Of a line without an end nobody knows what was to follow.
            let one = |line: &[u8]| match line.strip_suffix(b"\n") {
                Some(line) => handler(line.strip_suffix(b"\r").unwrap_or(line)) + "\n",
                None if request.len() as u64 >= line_max => format!("{too_long}\n"),
                None => "error the line has no end\n".into(),
            };
            lines.map(one).collect::<String>().into_bytes()
        };
        Talk {
            request_max: line_max,
            is_whole: |request| request.last() == Some(&b'\n'),
            answer: Box::new(answer),
            busy: format!("error {BUSY}\n").into_bytes(),
            not_allowed: Some(format!("error {NOT_ALLOWED}\n").into_bytes()),
            goes_on: true,
        }
    }
}

/// A listening socket. Its file is removed with it.
pub struct Listener {
    path: Option<PathBuf>,
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
        Listener::serve(listener.into(), Some(path), Talk::of_lines(handler))
    }

    /// Answers the lines of every accepted caller with `handler`, as long as it sends some, of up
    /// to `line_max` bytes.
    ///
    /// # Errors
    /// If there can be no more threads.
    pub fn open_text(
        listener: UnixListener,
        path: &Path,
        line_max: u64,
        handler: Arc<LineHandler>,
    ) -> std::io::Result<Listener> {
        Listener::serve(listener.into(), Some(path), Talk::of_text(line_max, handler))
    }

    /// The same of another way to talk, at a socket that has a file or not.
    pub(crate) fn serve(
        listener: OwnedFd,
        path: Option<&Path>,
        talk: Talk,
    ) -> std::io::Result<Listener> {
        let callers = Arc::new(Mutex::new(Callers::default()));
        let (all, talk) = (Arc::clone(&callers), Arc::new(talk));
        let listen = move || {
            loop {
                match rustix::net::accept_with(&listener, SocketFlags::CLOEXEC) {
                    Ok(connection) => serve_connection(connection, &talk, &all),
                    Err(Errno::INTR | Errno::CONNABORTED) => {}
                    Err(_) => std::thread::sleep(NO_DESCRIPTOR),
                }
            }
        };
        std::thread::Builder::new().name("control".into()).spawn(listen)?;
        Ok(Listener { path: path.map(Path::to_path_buf), callers })
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
        if let Some(path) = &self.path {
            // OK to ignore: a later caller finds no listener.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Whether a path is short enough for a socket (unix(7)).
///
/// # Errors
/// It is too long.
pub fn check_path(path: &Path) -> std::io::Result<()> {
    match SocketAddrUnix::new(path) {
        Ok(_) => Ok(()),
        Err(Errno::NAMETOOLONG) => {
            let len = path.as_os_str().len();
            let what = format!("a socket's path has at most {PATH_MAX} bytes, and this has {len}");
            Err(std::io::Error::new(std::io::ErrorKind::InvalidFilename, what))
        }
        Err(e) => Err(e.into()),
    }
}

/// Listens at a path, for this user alone. Whatever socket was there is replaced.
///
/// # Errors
/// As the system says; there is something else.
pub fn bind_private(path: &Path) -> std::io::Result<UnixListener> {
    check_path(path)?;
    if path.symlink_metadata().is_ok_and(|there| there.file_type().is_socket()) {
        // OK to ignore: a failure is reported below.
        let _ = std::fs::remove_file(path);
    }
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
fn serve_connection(connection: OwnedFd, talk: &Arc<Talk>, callers: &Arc<Mutex<Callers>>) {
    let mut all = locked(callers);
    if !all.make_room() {
        drop(all);
        // OK to ignore: the caller has gone. The answer is short, and the kernel buffers it.
        let _ =
            rustix::net::send(&connection, &talk.busy, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        return;
    }
    let connection = Arc::new(connection);
    all.last += 1;
    let mut number = all.last;
    all.silent.insert(number, Arc::clone(&connection));
    drop(all);
    let (talk, of) = (Arc::clone(talk), Arc::clone(callers));
    let converse = move || {
        loop {
            // Who goes on may be silent until its place is needed.
            let until = (!talk.goes_on).then(|| Instant::now() + TIMEOUT);
            // What was sent before the caller has ended it need not be a whole request.
            let asked = receive_whole(&*connection, until, talk.request_max, talk.is_whole);
            {
                let mut all = locked(&of);
                if all.silent.remove(&number).is_none() {
                    // Disconnected.
                    return;
                }
                all.answered += 1;
            }
            let goes_on = asked.is_ok_and(|request| answered(&connection, &talk, &request));
            let mut all = locked(&of);
            all.answered -= 1;
            if !goes_on {
                return;
            }
            all.last += 1;
            number = all.last;
            all.silent.insert(number, Arc::clone(&connection));
        }
    };
    let started = std::thread::Builder::new().name("control".into()).spawn(converse);
    if started.is_err() {
        locked(callers).silent.remove(&number);
    }
}

/// Answers a request; whether the caller may go on.
fn answered(connection: &OwnedFd, talk: &Talk, request: &[u8]) -> bool {
    if talk.goes_on && request.is_empty() {
        return false;
    }
    let refused = talk.not_allowed.as_ref().filter(|_| !is_allowed(connection));
    let answer = refused.cloned().unwrap_or_else(|| (talk.answer)(request));
    // A caller that does not read the answer misses it.
    let sent = send_all(connection, &answer, Some(Instant::now() + TIMEOUT));
    talk.goes_on && refused.is_none() && sent.is_ok() && (talk.is_whole)(request)
}

/// Whether the peer is root, or this process's own user.
fn is_allowed(connection: &OwnedFd) -> bool {
    let own = rustix::process::geteuid().as_raw();
    peer(connection).is_ok_and(|peer| peer.user == 0 || peer.user == own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, Write};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;

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

    #[test]
    fn lines_are_answered_as_long_as_they_come() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = bind_private(&path).unwrap();
        let handler = |line: &[u8]| format!("ok {}", line.len());
        let _listener = Listener::open_text(listener, &path, 1000, Arc::new(handler)).unwrap();
        let mut connection = UnixStream::connect(&path).unwrap();
        let mut answers = std::io::BufReader::new(connection.try_clone().unwrap());
        let mut next = || {
            let mut line = String::new();
            answers.read_line(&mut line).unwrap();
            line
        };
        for (sent, answered) in
            [("abc\n", vec![3]), ("\r\n", vec![0]), ("a\nbc\n\n", vec![1, 2, 0])]
        {
            connection.write_all(sent.as_bytes()).unwrap();
            for bytes in answered {
                assert_eq!(next(), format!("ok {bytes}\n"), "{sent:?}");
            }
        }
        // One that is too long ends the connection.
        connection.write_all(&[b'x'; 1000]).unwrap();
        assert_eq!(next(), "error what is sent at once has at most 1000 bytes\n");
        assert_eq!(next(), "");
        // Who ends in the middle of a line has not said it.
        let mut connection = UnixStream::connect(&path).unwrap();
        connection.write_all(b"four").unwrap();
        connection.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        std::io::BufReader::new(connection).read_line(&mut answer).unwrap();
        assert_eq!(answer, "error the line has no end\n");
    }

    #[test]
    fn silent_connections_make_room_for_those_that_speak() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = bind_private(&path).unwrap();
        let handler = |line: &[u8]| format!("ok {}", line.len());
        let _listener = Listener::open_text(listener, &path, 1000, Arc::new(handler)).unwrap();
        let held: Vec<_> = (0..2 * CALLERS_MAX)
            .map(|_| {
                let mut connection = UnixStream::connect(&path).unwrap();
                // One that has gone on is as silent as one that never spoke.
                connection.write_all(b"a\n").unwrap();
                connection
            })
            .collect();
        assert_eq!(ask(&path), "ok 5\n");
        drop(held);
    }
}
