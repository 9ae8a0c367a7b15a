//! A memory below that fails.

use std::ops::Range;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use steadfast_block::{BlockError, Completion, DeviceInfo, DirectMemory, Request};
use steadfast_runtime::Mutex;

use super::*;

/// Fails the store of a number, and loads and stores of a range until it is written by a request.
struct Failing {
    next: Device,
    /// Stores until one fails; below zero: no more.
    stores: AtomicI64,
    poison: Mutex<Range<u64>>,
    read_only: bool,
}

impl Failing {
    fn over(next: &Device) -> Arc<Failing> {
        Arc::new(Failing {
            next: Arc::clone(next),
            stores: AtomicI64::new(-1),
            poison: Mutex::new(0..0),
            read_only: false,
        })
    }

    fn memory(&self) -> &dyn DirectMemory {
        self.next.direct_memory().unwrap()
    }

    fn poisoned(&self, op: &'static str, offset: u64, len: usize) -> steadfast_block::Result<()> {
        let poison = self.poison.lock();
        if offset < poison.end && poison.start < offset + len as u64 {
            return Err(failed(op, offset));
        }
        Ok(())
    }
}

fn failed(op: &'static str, offset: u64) -> BlockError {
    BlockError::Io { device: "pmem0".into(), op, offset, reason: "memory error".into() }
}

impl BlockDevice for Failing {
    fn info(&self) -> DeviceInfo {
        DeviceInfo { read_only: self.read_only, ..self.next.info() }
    }

    fn submit(&self, request: Request) -> Completion {
        if let (Request::Write { .. }, Some((offset, len))) = (&request, request.range()) {
            let mut poison = self.poison.lock();
            if offset <= poison.start && poison.end <= offset + len {
                *poison = 0..0;
            } else if offset < poison.end && poison.start < offset + len {
                return Completion::ready(Err(failed("write", offset)));
            }
        }
        self.next.submit(request)
    }

    fn direct_memory(&self) -> Option<&dyn DirectMemory> {
        Some(self)
    }
}

impl DirectMemory for Failing {
    fn load(&self, offset: u64, out: &mut [u8]) -> steadfast_block::Result<()> {
        self.poisoned("load", offset, out.len())?;
        self.memory().load(offset, out)
    }

    fn store(&self, offset: u64, data: &[u8]) -> steadfast_block::Result<()> {
        if self.stores.fetch_sub(1, Relaxed) == 0 {
            return Err(failed("store", offset));
        }
        self.poisoned("store", offset, data.len())?;
        self.memory().store(offset, data)
    }

    fn persist(&self, offset: u64, len: u64) -> steadfast_block::Result<()> {
        self.memory().persist(offset, len)
    }

    fn fence(&self) -> steadfast_block::Result<()> {
        self.memory().fence()
    }
}

/// A namespace with sector 0 written, over a memory that is whole yet.
fn ready() -> (Device, Arc<Failing>, Btt) {
    let (memory, btt) = made(Options { nfree: 2, ..Options::default() });
    btt.write(0, vec![1; 4096].into()).unwrap();
    drop(btt);
    let failing = Failing::over(&memory);
    let below: Device = failing.clone();
    let btt = open(&below).unwrap();
    (memory, failing, btt)
}

#[test]
fn after_a_failed_store_to_the_tables_nothing_more_is_written() {
    // The halves of the flog entry, and the map.
    for store in 1..=3 {
        let (memory, failing, btt) = ready();
        failing.stores.store(store, Relaxed);
        let error = btt.write(0, vec![2; 4096].into()).unwrap_err();
        failing.stores.store(-1, Relaxed);
        assert_eq!(btt.write(4096, vec![3; 4096].into()), Err(error));
        let found = btt.read(0, 4096).unwrap();
        assert!(found == vec![1; 4096], "what was read before the power cut");
        // Whoever opens it again sees what has happened.
        let report = check(&*memory).unwrap();
        assert!(report.is_good());
        assert_eq!(report.interrupted, u64::from(store == 3));
        let btt = open(&memory).unwrap();
        let version = if store == 3 { 2 } else { 1 };
        assert_eq!(btt.read(0, 4096).unwrap(), vec![version; 4096]);
        btt.write(0, vec![4; 4096].into()).unwrap();
        assert!(check(&*memory).unwrap().is_good());
    }
}

#[test]
fn a_free_block_with_poison_is_written_by_a_request() {
    let (memory, failing, btt) = ready();
    let found = arena(&memory);
    // Sector 0 was in block 0 before it was written.
    let at = found.at + found.info.layout.block_at(0);
    *failing.poison.lock() = at + 64..at + 128;
    for tag in 1..4 {
        btt.write(4096, vec![tag; 4096].into()).unwrap();
    }
    assert!(failing.poison.lock().is_empty());
    assert_eq!(btt.read(4096, 4096).unwrap(), vec![3; 4096]);
    assert!(check(&*memory).unwrap().is_good());
}

#[test]
fn a_free_block_that_cannot_be_written_is_not_used_again() {
    let (memory, failing, btt) = ready();
    let found = arena(&memory);
    let at = found.at + found.info.layout.block_at(0);
    // More than a request for one block writes.
    *failing.poison.lock() = at - 1..at + 4097;
    let errors: usize =
        (0..6).filter(|tag| btt.write(20_480, vec![*tag; 4096].into()).is_err()).count();
    assert_eq!(errors, 1);
    assert!(check(&*memory).unwrap().is_good());
}

#[test]
fn a_sector_that_cannot_be_read_is_marked_until_it_is_written() {
    let (memory, failing, btt) = ready();
    let found = arena(&memory);
    // The first free block after the sectors.
    let at = found.at + found.info.layout.block_at(found.info.layout.sectors);
    *failing.poison.lock() = at..at + 64;
    assert_eq!(btt.read(0, 4096), Err(failed("load", at)));
    assert_eq!(check(&*memory).unwrap().unreadable, 1);
    // It is known for good, by the kernel too.
    *failing.poison.lock() = 0..0;
    let message = btt.read(0, 4096).unwrap_err().to_string();
    assert!(message.contains("writing it makes it good again"), "{message}");
    assert!(btt.discard(0, 4096).is_ok() && btt.read(0, 4096).is_err());
    btt.write(0, vec![6; 4096].into()).unwrap();
    assert_eq!(btt.read(0, 4096).unwrap(), vec![6; 4096]);
    let report = check(&*memory).unwrap();
    assert_eq!((report.is_good(), report.unreadable), (true, 0));
}

#[test]
fn what_was_interrupted_is_not_finished_on_a_device_that_is_read_only() {
    let (memory, failing, btt) = ready();
    failing.stores.store(3, Relaxed);
    assert!(btt.write(0, vec![2; 4096].into()).is_err());
    let read_only = Failing {
        next: Arc::clone(&memory),
        stores: AtomicI64::new(-1),
        poison: Mutex::new(0..0),
        read_only: true,
    };
    let read_only: Device = Arc::new(read_only);
    assert!(matches!(open(&read_only), Err(NamespaceError::Refused { .. })));
    drop(open(&memory).unwrap());
    let btt = open(&read_only).unwrap();
    assert!(btt.info().read_only && btt.write(0, vec![1; 4096].into()).is_err());
    assert_eq!(btt.read(0, 4096).unwrap(), vec![2; 4096]);
}
