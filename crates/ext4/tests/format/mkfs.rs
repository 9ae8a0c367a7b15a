//! File systems that we make, against those that mke2fs makes of the same size and options.

use std::collections::BTreeMap;
use std::sync::Arc;

use steadfast_block::{DeviceInfo, Persistence};
use steadfast_ext4::Ext4Error;
use steadfast_ext4_format::ondisk::{Compat, Features, RoCompat};
use steadfast_ext4_mkfs::{
    Contents, JournalChoice, JournalDeviceOptions, Options, make, make_journal_device,
};
use steadfast_host::Mount;
use uuid::Uuid;

use crate::sparse_image::{Image, can_mount, e2fsck, run_ok, uuid};

/// 2026-01-01.
const TIME: u64 = 1_767_225_600;
const MIB: u64 = 1 << 20;

fn options() -> Options {
    Options::new(uuid(1), uuid(2), TIME)
}

fn assert_clean(image: &Image) {
    let (status, text) = e2fsck(&image.path, None);
    assert_eq!(status, 0, "{text}");
}

/// What dumpe2fs says, but for what may differ: checksums, times, places, how much was written,
/// and the features of a journal that mke2fs leaves to the first mount.
fn dump(image: &Image) -> BTreeMap<String, String> {
    let text = run_ok("dumpe2fs", &[image.path.to_str().unwrap()]);
    let mut fields = BTreeMap::new();
    let mut group = String::new();
    for line in text.lines() {
        if let Some(number) = line.strip_prefix("Group ") {
            let flags = number.split('[').nth(1).unwrap_or("");
            group = number.split(')').next().unwrap_or("").into();
            fields.insert(format!("{group} flags"), flags.into());
        } else if line.contains(" free blocks, ") {
            fields.insert(format!("{group} counts"), line.trim().into());
        } else if let Some((name, value)) = line.split_once(':') {
            let skip = [
                "Filesystem UUID",
                "Directory Hash Seed",
                "Checksum",
                "Lifetime writes",
                "Filesystem created",
                "Last write time",
                "Last checked",
                "Journal features",
                "Journal checksum",
                "Checksum seed",
                "Max transaction length",
            ];
            if group.is_empty() && !skip.iter().any(|s| name.starts_with(s)) {
                fields.insert(name.into(), value.trim().into());
            }
        }
    }
    fields
}

fn compare(size: u64, block_size: u32, spoil: impl Fn(&mut Options), mke2fs: &[&str]) {
    compare_parts(size, block_size, spoil, mke2fs, true);
}

/// Compares, with or without what each group holds.
fn compare_parts(
    size: u64,
    block_size: u32,
    spoil: impl Fn(&mut Options),
    mke2fs: &[&str],
    groups: bool,
) {
    let ours = Image::new(size);
    let mut o = options();
    o.block_size = Some(block_size);
    o.contents = Contents::Zeros;
    spoil(&mut o);
    make(&ours.device(), &o).unwrap();
    assert_clean(&ours);
    let theirs = Image::new(size);
    let bs = block_size.to_string();
    let mut args = vec!["-q", "-F", "-b", &bs];
    if !mke2fs.contains(&"-E") {
        args.extend(["-E", "lazy_itable_init=1"]);
    }
    if !mke2fs.contains(&"-t") {
        args.extend(["-t", "ext4"]);
    }
    args.extend_from_slice(mke2fs);
    args.push(theirs.path.to_str().unwrap());
    run_ok("mke2fs", &args);
    let (a, b) = (dump(&ours), dump(&theirs));
    let is_group = |name: &str| name.ends_with(" counts");
    let clusters = mke2fs.iter().any(|arg| arg.contains("bigalloc"));
    // With clusters all bitmaps are written.
    let differs =
        |name: &str| (!groups && is_group(name)) || (clusters && name.ends_with(" flags"));
    for (name, value) in b.iter().filter(|(name, _)| !differs(name)) {
        let what = format!("{name}: {size} bytes, {block_size}, {mke2fs:?}");
        // By where the tables are, and so by how many of them share a cluster.
        if clusters && ["Free blocks", "Overhead clusters"].contains(&name.as_str()) {
            let number = |v: Option<&String>| v.and_then(|v| v.parse::<u64>().ok()).unwrap();
            let (ours, theirs) = (number(a.get(name)), number(Some(value)));
            let few = theirs / 50 + 64;
            assert!(ours.abs_diff(theirs) <= few, "{what}: {ours}, by mke2fs {theirs}");
        } else {
            assert_eq!(a.get(name), Some(value), "{what}");
        }
    }
    assert_eq!(a.len(), b.len());
}

