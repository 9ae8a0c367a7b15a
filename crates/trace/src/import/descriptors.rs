//! The descriptors of processes: what dup(2) and fork(2) share, and when the last one is closed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Descriptors that are copied together when one of them changes in a process that shares them.
const BLOCK: usize = 64;

/// Handles that no descriptor leads to any more.
pub(super) type EndedHandles = Rc<RefCell<Vec<u64>>>;

/// An open file, as long as a descriptor leads to it.
pub(super) struct OpenHandle {
    pub handle: u64,
    ended: EndedHandles,
}

impl OpenHandle {
    pub fn new(handle: u64, ended: &EndedHandles) -> Rc<OpenHandle> {
        Rc::new(OpenHandle { handle, ended: Rc::clone(ended) })
    }
}

impl Drop for OpenHandle {
    fn drop(&mut self) {
        self.ended.borrow_mut().push(self.handle);
    }
}

/// A descriptor.
#[derive(Clone)]
pub(super) struct Descriptor {
    pub open: Rc<OpenHandle>,
    /// FD_CLOEXEC.
    pub ends_with_exec: bool,
}

type DescriptorBlock = Vec<Option<Descriptor>>;

/// The descriptors of a process. A copy shares what neither has changed since.
#[derive(Clone, Default)]
pub(super) struct DescriptorTable(Rc<BTreeMap<usize, Rc<DescriptorBlock>>>);

impl DescriptorTable {
    pub fn get(&self, fd: usize) -> Option<&Descriptor> {
        self.0.get(&(fd / BLOCK))?.get(fd % BLOCK)?.as_ref()
    }

    /// A descriptor is this from now on, or closed.
    pub fn set(&mut self, fd: usize, descriptor: Option<Descriptor>) {
        if descriptor.is_none() && self.get(fd).is_none() {
            return;
        }
        let blocks = Rc::make_mut(&mut self.0);
        let block = Rc::make_mut(blocks.entry(fd / BLOCK).or_default());
        if block.len() < BLOCK {
            block.resize(BLOCK, None);
        }
        // OK to index: the block has so many.
        block[fd % BLOCK] = descriptor;
        if block.iter().all(Option::is_none) {
            blocks.remove(&(fd / BLOCK));
        }
    }

    /// The open descriptors of a range.
    pub fn within(&self, first: usize, last: usize) -> Vec<usize> {
        let blocks = first / BLOCK..=last / BLOCK;
        if blocks.is_empty() {
            return Vec::new();
        }
        let all = self.0.range(blocks).flat_map(|(number, block)| {
            let numbered = (number * BLOCK..).zip(block.iter());
            numbered.filter(|(_, descriptor)| descriptor.is_some()).map(|(fd, _)| fd)
        });
        all.filter(|fd| (first..=last).contains(fd)).collect()
    }

    /// Those that an execve(2) closes.
    pub fn end_with_exec(&mut self) {
        for fd in self.within(0, usize::MAX) {
            if self.get(fd).is_some_and(|descriptor| descriptor.ends_with_exec) {
                self.set(fd, None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_ends_with_its_last_descriptor() {
        let ended = EndedHandles::default();
        let open = |handle, ends_with_exec| {
            Some(Descriptor { open: OpenHandle::new(handle, &ended), ends_with_exec })
        };
        let mut parent = DescriptorTable::default();
        parent.set(3, open(1, false));
        parent.set(70, open(2, true));
        parent.set(2_000_000_000, open(3, true));
        let dup = parent.get(3).cloned();
        parent.set(4, dup);
        let mut child = parent.clone();
        parent.set(3, None);
        parent.set(4, None);
        parent.set(70, None);
        assert!(ended.borrow().is_empty());
        assert_eq!((parent.within(0, usize::MAX).len(), child.within(4, 70)), (1, vec![4, 70]));
        child.end_with_exec();
        assert_eq!(*ended.borrow(), [2]);
        child.set(3, None);
        assert_eq!(*ended.borrow(), [2]);
        drop(child);
        assert_eq!(*ended.borrow(), [2, 1]);
        drop(parent);
        assert_eq!(*ended.borrow(), [2, 1, 3]);
    }
}
