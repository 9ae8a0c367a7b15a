//! Journals that the kernel left.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::source::Ram;
use steadfast_ext4::mount::{delete_orphans, replay};
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_vfs::{FileSystem, OpenFlags, path};

use super::compare::{Peer, assert_same};
use super::stage::{Contents, Shape, Stage, with_card, write_durably};
use crate::sparse_image::can_mount;

/// Blocks that begin like a journal's own; every third, of 1 KiB.
fn escaped() -> Vec<u8> {
    let mut bytes = vec![0x5a; 48 * 1024];
    for block in bytes.chunks_mut(1024).step_by(3) {
        block[..4].copy_from_slice(&0xc03b_3998u32.to_be_bytes());
    }
    bytes
}

fn sized(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(seed * 2 + 1) >> 4) as u8 | 1).collect()
}

/// Names come, go and move; directories go whose blocks become data; files grow and are cut.
fn work(dir: &Path, seed: u64) {
    let mut rng = Rng::new(seed);
    for n in 0..140u64 {
        let sub = dir.join(format!("d{}", n % 5));
        fs::create_dir_all(&sub).unwrap();
        let file = File::create(sub.join(format!("f{n}"))).unwrap();
        let at = if rng.percent(20) { rng.below(1 << 20) } else { 0 };
        file.write_all_at(&sized(n, 1 + rng.below(15_000) as usize), at).unwrap();
        if rng.percent(30) {
            file.sync_all().unwrap();
        }
        match n % 9 {
            2 => drop(fs::rename(sub.join(format!("f{n}")), dir.join(format!("moved{}", n % 4)))),
            4 => drop(fs::hard_link(sub.join(format!("f{n}")), dir.join(format!("link{n}")))),
            // Its blocks are revoked, and soon somebody else's.
            6 => drop(fs::remove_dir_all(dir.join(format!("d{}", rng.below(5))))),
            8 => drop(fs::remove_file(sub.join(format!("f{n}")))),
            _ => {}
        }
    }
    let big = File::create(dir.join("big")).unwrap();
    for n in 0..60 {
        big.write_all_at(&sized(n, 9000), n * 40_000).unwrap();
    }
    big.sync_all().unwrap();
    big.set_len(100_000).unwrap();
    std::os::unix::fs::symlink("x".repeat(100), dir.join("slow")).unwrap();
}

/// The end of the work: what must be there after any replay.
fn promise(dir: &Path) {
    write_durably(&dir.join("escaped"), &escaped());
    for n in 0..6u64 {
        write_durably(&dir.join(format!("kept{n}")), &sized(n, 12_345));
    }
}

fn read(fs: &Ext4, name: &str) -> Vec<u8> {
    let attr = path::resolve(fs, name.as_bytes(), true).unwrap();
    let fh = fs.open(attr.ino, OpenFlags::READ).unwrap();
    fs.read(fh, 0, attr.size as usize).unwrap().to_vec()
}

fn assert_promises(disk: Ram, card: Option<&Ram>) {
    let fs = Ext4::mount(Arc::new(disk), with_card(card, MountOptions::default())).unwrap();
    assert!(read(&fs, "escaped") == escaped());
    for n in 0..6 {
        assert!(read(&fs, &format!("kept{n}")) == sized(n, 12_345), "kept{n}");
    }
    fs.unmount().unwrap();
}

fn round(shape: Shape, options: &str, orphan: bool) {
    let stage = Stage::mke2fs(shape);
    // The kernel must not commit, and so not write, while the images are copied.
    let mount = stage.mount(&format!("rw,commit=9999,{options}"));
    work(mount.path(), u64::from(shape.block_size) + options.len() as u64);
    let open = orphan.then(|| {
        let name = mount.path().join("nameless");
        let file = File::create(&name).unwrap();
        file.write_all_at(&sized(1, 50_000), 0).unwrap();
        fs::remove_file(name).unwrap();
        file
    });
    promise(mount.path());
    let dirty = stage.contents();
    drop(open);
    drop(mount);

    let (disk, card) = dirty.devices();
    let device = Arc::new(disk.clone()) as Arc<dyn BlockDevice>;
    let how = with_card(card.as_ref(), MountOptions::default());
    let report = replay(&device, &how).unwrap().expect("a dirty journal");
    assert!(report.transactions > 3 && report.blocks_replayed > 10, "{options}: {report:?}");
    assert_eq!(report.findings, [], "{shape:?} {options}");
    let ours = Contents { disk: disk.store(), card: card.as_ref().map(Ram::store) };
    assert!(replay(&device, &how).unwrap().is_none(), "replayed twice");

    stage.put(&dirty);
    stage.replay_with_e2fsck();
    // It also deletes orphans.
    let after_e2fsck = stage.contents();
    if !orphan {
        assert_same(&stage, &ours, Peer::E2fsck, options);
        // The kernel, too, replays before a read-only mount, and then writes nothing more.
        stage.put(&dirty);
        drop(stage.mount(&format!("ro,{options}")));
        assert_same(&stage, &ours, Peer::Kernel, options);
        stage.assert_sound(&ours, options);
    } else {
        let (disk, card) = ours.devices();
        let device = Arc::new(disk.clone()) as Arc<dyn BlockDevice>;
        let how = with_card(card.as_ref(), MountOptions::default());
        assert_eq!(delete_orphans(&device, &how).unwrap(), Some(1), "{shape:?} {options}");
        let after = Contents { disk: disk.store(), card: card.map(|c| c.store()) };
        stage.assert_sound(&after, &format!("{options}, without orphans"));
    }
    assert_promises(disk.clone(), card.as_ref());
    stage.put(&Contents { disk: disk.store(), card: card.as_ref().map(Ram::store) });
    stage.assert_clean(&format!("{options}, after our mount"));
    let ours = stage.free_counts();
    stage.put(&after_e2fsck);
    stage.repair();
    assert_eq!(ours, stage.free_counts(), "{shape:?} {options}: free blocks and inodes");
}

fn rounds(external: bool) {
    if !can_mount() {
        return;
    }
    let new = "metadata_csum,64bit";
    let old = "^metadata_csum,^64bit";
    let newest = "metadata_csum,64bit,metadata_csum_seed,orphan_file";
    let barely = "^metadata_csum,64bit";
    for (block_size, features, options, orphan) in [
        (1024, new, "data=ordered", false),
        (4096, new, "data=ordered", true),
        (1024, newest, "data=ordered", true),
        (4096, old, "data=ordered", false),
        (1024, new, "data=journal", false),
        (4096, new, "data=journal", false),
        (2048, old, "data=journal", true),
        (1024, old, "data=writeback,journal_async_commit", false),
        (4096, newest, "data=writeback,journal_async_commit", false),
        (1024, barely, "data=ordered,journal_checksum", false),
    ] {
        round(Shape { block_size, features, external }, options, orphan);
    }
}

#[test]
fn internal() {
    rounds(false);
}

#[test]
fn external() {
    rounds(true);
}