#[test]
fn quota_files_are_the_same_as_mke2fs() {
    let cases: [(&str, RoCompat, Compat); 4] = [
        ("quota", RoCompat::QUOTA, Compat::empty()),
        ("project", RoCompat::PROJECT, Compat::empty()),
        ("quota,project", RoCompat::QUOTA.union(RoCompat::PROJECT), Compat::empty()),
        (
            "quota,project,orphan_file",
            RoCompat::QUOTA.union(RoCompat::PROJECT),
            Compat::ORPHAN_FILE,
        ),
    ];
    for (words, ro_compat, compat) in cases {
        let with = |o: &mut Options| {
            o.features.ro_compat |= ro_compat;
            o.features.compat |= compat;
        };
        compare(64 * MIB, 1024, with, &["-O", words]);
        compare(300 * MIB, 4096, with, &["-O", words]);
    }
    // Owners whose numbers share a part of the tree, none of it, or all.
    for owner in [(0, 0), (1, 300), (0x0102_0304, 0x0102_0305), (u32::MAX - 1, 7)] {
        let image = Image::new(64 * MIB);
        let mut o = options();
        o.features.ro_compat |= RoCompat::QUOTA | RoCompat::PROJECT;
        (o.root_owner, o.root_mode) = (owner, 0o1770);
        make(&image.device(), &o).unwrap();
        assert_clean(&image);
        let path = image.path.to_str().unwrap();
        let shown = run_ok("debugfs", &["-R", "stat /", path]);
        // debugfs shows the numbers with a sign.
        let expected = format!("User: {:5}   Group: {:5}", owner.0 as i32, owner.1 as i32);
        assert!(shown.contains(&expected) && shown.contains("01770"), "{shown}");
    }
}

#[test]
fn extended_options_are_the_same_as_mke2fs() {
    let extended = |o: &mut Options| {
        (o.raid_stride, o.raid_stripe_width) = (16, 64);
        o.grows_to = Some(1 << 24);
    };
    let words = "lazy_itable_init=1,stride=16,stripe_width=64,resize=16777216";
    compare_parts(300 * MIB, 4096, extended, &["-E", words], false);
}

#[test]
fn a_look_writes_nothing() {
    let image = Image::new(16 * MIB);
    let made = steadfast_ext4_mkfs::look(&image.device(), &options()).unwrap();
    assert_eq!((made.blocks, made.block_size), (16 << 10, 1024));
    assert!(std::fs::read(&image.path).unwrap().iter().all(|b| *b == 0));
}

#[test]
fn a_file_system_without_a_uuid_can_be_made() {
    let image = Image::new(16 * MIB);
    let o = Options { uuid: Uuid::nil(), ..options() };
    make(&image.device(), &o).unwrap();
    assert_clean(&image);
}

#[test]
fn ext2_and_ext3_are_the_same_as_mke2fs() {
    for (size, bs) in [(8 * MIB, 1024), (130 * MIB, 4096), (300 * MIB, 2048), (600 * MIB, 1024)] {
        let ext3 = |o: &mut Options| o.features = Options::ext2_features();
        // mke2fs spreads a journal without extents block by block from the first group on.
        compare_parts(size, bs, ext3, &["-t", "ext3"], false);
        let ext2 = |o: &mut Options| {
            ext3(o);
            o.journal = JournalChoice::None;
        };
        compare(size, bs, ext2, &["-t", "ext2"]);
        let old = |o: &mut Options| {
            ext2(o);
            o.inode_size = 128;
            for name in ["filetype", "sparse_super", "resize_inode", "dir_index", "large_file"] {
                o.features = o.features.without(Features::by_name(name).unwrap());
            }
        };
        let off = "^filetype,^sparse_super,^resize_inode,^dir_index,^large_file";
        compare(size, bs, old, &["-t", "ext2", "-I", "128", "-O", off]);
    }
}

