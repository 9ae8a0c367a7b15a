//! What is known of the tree before a run is what would be read.

use std::time::Duration;

use steadfast_devices::model::{ModelParams, SsdParams};
use steadfast_ext4::{DataMode, MountOptions};
use steadfast_vfs::path::resolve;
use steadfast_vfs::{Fallocate, FileSystem, NewNode, OpenFlags, SetAttr};

use super::inside::{InProcessRun, Program};
use super::*;
use crate::explore::OnRam;
use crate::states::{Choice, CrashPoints, StateBound};

const BLOCK: usize = 4096;

fn written(fs: &dyn FileSystem, name: &str, at: u64, byte: u8, blocks: usize) {
    let found = resolve(fs, name.as_bytes(), true);
    let fh = match found {
        Ok(attr) => fs.open(attr.ino, OpenFlags::WRITE).unwrap(),
        Err(_) => {
            let node = NewNode::default();
            fs.create(fs.root(), name.as_bytes(), node, OpenFlags::WRITE).unwrap().1
        }
    };
    fs.write(fh, at, vec![byte; blocks * BLOCK].into()).unwrap();
    fs.fsync(fh, false).unwrap();
    fs.release(fh).unwrap();
}

fn changed(fs: &dyn FileSystem) {
    written(fs, "in place", 3 * BLOCK as u64, 9, 2);
    written(fs, "longer", 8 * BLOCK as u64, 9, 1);
    let shorter = resolve(fs, b"shorter", true).unwrap().ino;
    fs.setattr(shorter, SetAttr { size: Some(5 * BLOCK as u64 + 7), ..SetAttr::default() })
        .unwrap();
    let holes = resolve(fs, b"holes", true).unwrap().ino;
    let fh = fs.open(holes, OpenFlags::WRITE).unwrap();
    fs.fallocate(fh, Fallocate::PunchHole, BLOCK as u64, 2 * BLOCK as u64).unwrap();
    fs.fsync(fh, false).unwrap();
    fs.release(fh).unwrap();
    // Another file gets its inode and its blocks.
    fs.unlink(fs.root(), b"anew").unwrap();
    written(fs, "anew", 0, 9, 8);
    // The same bytes in another place.
    fs.setattr(shorter, SetAttr { size: Some(0), ..SetAttr::default() }).unwrap();
    written(fs, "shorter", 0, 3, 8);
    fs.sync().unwrap();
}

#[test]
fn what_is_known_is_what_would_be_read() {
    let names = ["in place", "longer", "shorter", "holes", "anew", "stays", "stays, too"];
    for data in [DataMode::Ordered, DataMode::Writeback, DataMode::Journal, DataMode::Transact] {
        let options = MountOptions { data, ..MountOptions::default() };
        let disk = ModelParams::Ssd(SsdParams::default()).test_disk(32 << 20);
        let linger = Duration::from_secs(10);
        let inside = InProcessRun { options, disk, journal: None, lying: false, seed: 1, linger };
        let prepare: Program = Box::new(move |fs, _| {
            (1..).zip(names).for_each(|(byte, name)| written(&*fs, name, 0, byte, 8));
            Ok(())
        });
        let program: Program = Box::new(|fs, _| {
            changed(&*fs);
            Ok(())
        });
        let run = inside.record(prepare, program).unwrap();
        let system = OnRam::new(inside.options.clone()).shared();
        let known = known_tree(&system, run.bases.clone()).unwrap();
        let bound = StateBound { states: 12, ..StateBound::default() };
        let choice = Choice { places: CrashPoints::Sampled(60), bound, seed: 1 };
        let (mut shared, mut other, mut states) = (0, 0, 0);
        for state in run.states(choice, bound) {
            let read = recover(&system, state.contents.clone()).unwrap().tree.unwrap();
            let again = recover_again(&system, state.contents, Some(Arc::clone(&known))).unwrap();
            let again = again.tree.unwrap();
            assert_eq!(read.digest(), again.digest(), "{data:?}: state {}", state.number);
            for (path, node) in again.nodes() {
                let is_shared = |piece: &(u64, bytes::Bytes)| known.holds(&piece.1);
                let is_shared = node.pieces.iter().all(is_shared);
                *(if is_shared { &mut shared } else { &mut other }) += 1;
                assert!(is_shared || !path.starts_with(b"stays"), "{data:?}: {path:?}");
            }
            states += 1;
        }
        assert!(states > 50 && shared > 2 * states && other > states, "{states} {shared} {other}");
    }
}
