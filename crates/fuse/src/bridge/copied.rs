//! The data of a write request, copied out of the transport's buffer.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};

/// Shorter data gets memory of its own: that is cheap.
const KEPT_MIN: usize = 64 << 10;

/// Copies kept for the next long writes. Most of the many threads wait at any moment: memory for
/// each of them would be for nothing.
const KEPT: usize = 4;

/// Memory of the last long writes: new memory would have to be asked of the kernel, page by page.
static LAST: Mutex<Vec<BytesMut>> = Mutex::new(Vec::new());

fn last() -> MutexGuard<'static, Vec<BytesMut>> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does `work` with a copy of the data. If `work` does not keep it, the next copy comes into the
/// same memory.
pub(super) fn with_copy<T>(data: &[u8], work: impl FnOnce(Bytes) -> T) -> T {
    if data.len() < KEPT_MIN {
        return work(Bytes::copy_from_slice(data));
    }
    let mut memory = last().pop().unwrap_or_default();
    memory.clear();
    memory.extend_from_slice(data);
    let copy = memory.freeze();
    let done = work(copy.clone());
    if let Ok(memory) = copy.try_into_mut() {
        let mut last = last();
        if last.len() < KEPT {
            last.push(memory);
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_is_used_again_unless_it_is_kept() {
        let long = vec![7; KEPT_MIN];
        let at = |data: Bytes| (data.as_ptr().addr(), data.len());
        let first = with_copy(&long, at);
        assert_eq!(with_copy(&long, at), first);
        let kept = with_copy(&long, |data| data);
        let next = with_copy(&vec![8; KEPT_MIN], |data| data);
        assert!(kept.iter().all(|b| *b == 7) && next.iter().all(|b| *b == 8));
    }
}
