//! The data of a write request, copied out of the library's buffer.

use std::cell::RefCell;

use bytes::{Bytes, BytesMut};

/// Shorter data gets memory of its own: that is cheap.
const KEPT_MIN: usize = 64 << 10;

thread_local! {
    /// Memory of this thread's last long write: new memory would have to be asked of the kernel,
    /// page by page.
    static LAST: RefCell<BytesMut> = RefCell::new(BytesMut::new());
}

/// Does `work` with a copy of the data. If `work` does not keep it, the next copy comes into the
/// same memory; one request's worth for each thread stays.
pub(super) fn with_copy<T>(data: &[u8], work: impl FnOnce(Bytes) -> T) -> T {
    if data.len() < KEPT_MIN {
        return work(Bytes::copy_from_slice(data));
    }
    let mut memory = LAST.take();
    memory.clear();
    memory.extend_from_slice(data);
    let copy = memory.freeze();
    let done = work(copy.clone());
    if let Ok(memory) = copy.try_into_mut() {
        LAST.set(memory);
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
