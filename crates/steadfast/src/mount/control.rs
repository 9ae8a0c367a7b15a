//! The control socket of a mount: one request and one answer a connection, each a line of JSON.
//!
//! A request is `{"do": "VERB", ...}`, an answer `{"ok": true, ...}` or `{"ok": false, "error":
//! "...", "used_wrongly": false}`. A new verb is a new arm of `control_socket::answer`, or of the
//! two that it asks first. Who is let in, how many and for how long is
//! [`steadfast_stack::listener`]'s.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use rustix::io::Errno;
use serde_json::{Value, json};
use steadfast_fuse::is_dead;
use steadfast_host::mounts::{self, Mount};
use steadfast_stack::connection;

use super::place;
use crate::Usage;

/// How long a mount may take to answer a question.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a mount may have too many callers at its door.
const CROWDED: Duration = Duration::from_secs(1);
/// How long a process that is killed may take to close what it has open.
const DYING: Duration = Duration::from_secs(1);

/// A running mount, as its status says.
pub struct RunningMount {
    /// Where it answers.
    pub socket: PathBuf,
    /// See `status::of`.
    pub status: Value,
    /// The process that has bound it, by its number here: it may know itself by another one, and
    /// none is known of one outside of this container.
    pub peer: Option<u32>,
}

impl RunningMount {
    /// The process that serves it.
    pub fn process(&self) -> i64 {
        self.status["pid"].as_i64().unwrap_or(0)
    }
}

/// This user's running mounts: those that answer in his folders, and those in the table of
/// mounts, whatever the environment was when they were made.
pub fn running() -> Vec<RunningMount> {
    let mut sockets = place::own_sockets();
    let user = rustix::process::geteuid().as_raw();
    for mount in mounts::seen_by("self").unwrap_or_default() {
        if mount.is_ours() && mount.user() == Some(user) {
            sockets.extend(place::sockets_of(&mount.device, user));
        }
    }
    let mut found: Vec<RunningMount> =
        sockets.into_iter().filter_map(|s| answering(s, user, Instant::now() + PATIENCE)).collect();
    found.sort_by_key(|r| r.status["mountpoint"].to_string());
    found
}

/// The mount that a process serves, if this user may know; one of them, if it has several.
pub fn of_process(process: u32) -> Option<RunningMount> {
    let user = rustix::process::geteuid().as_raw();
    let name = process.to_string();
    let is_its = |socket: &PathBuf| {
        let file = socket.file_name().unwrap_or_default().to_string_lossy();
        file.strip_prefix(&name).is_some_and(|rest| rest.starts_with(['-', '.']))
    };
    let mut sockets = place::all_sockets().into_iter().filter(is_its);
    sockets.find_map(|s| answering(s, user, Instant::now() + CROWDED))
}

/// Who answers for a mount that the table has.
pub fn serving(mount: &Mount) -> Option<RunningMount> {
    let user = mount.user().unwrap_or(0);
    let mut sockets = place::sockets_of(&mount.device, user).into_iter();
    // One time for all: a user can make any number of sockets for his mount.
    let until = Instant::now() + PATIENCE;
    sockets.find_map(|s| answering(s, user, until).filter(|r| r.status["device"] == mount.device))
}

/// The running mount at a path, which is looked at anew: by the mount that lies there, or where
/// it is in another mount namespace, by what its process says.
///
/// # Errors
/// There is nothing at the path.
pub fn at(path: &Path) -> Result<(PathBuf, Option<RunningMount>)> {
    let place = mounts::at(path).map_err(|e| Usage(format!("{}: {e}", path.display())))?;
    if let Some(mount) = place.mounted() {
        let found = mount.is_ours().then(|| serving(mount)).flatten();
        return Ok((place.path, found));
    }
    let table = mounts::seen_by("self").unwrap_or_default();
    let text = place.path.display().to_string();
    let other_place = running().into_iter().find(|r| {
        r.status["mountpoint"] == text && table.iter().all(|m| r.status["device"] != m.device)
    });
    Ok((place.path, other_place))
}

