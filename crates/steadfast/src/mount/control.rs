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
use steadfast_fuse::MountError;
use steadfast_vfs::FileSystem;

use super::serve::Served;
use super::{place, status, transact};

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
        let path = folder.join(format!("{}.sock", std::process::id()));
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
    if let Some(answer) = transact::answer(request, served) {
        return answer;
    }
    match request["do"].as_str().unwrap_or_default() {
        "status" => Ok(json!({ "status": status::of(served) })),
        "sync" => {
            served.fs.sync()?;
            Ok(json!({}))
        }
        "umount" => {
            match served.unmounter.unmount() {
                Err(e @ MountError::Busy { .. }) => return Err(e.into()),
                Err(e) if place::is_mounted(&served.mountpoint) => return Err(e.into()),
                // Somebody else has taken it away: the flush is what is left to wait for.
                _ => {}
            }
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

/// This user's running mounts. Sockets with nobody behind them are removed.
pub fn running() -> Result<Vec<Running>> {
    let folder = place::runtime_folder().context("the folder for control sockets")?;
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let socket = entry?.path();
        if socket.extension().is_none_or(|e| e != "sock") {
            continue;
        }
        match UnixStream::connect(&socket) {
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionRefused => {
                let _ = std::fs::remove_file(&socket);
                continue;
            }
            Err(_) => continue,
        }
        // A process that ends at this moment is not running.
        let Ok(answer) = ask(&socket, &json!({ "do": "status" }), Some(PATIENCE)) else { continue };
        found.push(Running { socket, status: answer["status"].clone() });
    }
    found.sort_by_key(|r| r.status["mountpoint"].to_string());
    Ok(found)
}

/// The running mount at `mountpoint`.
pub fn at(mountpoint: &Path) -> Result<Option<Running>> {
    let text = mountpoint.display().to_string();
    Ok(running()?.into_iter().find(|r| r.status["mountpoint"] == text))
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
