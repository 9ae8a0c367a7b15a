//! The control socket of a mount: one request and one answer a connection, each a line of JSON.
//!
//! A request is `{"do": "VERB", ...}`, an answer `{"ok": true, ...}` or `{"ok": false, "error":
//! "..."}`. A new verb is a new arm of [`answer`].

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};
use steadfast_fuse::mounts::{self, Mount};
use steadfast_vfs::FileSystem;

use super::serve::Served;
use super::{place, remount, status, transact};
use crate::Usage;

/// Longest request and answer in bytes.
const LINE_MAX: u64 = 1 << 20;
/// How long a mount may take to answer a question.
const PATIENCE: Duration = Duration::from_secs(30);

/// The listening socket; its file goes with it.
pub struct Socket {
    path: PathBuf,
    busy: Arc<AtomicUsize>,
}

impl Socket {
    /// Listens in `folder` and answers for `served`.
    pub fn open(folder: &Path, served: &Arc<Served>) -> Result<Socket> {
        let name = place::socket_name(std::process::id(), served.device.as_deref());
        let path = folder.join(name);
        // Left behind by a dead process that had our number.
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path)
            .with_context(|| format!("control socket {}", path.display()))?;
        let busy = Arc::new(AtomicUsize::new(0));
        let (served, counter) = (Arc::clone(served), Arc::clone(&busy));
        std::thread::Builder::new().name("control".into()).spawn(move || {
            for connection in listener.incoming().flatten() {
                let (served, counter) = (Arc::clone(&served), Arc::clone(&counter));
                counter.fetch_add(1, Ordering::AcqRel);
                let answering = std::thread::Builder::new().name("control".into());
                let started = answering.spawn({
                    let counter = Arc::clone(&counter);
                    move || {
                        // Who does not listen to the answer misses it.
                        let _ = converse(&connection, &served);
                        counter.fetch_sub(1, Ordering::AcqRel);
                    }
                });
                if started.is_err() {
                    counter.fetch_sub(1, Ordering::AcqRel);
                }
            }
        })?;
        Ok(Socket { path, busy })
    }

    /// Stops listening, once the answers that are on their way have gone, or after `patience`.
    pub fn close(self, patience: Duration) {
        let until = Instant::now() + patience;
        while self.busy.load(Ordering::Acquire) > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // OK to ignore: whoever finds it finds nobody behind it and removes it.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn converse(mut connection: &UnixStream, served: &Served) -> Result<()> {
    connection.set_read_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(connection.take(LINE_MAX)).read_line(&mut line)?;
    let request = serde_json::from_str(&line).context("a request that is not JSON");
    let answered = request.and_then(|request| answer(&request, served));
    let mut reply = answered.unwrap_or_else(|e| json!({ "ok": false, "error": format!("{e:#}") }));
    if let Some(fields) = reply.as_object_mut() {
        fields.entry("ok").or_insert(Value::Bool(true));
    }
    writeln!(connection, "{reply}")?;
    Ok(())
}

/// Does what a request asks for. Its answer's fields; `ok` is added.
fn answer(request: &Value, served: &Served) -> Result<Value> {
    let by_others = transact::answer(request, served).or_else(|| remount::answer(request, served));
    if let Some(answer) = by_others {
        return answer;
    }
    match request["do"].as_str().unwrap_or_default() {
        "status" => Ok(json!({ "status": status::of(served) })),
        "sync" => {
            served.fs.sync()?;
            Ok(json!({}))
        }
        "umount" => {
            let at = request["at"].as_str().map_or(served.mountpoint.as_path(), Path::new);
            // Where somebody else has taken it away, the flush is what is left to wait for.
            served.unmounter.unmount_at(at)?;
            served.wait().map_err(|e| anyhow!(e))?;
            Ok(json!({ "note": served.note() }))
        }
        verb => Err(anyhow!("this mount's process does not know how to '{verb}'")),
    }
}