#[test]
fn the_same_as_mke2fs() {
    for (size, bs) in [
        (8 * MIB, 1024),
        (9 * MIB + 12345, 1024),
        (8 * MIB, 4096),
        (16 * MIB, 2048),
        (64 * MIB, 1024),
        (64 * MIB, 4096),
        (130 * MIB, 4096),
        (257 * MIB, 1024),
        (300 * MIB, 2048),
        (600 * MIB, 4096),
        (1024 * MIB, 4096),
        (1024 * MIB, 1024),
        (5 * 1024 * MIB + 3 * MIB, 4096),
        (20 * 1024 * MIB, 4096),
    ] {
        compare(size, bs, |_| {}, &[]);
    }
}

#[test]
fn the_same_as_mke2fs_with_other_options() {
    let upstream = |o: &mut Options| o.features = Options::upstream_features();
    let off = |name: &'static str| {
        move |o: &mut Options| o.features = o.features.without(Features::by_name(name).unwrap())
    };
    let orphan = ["-O", "metadata_csum_seed,orphan_file"];
    compare(64 * MIB, 4096, upstream, &orphan);
    compare(2048 * MIB, 4096, upstream, &orphan);
    compare(512 * MIB, 4096, off("64bit"), &["-O", "^64bit"]);
    compare(100 * MIB, 1024, off("64bit"), &["-O", "^64bit"]);
    compare(512 * MIB, 4096, off("flex_bg"), &["-O", "^flex_bg"]);
    compare(100 * MIB, 1024, off("flex_bg"), &["-O", "^flex_bg"]);
    compare(512 * MIB, 4096, off("resize_inode"), &["-O", "^resize_inode"]);
    compare(512 * MIB, 4096, off("metadata_csum"), &["-O", "^metadata_csum"]);
    let old = |o: &mut Options| {
        off("metadata_csum")(o);
        o.features = o.features.union(Features::by_name("uninit_bg").unwrap());
    };
    compare(512 * MIB, 4096, old, &["-O", "^metadata_csum,uninit_bg"]);
    let meta_bg = |o: &mut Options| {
        off("resize_inode")(o);
        o.features = o.features.union(Features::by_name("meta_bg").unwrap());
    };
    compare(512 * MIB, 4096, meta_bg, &["-O", "^resize_inode,meta_bg"]);
    compare(400 * MIB, 1024, meta_bg, &["-O", "^resize_inode,meta_bg"]);
    let on = |name: &'static str| {
        move |o: &mut Options| o.features = o.features.union(Features::by_name(name).unwrap())
    };
    compare(512 * MIB, 4096, on("sparse_super2"), &["-O", "sparse_super2"]);
    compare(200 * MIB, 1024, on("sparse_super2"), &["-O", "sparse_super2"]);
    let none = |o: &mut Options| o.journal = JournalChoice::None;
    compare(64 * MIB, 4096, none, &["-O", "^has_journal"]);
    let big = |o: &mut Options| {
        o.journal = JournalChoice::InternalOf(20_000);
        o.label = "scratch".into();
        o.reserved_percent = 1.0;
        o.inode_ratio = Some(65536);
    };
    let args = ["-J", "size=78.125", "-L", "scratch", "-m", "1", "-i", "65536"];
    let args: Vec<&str> =
        args.iter().map(|a| if *a == "size=78.125" { "size=79" } else { a }).collect();
    let exact = |o: &mut Options| {
        big(o);
        o.journal = JournalChoice::InternalOf(79 * 256);
    };
    compare(700 * MIB, 4096, exact, &args);
    let inodes = |o: &mut Options| o.inodes = Some(20);
    compare(64 * MIB, 4096, inodes, &["-N", "20"]);
    compare(1024 * MIB, 4096, |o| o.inodes = Some(1_000_000), &["-N", "1000000"]);
    compare(64 * MIB, 4096, |o| o.inode_size = 512, &["-I", "512"]);
    compare(512 * MIB, 4096, |o| o.groups_per_flex = 4, &["-G", "4"]);
}

