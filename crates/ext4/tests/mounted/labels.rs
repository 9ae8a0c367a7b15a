//! A label that was set is where other programs look for it, although the file system is mounted.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_devices::source::Ram;
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_ext4_mkfs::{JournalChoice, Options, make};
use steadfast_vfs::FileSystem;

/// The label in its place: `s_volume_name`.
fn on_device(disk: &Arc<dyn BlockDevice>) -> Vec<u8> {
    disk.read(0, 4096).unwrap()[1024 + 0x78..][..16].to_vec()
}

#[test]
fn a_label_is_in_its_place_when_the_call_returns() {
    for journal in [true, false] {
        let disk: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", 32 << 20).persistent());
        let mut options = Options::random(1_700_000_000);
        if !journal {
            options.journal = JournalChoice::None;
        }
        make(&disk, &options).unwrap();
        let fs = Ext4::mount(Arc::clone(&disk), MountOptions::default()).unwrap();
        for label in [&b"photographs"[..], b"sixteen bytes ok", b""] {
            fs.set_label(label).unwrap();
            let mut padded = label.to_vec();
            padded.resize(16, 0);
            assert_eq!(on_device(&disk), padded, "journal: {journal}");
        }
        fs.unmount().unwrap();
    }
}
