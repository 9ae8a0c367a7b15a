//! Full file systems.

use bytes::Bytes;
use steadfast_ext4::{DataMode, MountOptions};
use steadfast_vfs::{FileSystem, FsError, OpenFlags};

use crate::image::Image;
use crate::{RW, contents, create, mount, read_all};

fn tiny(block_size: &str) -> Image {
    Image::mke2fs(16 << 20, &["-b", block_size, "-J", "size=4", "-m", "0"])
}

/// As [`tiny`], in clusters of 16 KiB.
fn tiny_in_clusters(block_size: &str) -> Image {
    let options = ["-b", block_size, "-J", "size=4", "-m", "0", "-O", "bigalloc", "-C", "16384"];
    Image::mke2fs(16 << 20, &options)
}

/// Writes until there is no space; how many bytes went in.
fn fill(fs: &dyn FileSystem, name: &str, flags: OpenFlags) -> u64 {
    let (_, fh) = create(fs, name, flags);
    let mut at = 0;
    loop {
        match fs.write(fh, at, contents(3, at, 16384)) {
            Ok(n) => at += n as u64,
            Err(FsError::NoSpace { .. }) => break,
            Err(e) => panic!("{e}"),
        }
        assert!(at < 64 << 20, "it never fills up");
    }
    fs.fsync(fh, false).unwrap();
    fs.release(fh).unwrap();
    at
}

#[test]
fn a_full_file_system_keeps_what_it_took() {
    let modes = [
        (DataMode::Ordered, true, RW),
        (DataMode::Ordered, false, RW),
        (DataMode::Ordered, true, RW | OpenFlags::DIRECT),
        (DataMode::Journal, true, RW),
        (DataMode::Transact, true, RW),
        (DataMode::Transact, true, RW | OpenFlags::DIRECT),
    ];
    for (data, delayed_allocation, flags) in modes {
        let makers = [(tiny as fn(&str) -> Image, "1024"), (tiny, "4096")];
        let clustered =
            [(tiny_in_clusters as fn(&str) -> Image, "1024"), (tiny_in_clusters, "4096")];
        // data=transact does without clusters.
        let clustered = clustered.into_iter().filter(|_| data != DataMode::Transact);
        for (make, block_size) in makers.into_iter().chain(clustered) {
            let image = make(block_size);
            let options = || MountOptions { data, delayed_allocation, ..MountOptions::default() };
            let fs = mount(&image, options());
            let size = fill(&*fs, "full", flags);
            assert!(size > 4 << 20, "{data:?} {block_size}: only {size} bytes");
            let stat = fs.statfs().unwrap();
            assert!(stat.blocks_available < 64, "{stat:?}");
            assert_eq!(read_all(&*fs, "full"), contents(3, 0, size as usize));
            // A deleted file's blocks can be used at once, though they rest until a commit.
            fs.unlink(fs.root(), b"full").unwrap();
            let again = fill(&*fs, "again", flags);
            assert!(again >= size - 65536, "{data:?} {block_size}: {again} of {size}");
            fs.unmount().unwrap();
            drop(fs);
            image.assert_clean();
            let fs = mount(&image, options());
            assert_eq!(read_all(&*fs, "again"), contents(3, 0, again as usize));
            fs.unmount().unwrap();
        }
    }
}

#[test]
fn inodes_run_out() {
    let image = Image::mke2fs(8 << 20, &["-N", "64", "-J", "size=1"]);
    let fs = mount(&image, MountOptions::default());
    let mut made = 0;
    let error = loop {
        let name = format!("file{made}");
        match fs.create(fs.root(), name.as_bytes(), Default::default(), RW) {
            Ok((_, fh)) => fs.release(fh).unwrap(),
            Err(e) => break e,
        }
        made += 1;
    };
    assert_eq!(error, FsError::NoSpace { what: "inodes" });
    assert_eq!(fs.statfs().unwrap().inodes_free, 0);
    fs.unlink(fs.root(), b"file3").unwrap();
    create(&*fs, "another", RW);
    fs.unmount().unwrap();
    image.assert_clean();
}

#[test]
fn the_reserve_is_for_those_who_may() {
    let image = Image::mke2fs(32 << 20, &["-m", "20"]);
    let fs = mount(&image, MountOptions::default());
    let before = fs.statfs().unwrap();
    assert!(before.blocks_free - before.blocks_available >= (32 << 20) / 4096 / 5);
    let size = fill(&*fs, "full", RW);
    fs.unmount().unwrap();
    drop(fs);
    let fs = mount(&image, MountOptions { use_reserved: true, ..MountOptions::default() });
    let more = fill(&*fs, "more", RW);
    assert!(more > 4 << 20, "{size}, then {more}");
    fs.unmount().unwrap();
    image.assert_clean();
}

#[test]
fn a_write_that_does_not_fit_is_short() {
    let image = tiny("4096");
    let fs = mount(&image, MountOptions::default());
    let (_, fh) = create(&*fs, "big", RW);
    let data = contents(1, 0, 12 << 20);
    let written = fs.write(fh, 0, data.clone()).unwrap();
    assert!(written > 4 << 20 && written < data.len() && written.is_multiple_of(4096));
    assert_eq!(fs.write(fh, written as u64, Bytes::from_static(b"x")).unwrap_err().errno(), 28);
    assert_eq!(fs.read(fh, 0, data.len()).unwrap(), data[..written]);
    fs.release(fh).unwrap();
    fs.unmount().unwrap();
    image.assert_clean();
}
