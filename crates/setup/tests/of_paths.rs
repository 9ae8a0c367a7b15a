//! Devices of this machine, opened by a description: what is reported of them, and taken from them.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_devices::source::{FileDevice, FileOptions};
use steadfast_setup::{Blocks, Overwrite, Setup, SetupError};
use steadfast_volume::member::read_label;

const BYTES: u64 = 2 << 20;

/// A device of a description in which `a`, `b` and their mirror `both` are in this folder, and
/// `volume` is that mirror by its members.
fn open(folder: &Path, name: &str) -> Blocks {
    let text = "[stack]\ndisk = 'both'\n[volume.both]\nkind = 'mirror'\nmembers = ['a', 'b']\n\
                [device.a]\npath = 'a'\n[device.b]\npath = 'b'\n\
                [device.volume]\npath = 'volume:a,b'\n";
    let origin = folder.join("s.toml").display().to_string();
    let setup = Setup::parse(text, &origin).unwrap_or_else(|e| panic!("{e}"));
    setup.topology.open(name, Overwrite::Anything).unwrap()
}

/// With a mirror of two files that was closed.
fn mirrored() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for leg in ["a", "b"] {
        File::create(folder.path().join(leg)).unwrap().set_len(BYTES).unwrap();
    }
    open(folder.path(), "both").close().unwrap();
    folder
}

#[test]
fn a_leg_that_fails_is_reported_by_its_close() {
    for name in ["both", "volume"] {
        let folder = mirrored();
        let blocks = open(folder.path(), name);
        File::options().write(true).open(folder.path().join("b")).unwrap().set_len(0).unwrap();
        blocks.disk.write(0, vec![7; 4096].into()).unwrap();
        blocks.disk.flush().unwrap();
        let closed = blocks.close();
        let is_it = matches!(&closed, Err(SetupError::LegFailed { leg, .. }) if leg.ends_with('b'));
        assert!(is_it, "{name}: {closed:?}");
    }
}

#[test]
fn a_volume_that_cannot_be_closed_is_an_error() {
    for name in ["both", "volume"] {
        let folder = mirrored();
        let blocks = open(folder.path(), name);
        blocks.disk.write(0, vec![7; 4096].into()).unwrap();
        blocks.disk.flush().unwrap();
        for leg in ["a", "b"] {
            File::options().write(true).open(folder.path().join(leg)).unwrap().set_len(0).unwrap();
        }
        assert!(blocks.close().is_err(), "{name}");
    }
}

#[test]
fn a_damaged_label_is_taken_away_too() {
    let folder = mirrored();
    let a = folder.path().join("a");
    let file = File::options().write(true).open(&a).unwrap();
    let labels = fs::read(&a).unwrap();
    let copies = (0..labels.len()).step_by(512).filter(|at| labels[*at..].starts_with(b"SFVOLUME"));
    let copies: Vec<usize> = copies.collect();
    assert_eq!(copies.len(), 2);
    copies.iter().for_each(|at| file.write_all_at(&[1; 8], *at as u64 + 200).unwrap());
    let label_of = || {
        let device = FileDevice::open(&a, &FileOptions::default()).unwrap();
        read_label(&(Arc::new(device) as Arc<dyn BlockDevice>)).map(|label| label.is_some())
    };
    label_of().unwrap_err();
    open(folder.path(), "a").close().unwrap();
    assert_eq!(label_of(), Ok(false));
}