/// Whether the process of a mount that does not answer is gone, or goes within [`DYING`]: one that
/// is killed closes its socket before the kernel's connection.
pub fn is_gone(at: &Path) -> bool {
    let until = Instant::now() + DYING;
    let mounted = mounts::at(at).ok().and_then(|place| place.mounted().cloned());
    // Of a process that is there and does not answer, nothing of the mount is asked either: over
    // io_uring such a request cannot be ended by a signal.
    let is_served = || mounted.as_ref().is_some_and(|mount| place::is_bound(&mount.device));
    while is_served() || !is_dead(at) {
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// Connects to the listener of a socket until then, if it is root, this user, or `user`, for
/// whom it is asked; the connection and its process. A socket of ours with nobody behind it is
/// removed.
fn reach(socket: &Path, user: u32, until: Instant) -> Option<(UnixStream, Option<u32>)> {
    let users = [0, user, rustix::process::geteuid().as_raw()];
    let path = socket.to_path_buf();
    // Anybody can have bound it, anywhere: the path may lie on a file system that never answers.
    let reached = place::with_deadline(until.min(Instant::now() + CROWDED), move || {
        place::is_socket_of(&path, &users).then(|| connect(&path, until))
    });
    let connection = match reached?? {
        Ok(connection) => connection,
        Err(e) => {
            if e == Errno::CONNREFUSED {
                place::remove_dead(socket);
            }
            return None;
        }
    };
    let peer = connection::peer(&connection).ok()?;
    users.contains(&peer.user).then_some((connection, peer.process))
}

/// The process that listens at a socket, if it is root's, this user's or `user`'s, and the one
/// after which the socket is named.
pub fn listener(socket: PathBuf, user: u32) -> Option<u32> {
    let process = reach(&socket, user, Instant::now() + CROWDED)?.1?;
    let name = socket.file_name()?.to_str()?;
    name.starts_with(&format!("{process}-")).then_some(process)
}

/// Who answers at a socket until then; see [`reach`].
fn answering(socket: PathBuf, user: u32, until: Instant) -> Option<RunningMount> {
    let (connection, peer) = reach(&socket, user, until)?;
    // A process that ends at this moment is not running.
    let answer = question(&connection, &json!({ "do": "status" }), Some(until)).ok()?;
    Some(RunningMount { socket, status: answer["status"].clone(), peer })
}

/// Connects to a socket; where too many wait already, not for long.
fn connect(socket: &Path, until: Instant) -> rustix::io::Result<UnixStream> {
    connection::connect(socket, until.min(Instant::now() + CROWDED))
}

/// Asks a mount's process; an answer that is not `ok` is an error. `None` waits for as long as it
/// takes.
pub fn ask(socket: &Path, request: &Value, until: Option<Instant>) -> Result<Value> {
    let soon = Instant::now() + CROWDED;
    let connection = connect(socket, soon).context("the mount's process is gone")?;
    question(&connection, request, until)
}

/// A request that a mount's process has been sent.
pub struct SentRequest(UnixStream);

/// Sends a request; it is carried out also if nobody waits for the answer.
pub fn send(socket: &Path, request: &Value) -> Result<SentRequest> {
    let soon = Instant::now() + CROWDED;
    let connection = connect(socket, soon).context("the mount's process is gone")?;
    connection::send(&connection, &request.to_string(), Some(soon))?;
    Ok(SentRequest(connection))
}

impl SentRequest {
    /// Waits for the answer, as long as it takes; one that is not `ok` is an error.
    pub fn answer(self) -> Result<Value> {
        answer_to(&self.0, None)
    }
}

/// Asks over a connection; the whole answer must be there in time.
fn question(connection: &UnixStream, request: &Value, until: Option<Instant>) -> Result<Value> {
    connection::send(connection, &request.to_string(), until)?;
    answer_to(connection, until)
}

fn answer_to(connection: &UnixStream, until: Option<Instant>) -> Result<Value> {
    let line =
        connection::receive(connection, until).context("the mount's process does not answer")?;
    let answer: Value = serde_json::from_slice(&line)
        .context("the mount's process has ended without an answer: see its log")?;
    match answer["ok"].as_bool() {
        Some(true) => Ok(answer),
        _ => {
            let what = answer["error"].as_str().unwrap_or("it failed").to_owned();
            let wrongly = answer["used_wrongly"] == true;
            Err(if wrongly { Usage(what).into() } else { anyhow!(what) })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(300)
    }

    #[test]
    fn a_full_door_is_not_waited_at() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let kind = (AddressFamily::UNIX, SocketType::STREAM);
        let door = rustix::net::socket(kind.0, kind.1, None).unwrap();
        rustix::net::bind(&door, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        rustix::net::listen(&door, 0).unwrap();
        let waiting: Vec<_> = (0..4).map_while(|_| connect(&path, soon()).ok()).collect();
        assert!(waiting.len() < 4, "it was never full");
        let start = Instant::now();
        assert_eq!(connect(&path, soon()).unwrap_err(), Errno::AGAIN);
        assert!(answering(path, 0, soon()).is_none());
        assert!(start.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn who_drips_gets_no_more_time() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let dripping = std::thread::spawn(move || {
            while theirs.write_all(b" ").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let start = Instant::now();
        assert!(question(&ours, &json!({ "do": "status" }), Some(soon())).is_err());
        assert!(start.elapsed() < Duration::from_secs(5));
        drop(ours);
        dripping.join().unwrap();
    }
}
