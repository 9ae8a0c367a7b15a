//! Requests that are split into several, with one completion.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, BlockError, Completer, Completion, Request, Result};
use steadfast_runtime::Mutex;

/// A piece of a read: its bytes' place in the answer, and their completion.
pub(crate) struct Piece {
    /// Byte in the answer.
    pub at: usize,
    /// The answer of the device.
    pub completion: Completion,
}

/// A part of a request.
pub(crate) struct Part<'a> {
    pub device: &'a Arc<dyn BlockDevice>,
    /// Byte of the device.
    pub at: u64,
    /// Which bytes of the request.
    pub bytes: Range<u64>,
}

/// Sends the parts of a request to their devices.
pub(crate) fn submit_parts(parts: &[Part<'_>], request: &Request) -> Completion {
    let submit = |part: &Part<'_>| {
        let (offset, len) = (part.at, part.bytes.end - part.bytes.start);
        part.device.submit(match request {
            Request::Read { .. } => Request::Read { offset, len },
            Request::Write { data, fua, .. } => {
                let data = data.slice(part.bytes.start as usize, len as usize);
                Request::Write { offset, data, fua: *fua }
            }
            Request::Discard { .. } => Request::Discard { offset, len },
            Request::Flush => Request::Flush,
        })
    };
    match (parts, request) {
        ([only], _) => submit(only),
        (_, Request::Read { len, .. }) => {
            let piece =
                |part: &Part<'_>| Piece { at: part.bytes.start as usize, completion: submit(part) };
            joined_read(*len as usize, parts.iter().map(piece).collect())
        }
        _ => joined(parts.iter().map(submit).collect()),
    }
}

struct Gather {
    left: usize,
    out: Vec<u8>,
    error: Option<BlockError>,
    completer: Option<Completer>,
}

/// Completes when all pieces have: with their bytes in place, or the error that came first.
pub(crate) fn joined_read(len: usize, pieces: Vec<Piece>) -> Completion {
    gathered(vec![0; len], pieces)
}

/// Completes when all have, with the error that came first, if any.
pub(crate) fn joined(all: Vec<Completion>) -> Completion {
    let pieces = all.into_iter().map(|completion| Piece { at: 0, completion }).collect();
    gathered(Vec::new(), pieces)
}

fn gathered(out: Vec<u8>, pieces: Vec<Piece>) -> Completion {
    if pieces.is_empty() {
        return Completion::ready(Ok(out.into()));
    }
    let (completer, completion) = Completion::pending();
    let gather = Gather { left: pieces.len(), out, error: None, completer: Some(completer) };
    let gather = Arc::new(Mutex::new(gather));
    for Piece { at, completion } in pieces {
        let gather = Arc::clone(&gather);
        completion.on_done(move |answer| arrived(&gather, at, answer));
    }
    completion
}

fn arrived(gather: &Mutex<Gather>, at: usize, answer: &Result<Bytes>) {
    let mut all = gather.lock();
    match answer {
        Ok(bytes) => {
            if let Some(out) = all.out.get_mut(at..at + bytes.len()) {
                out.copy_from_slice(bytes);
            }
        }
        Err(error) => {
            all.error.get_or_insert(error.clone());
        }
    }
    all.left -= 1;
    if all.left > 0 {
        return;
    }
    let (out, error) = (std::mem::take(&mut all.out), all.error.take());
    let completer = all.completer.take();
    drop(all);
    if let Some(completer) = completer {
        completer.complete(error.map_or(Ok(out.into()), Err));
    }
}
