//! Journals that are lost, come back, or are of another time.

use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::Ext4Error;
use steadfast_ext4::MountOptions;
use steadfast_ext4::mount::replay;
use steadfast_ext4_check as check;
use steadfast_ext4_tune::{
    DiscardedLog, JournalLocation, LossPolicy, NewJournal, attach, detach, move_to, status,
};
use steadfast_runtime::{Sim, sleep};
use steadfast_vfs::FileSystem;

use crate::machine::{Images, Start, assert_files, build, devices, dynamic, journal, mount, put};

/// A file system on the first card, and work that only its journal holds.
pub fn dirty(upstream: bool) -> [Ram; 3] {
    let stores = Sim::new(1)
        .run(move || {
            let machine = devices(&build(Start::External, upstream));
            let fs = mount(&dynamic(&machine[0]), Some(dynamic(&machine[1]))).unwrap();
            put(&fs, "late", &Bytes::from_static(b"of the last minute"));
            drop(fs);
            machine.map(|ram| ram.store())
        })
        .unwrap();
    devices(&stores)
}

fn in_a_simulation<R: Send + 'static>(
    machine: &[Ram; 3],
    work: impl FnOnce(&[Ram; 3]) -> R + Send + 'static,
) -> R {
    let machine = machine.clone();
    Sim::new(2).run(move || work(&machine)).unwrap()
}

fn assert_refused<T: std::fmt::Debug>(outcome: Result<T, Ext4Error>, parts: &[&str]) {
    let text = outcome.unwrap_err().to_string();
    for part in parts {
        assert!(text.contains(part), "{text}: lacks {part:?}");
    }
}

#[test]
fn a_clean_journal_may_be_missing() {
    let machine = devices(&Sim::new(1).run(|| build(Start::External, true)).unwrap());
    in_a_simulation(&machine, |machine| {
        let disk = dynamic(&machine[0]);
        assert_refused(mount(&disk, None), &["another device", "noload"]);
        let gone = detach(&disk, None, LossPolicy::Refuse).unwrap();
        assert_eq!((gone.discarded, gone.released), (DiscardedLog::Nothing, false));
        let fs = mount(&disk, None).unwrap();
        assert_files(&fs, "without");
        fs.unmount().unwrap();
    });
    let images = Images::new();
    let disk = images.dump(&machine[0].store(), "disk");
    images.e2fsck(&disk, None, false, "a clean journal was missing");
}

#[test]
fn what_a_journal_holds_is_replayed_first() {
    let machine = dirty(true);
    in_a_simulation(&machine, |machine| {
        let (disk, card) = (dynamic(&machine[0]), journal(&machine[1]));
        let seen = status(&disk, Some(&card)).unwrap();
        assert!(seen.needs_recovery && seen.pending.unwrap().transactions > 0);
        assert_eq!(seen.users(), [seen.fs_uuid.unwrap()]);
        let gone = detach(&disk, Some(&card), LossPolicy::Refuse).unwrap();
        assert!(gone.replayed_transactions > 0 && gone.released);
        let fs = mount(&disk, None).unwrap();
        assert!(fs.lookup(fs.root(), b"late").is_ok());
        fs.unmount().unwrap();
        assert_eq!(status(&disk, None).unwrap().place, JournalLocation::None);
    });
    let images = Images::new();
    let disk = images.dump(&machine[0].store(), "disk");
    images.e2fsck(&disk, None, false, "replayed, then detached");
}

#[test]
fn the_wrong_device_is_refused() {
    let machine = dirty(true);
    let before = machine.clone().map(|ram| ram.store());
    in_a_simulation(&machine, |machine| {
        let (disk, wrong) = (dynamic(&machine[0]), journal(&machine[2]));
        assert_refused(detach(&disk, Some(&wrong), LossPolicy::Refuse), &["another journal"]);
        let inside = NewJournal::Internal { blocks: Some(1100) };
        assert_refused(move_to(&disk, Some(&wrong), &inside), &["another journal"]);
        assert_refused(move_to(&disk, None, &inside), &["another device"]);
        assert_refused(attach(&disk, &inside), &["has a journal"]);
    });
    assert!(machine.iter().zip(&before).all(|(ram, store)| ram.store() == *store));
}