/// The kernel of a machine with pages of 4 KiB mounts them since Linux 6.19 only.
#[test]
fn large_blocks_as_mke2fs() {
    for (mib, bs) in [(200, 8192), (200, 16384), (200, 65536), (2100, 65536)] {
        compare(mib * MIB, bs, |_| {}, &[]);
        compare(mib * MIB, bs, |o| o.inode_ratio = Some(1024), &["-i", "1024"]);
    }
}

/// In clusters.
fn bigalloc(cluster_size: Option<u32>, upstream: bool) -> impl Fn(&mut Options) {
    move |o: &mut Options| {
        if upstream {
            o.features = Options::upstream_features();
        }
        o.features = o.features.union(Features::by_name("bigalloc").unwrap());
        o.cluster_size = cluster_size;
    }
}

#[test]
fn clusters_as_mke2fs() {
    for (mib, bs, cluster) in [
        (200, 4096, 65536),
        (200, 1024, 16384),
        (64, 4096, 16384),
        (300, 1024, 2048),
        (3000, 4096, 8192),
        (64, 2048, 1 << 20),
    ] {
        let size = cluster.to_string();
        // Where mke2fs puts tables, and so how many share a cluster, differs.
        let args = ["-O", "bigalloc", "-C", &size];
        compare_parts(mib * MIB, bs, bigalloc(Some(cluster), false), &args, false);
    }
    let args = ["-O", "bigalloc,metadata_csum_seed,orphan_file"];
    compare_parts(100 * MIB + 7000, 4096, bigalloc(None, true), &args, false);
    let old = |o: &mut Options| {
        bigalloc(Some(16384), false)(o);
        for name in ["flex_bg", "64bit", "resize_inode", "metadata_csum"] {
            o.features = o.features.without(Features::by_name(name).unwrap());
        }
    };
    let off = "bigalloc,^flex_bg,^64bit,^resize_inode,^metadata_csum";
    compare_parts(300 * MIB, 1024, old, &["-O", off, "-C", "16384"], false);
}

#[test]
fn unknown_contents_are_overwritten_where_it_matters() {
    for contents in [Contents::Unknown, Contents::UnknownZeroTables] {
        for metadata_csum in [true, false] {
            let image = Image::new(100 * MIB);
            let noise: Vec<u8> = (0..MIB).map(|i| (i * 7 % 251) as u8 | 1).collect();
            (0..100).for_each(|i| image.poke(i * MIB, &noise));
            let mut o = options();
            o.contents = contents;
            if !metadata_csum {
                o.features = o.features.without(Features::by_name("metadata_csum").unwrap());
            }
            make(&image.device(), &o).unwrap();
            assert_clean(&image);
        }
    }
}

#[test]
fn the_same_options_make_the_same_bytes() {
    let image = || {
        let i = Image::new(50 * MIB);
        make(&i.device(), &options()).unwrap();
        i.bytes(0, (50 * MIB) as usize)
    };
    assert!(image() == image());
}

