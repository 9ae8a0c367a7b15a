//! Findings in words: what was done, when, what was promised, and what is there now.

use steadfast_block::pattern::{self, SECTOR};
use steadfast_devices::filter::record::Moment;

use crate::account::{Action, Binding, Object, Operation};
use crate::judge::FileLoss;
use crate::program::{Call, CallKind};
use crate::tree::shown;

/// A promise about a name that was not kept.
pub fn broken_name(path: &str, by: &Call, promised: &Binding, held: Option<&[u8]>) -> String {
    let now = match held {
        None => "there is nothing of that name".to_owned(),
        Some([]) => "there is an empty file".to_owned(),
        Some(held) => format!("there is {}", sample(held, 0)),
    };
    undone(path, by, promised, &now)
}

/// A file that had a promised name and has none any more.
pub fn lost_by_rename(old: &str, by: &Call, promised: &Binding, path: &str) -> String {
    let now = format!("the file is neither there nor at {path}, which is what it was last called");
    undone(old, by, promised, &now)
}

fn undone(path: &str, by: &Call, promised: &Binding, now: &str) -> String {
    let promised = promised_at(promised.durable);
    format!("{path}: {}, promised {promised}, is undone: {now}", naming(by))
}

/// A rename that is there without what had been written before.
pub fn empty_after_rename(path: &str, rename: &Call, write: &Operation, held: &[u8]) -> String {
    let (what, offset) = operation(write);
    format!(
        "{path}: empty after rename: {} is there, but not {what}, which had returned before: \
         there is {}",
        naming(rename),
        sample(held, offset)
    )
}

/// What is wrong with what a file holds.
pub fn contents(path: &str, ops: &[Operation], loss: &FileLoss, held: &[u8]) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(first) = loss.broken.first() {
        let (what, offset) = operation(&ops[*first]);
        words.push(format!(
            "{path}: {what}, promised {}, is missing, and {} more like it: there is {}",
            promised_at(ops[*first].durable),
            loss.broken.len() - 1,
            sample(held, offset)
        ));
    }
    if loss.stale_bytes > 0 {
        words.push(format!(
            "{path}: {} bytes that were never written there: {}",
            loss.stale_bytes,
            stale_sample(held, ops)
        ));
    }
    words
}

fn naming(call: &Call) -> String {
    let (path, other) = (shown(&call.path), shown(&call.other));
    let what = match call.kind {
        CallKind::Rename => format!("the rename of {path} to {other}"),
        CallKind::Link => format!("the link {other} to {path}"),
        CallKind::Unlink => format!("the removal of {path}"),
        _ => format!("the creation of {path}"),
    };
    format!("{what}, called at {:?}", call.started.at)
}

/// What it was, and where its first byte belongs.
fn operation(op: &Operation) -> (String, u64) {
    let offset = match op.action {
        Action::Write { offset, .. } => offset,
        action => action.cleared().map_or(0, |(from, _)| from),
    };
    (format!("{}, called at {:?}", op.action, op.started.at), offset)
}

fn promised_at(from: Option<Moment>) -> String {
    from.map_or("never".into(), |from| format!("at {:?}", from.at))
}

/// What is at a place of a file.
fn sample(held: &[u8], offset: u64) -> String {
    let from = usize::try_from(offset).unwrap_or(usize::MAX);
    let Some(bytes) = held.get(from..).filter(|rest| !rest.is_empty()) else {
        return format!("the file's end at {}", held.len());
    };
    let bytes = &bytes[..bytes.len().min(SECTOR)];
    if bytes.iter().all(|b| *b == 0) {
        return "a zero at its place".into();
    }
    match pattern::stamp_of(bytes) {
        Some(stamp) if Object::of_tag(stamp.tag) == Object::BEFORE => {
            "what the disk held before the file system was made".into()
        }
        Some(stamp) => format!(
            "data of file {}, write {}, for offset {}",
            Object::of_tag(stamp.tag).0,
            stamp.tag & 0xffff_ffff,
            stamp.position
        ),
        None => "something that no call wrote".into(),
    }
}

/// The first sector that is not of these operations, in words.
fn stale_sample(held: &[u8], ops: &[Operation]) -> String {
    let ours = |sector: &[u8], at: u64| {
        let zeros = sector.iter().all(|b| *b == 0);
        let written = pattern::stamp_of(sector).is_some_and(|s| {
            s.position == at
                && ops
                    .iter()
                    .any(|op| matches!(op.action, Action::Write { tag, .. } if tag == s.tag))
        });
        zeros || written
    };
    (0u64..)
        .step_by(SECTOR)
        .zip(held.chunks(SECTOR))
        .find(|(at, sector)| !ours(sector, *at))
        .map_or("the stamps are of other places".into(), |(at, _)| {
            format!("at {at} {}", sample(held, at))
        })
}
