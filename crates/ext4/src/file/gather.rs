//! Several reads as one.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use steadfast_block::{BlockError, Completer, Completion, Payload};

/// Where `len` bytes of an answer come from; only the first `keep` of them count, the rest are
/// zeros.
pub(crate) enum Source {
    Zeros(usize),
    Bytes { bytes: Bytes, len: usize, keep: usize },
    Device { completion: Completion, len: usize, keep: usize },
}

struct Gathering {
    parts: Vec<Option<Bytes>>,
    missing: usize,
    error: Option<BlockError>,
    completer: Option<Completer>,
}

impl Gathering {
    /// One more is missing than asked for: nothing is answered before all have been asked.
    fn shared(parts: usize, asked: usize, completer: Completer) -> Arc<Mutex<Self>> {
        let (parts, missing) = (vec![None; parts], asked + 1);
        Arc::new(Mutex::new(Gathering { parts, missing, error: None, completer: Some(completer) }))
    }
}

/// One answer: the sources' bytes in order.
pub(crate) fn gather(mut sources: Vec<Source>) -> Completion {
    if let [Source::Device { completion, len, keep }] = sources.as_slice()
        && keep == len
        && len.is_multiple_of(4096)
    {
        return completion.clone();
    }
    let (completer, answer) = Completion::pending();
    let missing = sources.iter().filter(|s| matches!(s, Source::Device { .. })).count();
    let shared = Gathering::shared(sources.len(), missing, completer);
    for (i, source) in sources.drain(..).enumerate() {
        match source {
            Source::Zeros(len) => put(&shared, i, cut(Bytes::new(), 0, len)),
            Source::Bytes { bytes, len, keep } => put(&shared, i, cut(bytes, keep, len)),
            Source::Device { completion, len, keep } => {
                let shared = Arc::clone(&shared);
                completion.on_done(move |result| {
                    if let Ok(bytes) = result {
                        put(&shared, i, cut(bytes.clone(), keep, len));
                    }
                    arrived(&shared, result.as_ref().err());
                });
            }
        }
    }
    arrived(&shared, None);
    answer
}

fn put(shared: &Mutex<Gathering>, i: usize, bytes: Bytes) {
    shared.lock().unwrap_or_else(PoisonError::into_inner).parts[i] = Some(bytes);
}

fn arrived(shared: &Mutex<Gathering>, error: Option<&BlockError>) {
    let mut g = shared.lock().unwrap_or_else(PoisonError::into_inner);
    g.error = g.error.take().or_else(|| error.cloned());
    g.missing -= 1;
    if g.missing > 0 {
        return;
    }
    let completer = g.completer.take();
    let result = match g.error.take() {
        Some(e) => Err(e),
        // Copied only if there are several.
        None => Ok(g.parts.drain(..).flatten().collect::<Payload>().into_contiguous()),
    };
    drop(g);
    if let Some(completer) = completer {
        completer.complete(result);
    }
}

/// Answers `completer` when all writes are done: with the first error, if there is one.
pub(crate) fn when_all(writes: &[Completion], completer: Completer) {
    let shared = Gathering::shared(0, writes.len(), completer);
    for write in writes {
        let shared = Arc::clone(&shared);
        write.on_done(move |result| arrived(&shared, result.as_ref().err()));
    }
    arrived(&shared, None);
}

/// The first `keep` bytes, then zeros up to `len`.
fn cut(bytes: Bytes, keep: usize, len: usize) -> Bytes {
    if keep == len {
        return bytes.slice(..len);
    }
    let mut out = BytesMut::zeroed(len);
    out[..keep].copy_from_slice(&bytes[..keep]);
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_in_order_and_tails_are_zeros() {
        let (late, completion) = Completion::pending();
        let answer = gather(vec![
            Source::Zeros(2),
            Source::Device { completion, len: 4, keep: 3 },
            Source::Bytes { bytes: Bytes::from_static(b"xyz"), len: 3, keep: 3 },
        ]);
        assert!(!answer.is_done());
        late.complete(Ok(Bytes::from_static(b"abcd")));
        assert_eq!(answer.wait(), Ok(Bytes::from_static(b"\0\0abc\0xyz")));
        assert_eq!(gather(vec![]).wait(), Ok(Bytes::new()));
    }

    #[test]
    fn an_error_is_the_answer() {
        let (late, completion) = Completion::pending();
        let answer = gather(vec![Source::Zeros(1), Source::Device { completion, len: 1, keep: 1 }]);
        drop(late);
        assert!(matches!(answer.wait(), Err(BlockError::Gone { .. })));
    }
}
