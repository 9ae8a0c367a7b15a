//! The serving half of a mount's control socket: who asks it is [`control`](super::control).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};
use steadfast_host::mounts;
use steadfast_stack::listener::{Listener, bind_private};
use steadfast_vfs::FileSystem;

use super::served::ServedMount;
use super::{place, remount, status, transact};
use crate::Usage;

/// The listening socket; its file goes with it.
pub struct Socket(Listener);

impl Socket {
    /// Whether a socket can be made in `folder`, by making one of the longest name.
    pub fn check(folder: &Path) -> Result<()> {
        let name = place::socket_name(std::process::id(), Some("0:1048575"));
        let path = folder.join(name);
        let failed = || format!("control socket {}", path.display());
        let listening = bind_private(&path).with_context(failed)?;
        // While somebody listens no `status` takes it for one that a dead process has left.
        let removed = std::fs::remove_file(&path);
        drop(listening);
        removed.with_context(failed)
    }

    /// Listens in `folder`, for this user and root alone, and answers for `served`.
    pub fn open(folder: &Path, served: &Arc<ServedMount>) -> Result<Socket> {
        let name = place::socket_name(std::process::id(), served.device.as_deref());
        let path = folder.join(name);
        let failed = || format!("control socket {}", path.display());
        // One that a dead process of our number has left behind is replaced.
        let listener = bind_private(&path).with_context(failed)?;
        let served = Arc::clone(served);
        let behind = move |line: &[u8]| replied(line, &served);
        Ok(Socket(Listener::open(listener, &path, Arc::new(behind)).with_context(failed)?))
    }

    /// Stops listening, once the answers that are on their way have gone, or after `patience`.
    pub fn close(self, patience: Duration) {
        self.0.close(patience);
    }
}

fn replied(line: &[u8], served: &ServedMount) -> Value {
    let request = serde_json::from_slice(line).context("a request that is not JSON");
    let answered = request.and_then(|request| answer(&request, served));
    let mut reply = answered.unwrap_or_else(|e| {
        let wrongly = e.downcast_ref::<Usage>().is_some();
        json!({ "ok": false, "error": format!("{e:#}"), "used_wrongly": wrongly })
    });
    if let Some(fields) = reply.as_object_mut() {
        fields.entry("ok").or_insert(Value::Bool(true));
    }
    reply
}

/// A path of a request: text, or bytes.
fn path_of(word: &Value) -> Option<PathBuf> {
    let bytes = || -> Option<Vec<u8>> {
        word.as_array()?.iter().map(|b| u8::try_from(b.as_u64()?).ok()).collect()
    };
    word.as_str().map(PathBuf::from).or_else(|| Some(PathBuf::from(OsString::from_vec(bytes()?))))
}

/// Whether a mount is in this process's namespace of mounts; a path says nothing of another one. A
/// table that cannot be read shows all.
fn is_seen(mount: u64) -> bool {
    mounts::seen_by("self").map_or(true, |all| all.iter().any(|m| m.id == mount))
}

/// Does what a request asks for. Its answer's fields; `ok` is added.
fn answer(request: &Value, served: &ServedMount) -> Result<Value> {
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
            let at = path_of(&request["at"]).unwrap_or_else(|| served.mountpoint.clone());
            if request["mount"].as_u64().is_some_and(|id| !is_seen(id)) {
                return Ok(json!({ "elsewhere": true }));
            }
            // Where somebody else has taken it away, the flush is what is left to wait for.
            served.unmounter.unmount_at(&at)?;
            served.wait().map_err(|e| anyhow!(e))?;
            Ok(json!({ "note": served.note(), "stays": served.stays }))
        }
        verb => Err(anyhow!("this mount's process does not know how to '{verb}'")),
    }
}
