//! What goes wrong in the background of a mount: a line in the log when it happens, the mount's
//! status while it lasts, the end's exit status.

use std::sync::Arc;

use serde_json::{Value, json};
use steadfast_ext4::fs::Ext4;
use steadfast_ext4::meta::{Trouble, UnwrittenPart};
use steadfast_fuse::ErrorLog;

use super::serve::Served;

/// Parts of files that a status and the last word of a mount name.
const PARTS_MAX: usize = 16;

/// Has everything logged that goes wrong where nobody waits for an answer.
pub fn log(fs: &Arc<Ext4>, source: &str) -> Arc<ErrorLog> {
    let errors = Arc::new(ErrorLog::new(source));
    let (log, of) = (Arc::clone(&errors), Arc::downgrade(fs));
    fs.on_trouble(move |trouble| match trouble {
        Trouble::Unwritten { part, error } => {
            log.error("write-back", &error.to_string(), || {
                let fate = if part.kept {
                    "it is in memory only, and written again by fsync and by unmounting"
                } else {
                    "it is lost"
                };
                let path = of.upgrade().and_then(|fs| path(&fs, part));
                format!("{} could not be written: {error}: {fate}", name(part, path))
            });
        }
        Trouble::NoPoints { error } => {
            log.error("transaction point", &error.to_string(), || error.to_string());
        }
        Trouble::ReadOnly { why } => {
            log.error("read-only", why, || format!("is read-only from now on: {why}"));
        }
    });
    errors
}

fn path(fs: &Ext4, part: &UnwrittenPart) -> Option<String> {
    fs.path_of(part.inode).map(|path| String::from_utf8_lossy(&path).into_owned())
}

/// `/d/f (inode 13), bytes 0 to 4095`.
fn name(part: &UnwrittenPart, path: Option<String>) -> String {
    let (inode, first, last) = (part.inode, part.bytes.start, part.bytes.end.saturating_sub(1));
    let file = match path {
        Some(path) => format!("{path} (inode {inode})"),
        None => format!("inode {inode}"),
    };
    format!("{file}, bytes {first} to {last},")
}

/// What is not on the device as it was written, for the status.
pub fn unwritten(fs: &Ext4) -> Value {
    let parts = fs.unwritten(PARTS_MAX);
    parts
        .iter()
        .map(|part| {
            json!({
                "path": path(fs, part),
                "inode": part.inode.0,
                "from": part.bytes.start,
                "to": part.bytes.end,
                "lost": !part.kept,
            })
        })
        .collect()
}

/// A line of the status for each of them.
pub fn lines(unwritten: &Value) -> Vec<String> {
    let parts = unwritten.as_array().map(Vec::as_slice).unwrap_or_default();
    parts
        .iter()
        .map(|part| {
            let file = match part["path"].as_str() {
                Some(path) => path.to_owned(),
                None => format!("inode {}", part["inode"]),
            };
            let last = part["to"].as_u64().unwrap_or(0).saturating_sub(1);
            let fate = if part["lost"] == true { "lost" } else { "in memory only" };
            format!("{fate}: {file}, bytes {} to {last}", part["from"])
        })
        .collect()
}

/// What there is to say of failed writes at the end; `None` if there were none.
pub fn last_word(served: &Served) -> Option<String> {
    let fs = &served.fs;
    let failed = fs.page_cache().stats().failed_writes;
    if failed == 0 {
        return None;
    }
    let lost: Vec<String> = fs
        .unwritten(PARTS_MAX)
        .iter()
        .map(|part| name(part, path(fs, part)).trim_end_matches(',').to_owned())
        .collect();
    let outcome = match lost.is_empty() {
        true => "what they were to write was written later or given up".to_owned(),
        false => format!("lost: {}", lost.join("; ")),
    };
    Some(format!("{}: {failed} writes of data failed; {outcome}", served.source))
}
