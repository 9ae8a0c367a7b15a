//! Journals that we left: copied while mounted, at one instant of a simulation.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::source::Ram;
use steadfast_ext4::mount::replay;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_runtime::Sim;
use steadfast_vfs::{FileSystem, Ino, NewNode, OpenFlags, RenameFlags};

use super::compare::{Peer, assert_same};
use super::stage::{Contents, Shape, Stage, with_card};
use crate::sparse_image::can_mount;

const RW: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);

fn contents(seed: u64, len: usize) -> Bytes {
    let mut bytes: Vec<u8> =
        (0..len as u64).map(|i| (i.wrapping_mul(seed * 2 + 1) >> 4) as u8 | 1).collect();
    // Begins like a journal's own block, which data=journal must escape.
    if seed.is_multiple_of(2) {
        for block in bytes.chunks_mut(1024).step_by(3).filter(|b| b.len() >= 4) {
            block[..4].copy_from_slice(&0xc03b_3998u32.to_be_bytes());
        }
    }
    bytes.into()
}

fn write(fs: &Ext4, dir: Ino, name: &str, data: Bytes, durably: bool) {
    let (_, fh) = fs.create(dir, name.as_bytes(), NewNode::default(), RW).unwrap();
    assert_eq!(fs.write(fh, 0, data.clone()).unwrap(), data.len());
    if durably {
        fs.fsync(fh, false).unwrap();
    }
    fs.release(fh).unwrap();
}

/// As the kernel's workload: names, revoked directories, files cut and moved.
fn work(fs: &Ext4, rng: &mut Rng) {
    let root = fs.root();
    let dir = |n: u64| {
        let name = format!("d{n}");
        let made = fs.mkdir(root, name.as_bytes(), NewNode::default());
        made.or_else(|_| fs.lookup(root, name.as_bytes())).unwrap().ino
    };
    let mut names = vec![Vec::new(); 5];
    for n in 0..140u64 {
        let d = (n % 5) as usize;
        let name = format!("f{n}");
        let len = 1 + rng.below(15_000) as usize;
        write(fs, dir(n % 5), &name, contents(n, len), rng.percent(30));
        names[d].push(name.clone());
        match n % 9 {
            2 => {
                let to = format!("moved{}", n % 4);
                let none = RenameFlags::empty();
                fs.rename((dir(n % 5), name.as_bytes()), (root, to.as_bytes()), none).unwrap();
                names[d].pop();
            }
            6 => {
                let d = rng.below(5) as usize;
                for name in names[d].drain(..) {
                    fs.unlink(dir(d as u64), name.as_bytes()).unwrap();
                }
                dir(d as u64);
                fs.rmdir(root, format!("d{d}").as_bytes()).unwrap();
            }
            _ => {}
        }
    }
    let (attr, fh) = fs.create(root, b"big", NewNode::default(), RW).unwrap();
    for n in 0..60 {
        fs.write(fh, n * 40_000, contents(n, 9000)).unwrap();
    }
    fs.fsync(fh, false).unwrap();
    let size = Some(100_000);
    fs.setattr(attr.ino, steadfast_vfs::SetAttr { size, ..Default::default() }).unwrap();
    fs.release(fh).unwrap();
    fs.symlink(root, b"slow", &[b'x'; 100], NewNode::default()).unwrap();
}

/// Works and copies both devices, at one instant, while the file system is in use.
fn dirtied(from: &Contents, options: MountOptions, seed: u64) -> Contents {
    let (disk, card) = from.devices();
    let outcome = Sim::new(seed).run(move || {
        let options = with_card(card.as_ref(), options);
        let fs = Ext4::mount(Arc::new(disk.clone()), options).unwrap();
        work(&fs, &mut Rng::new(seed));
        for n in 0..6u64 {
            write(&fs, fs.root(), &format!("kept{n}"), contents(n, 12_345), true);
        }
        Contents { disk: disk.store(), card: card.as_ref().map(Ram::store) }
    });
    outcome.unwrap()
}

fn assert_kept(dir: &Path) {
    for n in 0..6 {
        let found = std::fs::read(dir.join(format!("kept{n}"))).unwrap();
        assert!(found == contents(n, 12_345), "kept{n}");
    }
}

fn round(shape: Shape, data: DataMode, async_commit: bool) {
    let what = format!("{data:?}, asynchronous: {async_commit}");
    let stage = Stage::mke2fs(shape);
    let mut options = MountOptions { data, ..MountOptions::default() };
    options.journal.async_commit = async_commit;
    // The log stays well filled, so that it goes round and there is much to replay.
    options.journal.checkpoint_start_fraction = 0.9;
    options.journal.checkpoint_stop_fraction = 0.6;
    let dirty = dirtied(&stage.contents(), options, u64::from(shape.block_size));

    let (disk, card) = dirty.devices();
    let device = Arc::new(disk.clone()) as Arc<dyn BlockDevice>;
    let report = replay(&device, &with_card(card.as_ref(), MountOptions::default()));
    let report = report.unwrap().expect("a dirty journal");
    assert!(report.transactions > 3 && report.blocks_replayed > 10, "{what}: {report:?}");
    assert_eq!(report.findings, [], "{shape:?} {what}");
    let ours = Contents { disk: disk.store(), card: card.map(|c| c.store()) };
    stage.assert_sound(&ours, &what);

    stage.put(&dirty);
    stage.replay_with_e2fsck();
    assert_same(&stage, &ours, Peer::E2fsck, &what);

    let kernels = if async_commit { "data=writeback,journal_async_commit" } else { "data=ordered" };
    stage.put(&dirty);
    let mount = stage.mount(&format!("ro,{kernels}"));
    assert_kept(mount.path());
    drop(mount);
    assert_same(&stage, &ours, Peer::Kernel, &what);

    stage.put(&dirty);
    let mount = stage.mount(&format!("rw,{kernels}"));
    assert_kept(mount.path());
    std::fs::write(mount.path().join("by the kernel"), [7; 10_000]).unwrap();
    drop(mount);
    stage.assert_clean(&format!("{what}, after the kernel's mount"));
}

fn rounds(external: bool) {
    if !can_mount() {
        return;
    }
    let new = "metadata_csum,64bit";
    let old = "^metadata_csum,^64bit";
    let newest = "metadata_csum,64bit,metadata_csum_seed,orphan_file";
    for (block_size, features, data, async_commit) in [
        (1024, new, DataMode::Ordered, false),
        (4096, newest, DataMode::Ordered, false),
        (4096, old, DataMode::Ordered, false),
        (1024, newest, DataMode::Writeback, true),
        (4096, old, DataMode::Writeback, true),
        (1024, new, DataMode::Journal, false),
        (4096, new, DataMode::Journal, true),
        (2048, old, DataMode::Journal, false),
    ] {
        round(Shape { block_size, features, external }, data, async_commit);
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