/// Runs e2fsck -fy on a device's contents, so many times at most; then it finds nothing more.
pub fn repair(ram: &Ram, times: usize) -> Ram {
    let images = Images::new();
    let path = images.dump(&ram.store(), "disk");
    for _ in 0..times {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "60", "e2fsck", "-fy"]).arg(&path);
        let out = command.output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout);
        assert!(matches!(out.status.code(), Some(0 | 1)), "{said}");
    }
    images.e2fsck(&path, None, false, "repaired");
    Ram::from_store("disk", Store::import(&path).unwrap()).persistent()
}

#[test]
fn a_lost_journal_never_comes_back() {
    for upstream in [false, true] {
        never_comes_back(dirty(upstream));
    }
}

fn never_comes_back(mut machine: [Ram; 3]) {
    in_a_simulation(&machine, |machine| {
        let disk = dynamic(&machine[0]);
        let refused = detach(&disk, None, LossPolicy::Refuse);
        assert_refused(refused, &["needs what its journal holds", "--discard-unreplayed"]);
        let gone = detach(&disk, None, LossPolicy::Accept).unwrap();
        assert!(matches!(gone.discarded, DiscardedLog::Unknown { .. }), "{gone:?}");
        assert!(gone.check.is_some() && !gone.released);
        assert!(check::check(&disk, None).unwrap().error_recorded);
    });
    machine[0] = repair(&machine[0], 1);
    in_a_simulation(&machine, |machine| {
        let disk = dynamic(&machine[0]);
        let fs = mount(&disk, None).unwrap();
        for i in 0..50 {
            put(&fs, &format!("new{i}"), &Bytes::from(vec![i; 5000]));
        }
        fs.unmount().unwrap();
        // The device that was lost is there again, with transactions in it.
        let new = NewJournal::External(journal(&machine[1]));
        assert!(attach(&disk, &new).unwrap().discarded_transactions > 0);
        let fs = mount(&disk, Some(dynamic(&machine[1]))).unwrap();
        assert!((0..50).all(|i| fs.lookup(fs.root(), format!("new{i}").as_bytes()).is_ok()));
        fs.unmount().unwrap();
    });
    let images = Images::new();
    let (disk, card) =
        (images.dump(&machine[0].store(), "disk"), images.dump(&machine[1].store(), "card"));
    images.e2fsck(&disk, Some(&card), false, "the journal came back");
}

#[test]
fn a_journal_given_up_gets_another_identity() {
    let machine = dirty(true);
    let before = check::info(&dynamic(&machine[1])).unwrap().uuid;
    in_a_simulation(&machine, |machine| {
        let (disk, card) = (dynamic(&machine[0]), journal(&machine[1]));
        let gone = detach(&disk, Some(&card), LossPolicy::Accept).unwrap();
        let DiscardedLog::Listed { transactions, blocks } = gone.discarded else {
            panic!("{gone:?}");
        };
        assert!(transactions > 0 && !blocks.is_empty() && gone.released);
        let seen = status(&card.device, None).unwrap();
        assert_eq!(seen.pending.unwrap().transactions, 0);
        assert!(seen.users().is_empty());
    });
    assert_ne!(check::info(&dynamic(&machine[1])).unwrap().uuid, before);
}

#[test]
fn a_journal_of_an_earlier_mount_is_refused() {
    let machine = devices(&Sim::new(1).run(|| build(Start::External, true)).unwrap());
    in_a_simulation(&machine, |machine| {
        let disk = dynamic(&machine[0]);
        let fs = mount(&disk, Some(dynamic(&machine[1]))).unwrap();
        put(&fs, "first", &Bytes::from_static(b"1"));
        let old = machine[1].store();
        fs.unmount().unwrap();
        sleep(Duration::from_secs(10));
        let fs = mount(&disk, Some(dynamic(&machine[1]))).unwrap();
        put(&fs, "second", &Bytes::from_static(b"2"));
        drop(fs);
        let good = machine[1].store();
        machine[1].replace(old);
        let card = dynamic(&machine[1]);
        assert_refused(mount(&disk, Some(card.clone())), &["older", "e2fsck"]);
        let options = MountOptions { journal_device: Some(card), ..MountOptions::default() };
        assert_refused(replay(&disk, &options), &["older"]);
        // The right one is replayed.
        machine[1].replace(good);
        let fs = mount(&disk, Some(dynamic(&machine[1]))).unwrap();
        assert!(fs.lookup(fs.root(), b"second").is_ok());
        fs.unmount().unwrap();
    });
}