#[test]
fn what_cannot_be_is_refused_and_nothing_is_written() {
    type Spoil = fn(&mut Options);
    let cases: [(u64, &str, Spoil); 13] = [
        (64 * MIB, "blocks of 3000", |o| o.block_size = Some(3000)),
        (64 * MIB, "longer than 16", |o| o.label = "seventeen letters".into()),
        (64 * MIB, "do not fit", |o| o.blocks = Some(1 << 40)),
        (64 * MIB, "too small for a journal", |o| o.blocks = Some(2000)),
        (64 * MIB, "more than half", |o| o.journal = JournalChoice::InternalOf(60_000)),
        (64 * MIB, "at least 1024", |o| o.journal = JournalChoice::InternalOf(7)),
        (64 * MIB, "inodes of 100", |o| o.inode_size = 100),
        (64 * 1024, "too small", |_| {}),
        (0, "too small", |_| {}),
        (64 * MIB, "bigalloc", |o| o.cluster_size = Some(65536)),
        (64 * MIB, "clusters of 1024", |o| {
            o.cluster_size = Some(1024);
            o.features = o.features.union(Features::by_name("bigalloc").unwrap());
        }),
        (64 * MIB, "bigalloc needs extent", |o| {
            o.features = Options::ext2_features().union(Features::by_name("bigalloc").unwrap());
        }),
        (64 * MIB, "verity", |o| {
            o.features = o.features.union(Features::by_name("verity").unwrap());
        }),
    ];
    for (size, part, spoil) in cases {
        let image = Image::new(size);
        image.poke(0, &vec![0x55; size.min(8192) as usize]);
        let mut o = options();
        spoil(&mut o);
        let error = make(&image.device(), &o).unwrap_err();
        // A feature that exists, and that mkfs cannot make, is not used wrongly.
        let fits = match part {
            "verity" => matches!(error, Ext4Error::Unsupported { .. }),
            _ => matches!(error, Ext4Error::Refused { .. }),
        };
        assert!(fits, "{part}: {error}");
        assert!(error.to_string().contains(part), "{part}: {error}");
        assert!(image.bytes(0, size.min(8192) as usize).iter().all(|b| *b == 0x55));
    }
}

#[test]
fn tiny_devices_are_refused_or_get_a_sound_file_system() {
    let mut made = 0;
    for bs in [1024, 2048, 4096] {
        for kib in (0..400).chain((400..4096).step_by(333)) {
            let image = Image::new(kib * 1024);
            let mut o = options();
            o.block_size = Some(bs);
            o.journal = JournalChoice::None;
            match make(&image.device(), &o) {
                Ok(_) => {
                    if kib % 7 == 0 {
                        assert_clean(&image);
                    }
                    made += 1;
                }
                Err(Ext4Error::Refused { .. }) => {}
                Err(e) => panic!("{kib} KiB, {bs}: {e}"),
            }
        }
    }
    assert!(made > 500, "{made}");
}

fn journal_device(size: u64, block_size: u32) -> Arc<Image> {
    let image = Image::new(size);
    let mut o = JournalDeviceOptions::new(uuid(3), TIME);
    o.block_size = block_size;
    make_journal_device(&image.device(), &o).unwrap();
    image
}

fn external(journal: &Arc<Image>) -> JournalChoice {
    JournalChoice::External { device: journal.device(), accept_volatile: false }
}

#[test]
fn an_external_journal_is_attached() {
    for bs in [1024, 2048, 4096] {
        let journal = journal_device(16 * MIB, bs);
        let dump = run_ok("dumpe2fs", &[journal.path.to_str().unwrap()]);
        assert!(dump.contains("journal_dev") && dump.contains("number of users:  0"), "{dump}");
        let image = Image::new(64 * MIB);
        let mut o = options();
        o.block_size = Some(bs);
        o.journal = external(&journal);
        let made = make(&image.device(), &o).unwrap();
        assert_eq!(made.external_journal, Some(uuid(3)));
        let (status, text) = e2fsck(&image.path, Some(&journal.path));
        assert_eq!(status, 0, "{text}");
        let dump = run_ok("dumpe2fs", &[journal.path.to_str().unwrap()]);
        assert!(dump.contains(&uuid(1).to_string()), "{dump}");
    }
}

