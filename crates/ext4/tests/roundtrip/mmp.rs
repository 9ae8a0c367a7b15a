//! Multiple-mount protection, in simulated time: a mount waits as long as another host could be
//! silent.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_devices::source::Ram;
use steadfast_ext4::{Ext4, Ext4Error, MountOptions};
use steadfast_runtime::{Sim, now, sleep};

use crate::image::Image;

const IMAGE_BYTES: u64 = 16 << 20;
/// `EXT4_MMP_SEQ_FSCK`, and where the number is in its block.
const FSCK: u32 = 0xe24d_4d50;
const SEQUENCE: u64 = 4;

fn refusal(device: &Arc<dyn BlockDevice>) -> String {
    let refused = Ext4::mount(Arc::clone(device), MountOptions::default()).map(drop).unwrap_err();
    assert!(matches!(refused, Ext4Error::Refused { .. }), "{refused}");
    refused.to_string()
}

/// The block that says who has mounted it.
fn block_of(image: &Image) -> u64 {
    let said = image.debugfs_says("stats");
    let number = |l: &str| l.strip_prefix("MMP block number:")?.trim().parse().ok();
    said.lines().find_map(number).expect("an MMP block")
}

fn seconds(work: impl FnOnce()) -> u64 {
    let before = now();
    work();
    now().since(before).as_secs()
}

#[test]
fn what_another_has_mounted_is_refused() {
    let image = Image::mke2fs(IMAGE_BYTES, &["-b", "4096", "-O", "mmp"]);
    let block = block_of(&image);
    let bytes = std::fs::read(image.path()).unwrap();
    let after = Sim::new(3).run(move || {
        let device: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", IMAGE_BYTES).persistent());
        device.write(0, bytes.into()).unwrap();
        let options = MountOptions::default;
        let mut fs = None;
        // Nobody has it: only what it writes must stay for a while.
        let first = seconds(|| fs = Some(Ext4::mount(Arc::clone(&device), options()).unwrap()));
        assert!((11..60).contains(&first), "{first}");
        for _ in 0..2 {
            let said = refusal(&device);
            assert!(said.contains("in use") && said.contains("\"simulation\""), "{said}");
            assert!(said.contains("clear_mmp"), "{said}");
            sleep(Duration::from_secs(77));
        }
        // Looking only needs no protection.
        let looking = MountOptions { read_only: true, ..options() };
        Ext4::mount(Arc::clone(&device), looking).unwrap().unmount().unwrap();
        // A host that went down leaves its number, which stays as it is.
        drop(fs.take());
        sleep(Duration::from_secs(20));
        let again = seconds(|| fs = Some(Ext4::mount(Arc::clone(&device), options()).unwrap()));
        assert!(again >= 2 * first, "{again}");
        // Another host takes it all the same: we stop writing.
        let ours = device.read(block * 4096, 4096).unwrap();
        let mut theirs = ours.to_vec();
        theirs[SEQUENCE as usize] ^= 1;
        device.write(block * 4096, theirs.into()).unwrap();
        sleep(Duration::from_secs(30));
        let taken = fs.take().unwrap();
        let why = taken.read_only_because().expect("it has stopped");
        assert!(why.contains("simulation") || why.contains("checksum"), "{why}");
        drop(taken);
        device.write(block * 4096, ours.into()).unwrap();
        let fs = Ext4::mount(Arc::clone(&device), options()).unwrap();
        fs.unmount().unwrap();
        assert!(
            seconds(|| Ext4::mount(Arc::clone(&device), options()).unwrap().unmount().unwrap())
                < 2 * first
        );
        device.read(0, IMAGE_BYTES).unwrap().to_vec()
    });
    std::fs::write(image.path(), after.unwrap()).unwrap();
    image.assert_clean();
}

#[test]
fn what_e2fsck_has_is_refused() {
    // Without checksums, so that the block can be written by hand.
    let image = Image::mke2fs(IMAGE_BYTES, &["-b", "4096", "-O", "mmp,^metadata_csum"]);
    let block = block_of(&image);
    let mut bytes = std::fs::read(image.path()).unwrap();
    let at = (block * 4096 + SEQUENCE) as usize;
    bytes[at..at + 4].copy_from_slice(&FSCK.to_le_bytes());
    Sim::new(3)
        .run(move || {
            let device: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", IMAGE_BYTES).persistent());
            device.write(0, bytes.into()).unwrap();
            assert!(refusal(&device).contains("e2fsck"));
        })
        .unwrap();
}

/// A host went down while it said that it is there, and a cut kept any words of that.
#[test]
fn a_block_that_is_torn_on_memory_is_waited_for() {
    let image = Image::mke2fs(IMAGE_BYTES, &["-b", "4096", "-O", "mmp"]);
    let block = block_of(&image);
    let bytes = std::fs::read(image.path()).unwrap();
    Sim::new(3)
        .run(move || {
            let disk = Ram::new("disk", IMAGE_BYTES).persistent();
            let memory: Arc<dyn BlockDevice> = Arc::new(disk.clone().with_atomic_words());
            memory.write(0, bytes.into()).unwrap();
            let fs = Ext4::mount(Arc::clone(&memory), MountOptions::default()).unwrap();
            let old = memory.read(block * 4096, 4096).unwrap();
            sleep(Duration::from_secs(11));
            let new = memory.read(block * 4096, 4096).unwrap();
            drop(fs);
            let left = disk.store();
            let words: Vec<usize> =
                (0..4096).step_by(8).filter(|at| old[*at..at + 8] != new[*at..at + 8]).collect();
            assert!(words.len() >= 3, "the number, the time, the checksum");
            for set in 0..1u32 << words.len() {
                let mut torn = old.to_vec();
                for (_, at) in words.iter().enumerate().filter(|(n, _)| set >> n & 1 == 1) {
                    torn[*at..at + 8].copy_from_slice(&new[*at..at + 8]);
                }
                disk.replace(left.clone());
                memory.write(block * 4096, torn.into()).unwrap();
                let mount = |on: Arc<dyn BlockDevice>| Ext4::mount(on, MountOptions::default());
                let is_torn = set != 0 && set + 1 != 1 << words.len();
                if is_torn {
                    // The control: what keeps sectors whole has no such block.
                    let refused = mount(Arc::new(disk.clone())).map(drop).unwrap_err();
                    assert!(refused.to_string().contains("wrong checksum"), "{refused}");
                }
                mount(Arc::clone(&memory)).unwrap().unmount().unwrap();
            }
        })
        .unwrap();
}