/// A running mount, as its status says.
pub struct Running {
    /// Where it answers.
    pub socket: PathBuf,
    /// See [`status::of`].
    pub status: Value,
}

impl Running {
    /// The process that serves it.
    pub fn process(&self) -> i64 {
        self.status["pid"].as_i64().unwrap_or(0)
    }
}

/// This user's running mounts: those that answer in his folders, and those in the table of
/// mounts, whatever the environment was when they were made.
pub fn running() -> Vec<Running> {
    let mut sockets = place::own_sockets();
    let user = rustix::process::geteuid().as_raw();
    for mount in mounts::seen_by("self").unwrap_or_default() {
        if mount.is_ours() && mount.user() == Some(user) {
            sockets.extend(place::sockets_of(&mount.device, user));
        }
    }
    sockets.sort();
    sockets.dedup();
    let mut found: Vec<Running> = sockets.into_iter().filter_map(|s| answering(s, user)).collect();
    found.sort_by_key(|r| r.status["mountpoint"].to_string());
    found
}

/// Who answers for a mount that the table has.
pub fn serving(mount: &Mount) -> Option<Running> {
    let user = mount.user().unwrap_or(0);
    let mut sockets = place::sockets_of(&mount.device, user).into_iter();
    sockets.find_map(|s| answering(s, user).filter(|r| r.status["device"] == mount.device))
}

/// The running mount at a path, which is looked at anew: by the mount that lies there, or where
/// it is in another mount namespace, by what its process says.
///
/// # Errors
/// There is nothing at the path.
pub fn at(path: &Path) -> Result<(PathBuf, Option<Running>)> {
    let place = mounts::at(path).map_err(|e| Usage(format!("{}: {e}", path.display())))?;
    if let Some(mount) = place.mounted() {
        let found = mount.is_ours().then(|| serving(mount)).flatten();
        return Ok((place.path, found));
    }
    let table = mounts::seen_by("self").unwrap_or_default();
    let text = place.path.display().to_string();
    let elsewhere = running().into_iter().find(|r| {
        r.status["mountpoint"] == text && table.iter().all(|m| r.status["device"] != m.device)
    });
    Ok((place.path, elsewhere))
}

/// Who answers at a socket, if it is root, this user, or `user`, for whom it is asked. A socket
/// with nobody behind it is removed.
fn answering(socket: PathBuf, user: u32) -> Option<Running> {
    let connection = match UnixStream::connect(&socket) {
        Ok(connection) => connection,
        Err(e) => {
            if e.kind() == std::io::ErrorKind::ConnectionRefused {
                // OK to ignore: it is another's, then.
                let _ = std::fs::remove_file(&socket);
            }
            return None;
        }
    };
    let peer = rustix::net::sockopt::socket_peercred(&connection).ok()?.uid.as_raw();
    if ![0, user, rustix::process::geteuid().as_raw()].contains(&peer) {
        return None;
    }
    // A process that ends at this moment is not running.
    let answer = ask(&socket, &json!({ "do": "status" }), Some(PATIENCE)).ok()?;
    Some(Running { socket, status: answer["status"].clone() })
}

/// Asks a mount's process; an answer that is not `ok` is an error. `patience`: `None` waits for as
/// long as it takes.
pub fn ask(socket: &Path, request: &Value, patience: Option<Duration>) -> Result<Value> {
    let mut connection = UnixStream::connect(socket).context("the mount's process is gone")?;
    connection.set_read_timeout(patience)?;
    writeln!(connection, "{request}")?;
    let mut line = String::new();
    BufReader::new((&connection).take(LINE_MAX)).read_line(&mut line)?;
    let answer: Value = serde_json::from_str(&line)
        .context("the mount's process has ended without an answer: see its log")?;
    match answer["ok"].as_bool() {
        Some(true) => Ok(answer),
        _ => Err(anyhow!(answer["error"].as_str().unwrap_or("it failed").to_owned())),
    }
}