#[test]
fn a_journal_in_use_or_unfit_is_refused() {
    let journal = journal_device(16 * MIB, 4096);
    let first = Image::new(64 * MIB);
    let mut o = options();
    o.block_size = Some(4096);
    o.journal = external(&journal);
    make(&first.device(), &o).unwrap();
    let refused = |o: &Options, part: &str| {
        let image = Image::new(64 * MIB);
        let error = make(&image.device(), o).unwrap_err();
        assert!(error.to_string().contains(part), "{part}: {error}");
        assert!(image.bytes(0, 4096).iter().all(|b| *b == 0));
    };
    // A second file system on the same journal makes the first unmountable.
    o.uuid = uuid(9);
    refused(&o, "already the journal");
    o.block_size = Some(1024);
    refused(&o, "must be equal");
    o.block_size = Some(4096);
    o.journal = external(&first);
    refused(&o, "holds a file system");
    let small = Image::new(2 * MIB);
    let error = make_journal_device(&small.device(), &JournalDeviceOptions::new(uuid(4), TIME))
        .unwrap_err();
    assert!(error.to_string().contains("at least 1024"), "{error}");
}

/// A journal that would be lost with the power is taken only by whoever insists.
#[test]
fn a_volatile_journal_needs_consent() {
    type Change = fn(&mut DeviceInfo);
    let cases: [(&str, Change); 2] = [
        ("battery 1 has failed", |i| {
            i.persistence = Persistence::Volatile { reason: "battery 1 has failed".into() };
        }),
        ("never been initialised", |i| i.initialised = false),
    ];
    for (part, change) in cases {
        let journal = Image::with(16 * MIB, change);
        let mut how = JournalDeviceOptions::new(uuid(3), TIME);
        let error = make_journal_device(&journal.device(), &how).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert!(journal.bytes(0, 4096).iter().all(|b| *b == 0));
        how.accept_volatile = true;
        make_journal_device(&journal.device(), &how).unwrap();

        let image = Image::new(64 * MIB);
        let mut o = options();
        o.block_size = Some(4096);
        o.journal = external(&journal);
        let error = make(&image.device(), &o).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert!(image.bytes(0, 4096).iter().all(|b| *b == 0));
        o.journal = JournalChoice::External { device: journal.device(), accept_volatile: true };
        make(&image.device(), &o).unwrap();
        let (status, text) = e2fsck(&image.path, Some(&journal.path));
        assert_eq!(status, 0, "{text}");
    }
}

#[test]
fn sectors_of_4_kib() {
    let image = Image::with(64 * MIB, |i| i.logical_block = 4096);
    make(&image.device(), &options()).unwrap();
    assert_clean(&image);
    let mut small = options();
    small.block_size = Some(1024);
    let error = make(&image.device(), &small).unwrap_err();
    assert!(error.to_string().contains("too small"), "{error}");
}

#[test]
fn the_kernel_mounts_what_we_make() {
    if !can_mount() {
        return;
    }
    for (size, bs, upstream, cluster) in [
        (8, 1024, false, None),
        (64, 2048, true, None),
        (300, 4096, true, None),
        (64, 1024, false, Some(16384)),
        (300, 4096, true, Some(65536)),
    ] {
        let image = Image::new(size * MIB);
        let mut o = options();
        o.block_size = Some(bs);
        if upstream {
            o.features = Options::upstream_features();
        }
        if cluster.is_some() {
            bigalloc(cluster, upstream)(&mut o);
        }
        make(&image.device(), &o).unwrap();
        let mount = Mount::of_image(&image.path, None, "").unwrap();
        for i in 0..100 {
            let dir = mount.path().join(format!("d{i}"));
            std::fs::create_dir(&dir).unwrap();
            std::fs::write(dir.join("file"), vec![i as u8; 5000]).unwrap();
        }
        drop(mount);
        assert_clean(&image);
    }
}

#[test]
fn the_kernel_mounts_with_our_external_journal() {
    if !can_mount() {
        return;
    }
    for bs in [1024, 4096] {
        let journal = journal_device(16 * MIB, bs);
        let image = Image::new(64 * MIB);
        let mut o = options();
        o.block_size = Some(bs);
        o.journal = external(&journal);
        make(&image.device(), &o).unwrap();
        let mount = Mount::of_image(&image.path, Some(&journal.path), "").unwrap();
        std::fs::write(mount.path().join("file"), vec![7; 100_000]).unwrap();
        drop(mount);
        let (status, text) = e2fsck(&image.path, Some(&journal.path));
        assert_eq!(status, 0, "{text}");
    }
}
