//! Our check against e2fsck -fn: on sound images, on planted damage, on random flips.

use std::io::Write;
use std::sync::Arc;

use steadfast_ext4::Ext4Error;
use steadfast_ext4_check::{FindingKind, Report, check, info};
use steadfast_ext4_format::ondisk::{Extent, ExtentLeaf, Layout, Superblock};
use steadfast_ext4_mkfs::{Contents, JournalDeviceOptions, Options, make, make_journal_device};
use steadfast_host::Mount;
use steadfast_journal::{Log, LogBlock, LogExtent, recover_dry};
use zerocopy::FromBytes;

use crate::sparse_image::{Image, can_mount, e2fsck, run_ok, uuid};

const MIB: u64 = 1 << 20;

fn report(image: &Arc<Image>) -> Report {
    check(&image.device(), None).unwrap()
}

fn texts(report: &Report) -> String {
    report.findings.iter().map(|f| format!("{:?} {f}\n", f.kind)).collect()
}

/// Where we are right to see more than e2fsck -n: it looks at the first quarter of the resize
/// inode's pointers only, not at all at the list of orphans, and lets a flag pass for which the
/// kernel refuses the file.
fn sees_more(report: &Report) -> bool {
    report.findings.iter().all(|f| {
        matches!(f.kind, FindingKind::ResizeInode | FindingKind::Orphan)
            || (f.kind == FindingKind::InodeFlags && f.text.contains("ea_inode"))
    })
}

/// Both call the image clean.
fn assert_clean(image: &Arc<Image>) -> Report {
    let (status, text) = e2fsck(&image.path, None);
    assert_eq!(status, 0, "{text}");
    let report = report(image);
    assert!(report.is_clean(), "{}", texts(&report));
    report
}

/// e2fsck's verdict. It ends with status 0 also when it has only offered to correct a counter.
fn e2fsck_is_clean(image: &Image) -> (bool, String) {
    let (status, text) = e2fsck(&image.path, None);
    (status == 0 && !text.contains("? no"), text)
}

/// Names that hash differently, long enough to fill an index of two levels with 1 KiB blocks.
fn long_name(i: usize) -> String {
    format!("{i:05}-{}", "n".repeat(200 + i % 40))
}

/// Fills a mounted file system with one of everything.
fn populate(mount: &Mount) {
    use std::os::unix::fs::{FileExt, symlink};
    let root = mount.path();
    for i in 0..40 {
        let dir = root.join(format!("dir{i}/sub"));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("file"), vec![i as u8; 100 * i]).unwrap();
    }
    let indexed = root.join("indexed");
    std::fs::create_dir(&indexed).unwrap();
    for i in 0..600 {
        std::fs::write(indexed.join(long_name(i)), b"").unwrap();
    }
    let sparse = std::fs::File::create(root.join("sparse")).unwrap();
    for i in 0..120 {
        sparse.write_all_at(&[7; 100], i * 10_000).unwrap();
    }
    symlink("short", root.join("fast")).unwrap();
    symlink("l".repeat(100), root.join("slow")).unwrap();
    std::fs::hard_link(root.join("sparse"), root.join("dir1/link")).unwrap();
    let at = |name: &str| root.join(name).to_str().unwrap().to_string();
    run_ok("mkfifo", &[&at("fifo")]);
    run_ok("mknod", &[&at("null"), "c", "1", "3"]);
    run_ok("fallocate", &["-l", "50000", &at("allocated")]);
    std::fs::write(root.join("beyond"), b"").unwrap();
    run_ok("fallocate", &["-n", "-l", "50000", &at("beyond")]);
    std::fs::remove_dir_all(root.join("dir9")).unwrap();
    for i in (0..600).step_by(3) {
        std::fs::remove_file(indexed.join(long_name(i))).unwrap();
    }
}

fn populated(size: u64, options: &[&str]) -> Option<Arc<Image>> {
    if !can_mount() {
        return None;
    }
    // The same names in the same places of an index, and the same checksums, whenever it runs.
    let seed = "c7b0bd5e-7a0b-4f70-9c29-2b9a9a1f3d11";
    let same = ["-U", seed, "-E", &format!("hash_seed={seed}")];
    let image = Image::mke2fs(size, &[options, &same].concat());
    populate(&Mount::of_image(&image.path, None, "").unwrap());
    for (file, size) in [("sparse", 20), ("dir3", 700), ("dir4", 700)] {
        let value = "v".repeat(size);
        image.debugfs(&[&format!("ea_set /{file} user.test {value}")]);
    }
    Some(image)
}

#[test]
fn what_we_make_is_clean() {
    for bs in [1024, 4096] {
        for features in [Options::debian_features(), Options::upstream_features()] {
            let image = Image::new(100 * MIB);
            let mut o = Options::new(uuid(1), uuid(2), 1_767_225_600);
            o.features = features;
            o.block_size = Some(bs);
            make(&image.device(), &o).unwrap();
            let report = assert_clean(&image);
            assert_eq!(report.counts.directories, 2);
        }
    }
}

#[test]
fn info_says_what_dumpe2fs_says() {
    for options in [&["-b", "1024", "-L", "label"][..], &["-O", "orphan_file,metadata_csum_seed"]] {
        let image = Image::mke2fs(64 * MIB, options);
        let theirs = run_ok("dumpe2fs", &["-h", image.path.to_str().unwrap()]);
        let theirs: Vec<(&str, &str)> = theirs
            .lines()
            .filter_map(|l| l.split_once(':'))
            .map(|(name, value)| (name.trim(), value.trim()))
            .collect();
        let (mut same, times) = (0, ["created", "Last mount", "Last write", "Last checked"]);
        for (name, value) in info(&image.device()).unwrap().rows() {
            if times.iter().any(|t| name.contains(t)) {
                continue;
            }
            let value = value.to_string();
            assert!(theirs.contains(&(name, &value)), "{name}: {value}\n{theirs:?}");
            same += 1;
        }
        assert!(same > 30, "{same}");
    }
    let journal = Image::new(8 * MIB);
    make_journal_device(&journal.device(), &JournalDeviceOptions::new(uuid(3), 5)).unwrap();
    let info = info(&journal.device()).unwrap();
    assert!(info.is_journal_device && info.uuid == uuid(3) && info.blocks == 2048);
}

#[test]
fn what_the_kernel_writes_is_clean() {
    for options in [
        &["-b", "1024"][..],
        &["-b", "4096"],
        &["-b", "2048", "-O", "orphan_file,metadata_csum_seed"],
        &["-b", "1024", "-O", "^64bit"],
        &["-b", "1024", "-O", "^metadata_csum,uninit_bg"],
        &["-b", "4096", "-O", "^metadata_csum"],
        &["-b", "1024", "-O", "^flex_bg"],
        &["-b", "1024", "-O", "^resize_inode,^has_journal"],
        &["-b", "1024", "-I", "128", "-O", "^extra_isize"],
    ] {
        let Some(image) = populated(48 * MIB, options) else { return };
        let report = assert_clean(&image);
        assert_eq!(report.counts.directories, 2 + 1 + 39 * 2, "{options:?}");
        assert_eq!(report.counts.symlinks, 2);
    }
}

#[test]
fn a_big_file_system_with_little_in_it_is_quick() {
    let image = Image::new(146 * 1_000_000_000);
    let mut o = Options::new(uuid(1), uuid(2), 1_767_225_600);
    o.contents = Contents::Zeros;
    make(&image.device(), &o).unwrap();
    let start = std::time::Instant::now();
    let report = report(&image);
    assert!(report.is_clean(), "{}", texts(&report));
    assert!(start.elapsed().as_millis() < 1000, "{:?}", start.elapsed());
}

/// Damage by debugfs, which keeps checksums right: what is wrong is the meaning.
#[test]
fn planted_damage_is_found_by_both() {
    use FindingKind as K;
    let cases: &[(&[&str], &[FindingKind])] = &[
        (&["sif /dir1/link links_count 5"], &[K::LinkCount]),
        (&["sif /sparse size 3"], &[K::InodeSize]),
        (&["sif /sparse blocks 4"], &[K::InodeBlocks]),
        (&["sif /dir5 links_count 9"], &[K::LinkCount]),
        (&["sif /dir5 size 1000"], &[K::InodeSize]),
        (&["sif /dir5 mode 0100644"], &[K::EntryType]),
        (&["sif /dir6 mode 0"], &[K::InodeMode]),
        (&["sif /fast size 9"], &[K::Symlink]),
        (&["sif /slow size 99"], &[K::Symlink]),
        (&["sif /fifo size 99"], &[K::InodeSize]),
        (&["sif /sparse flags 0"], &[K::InodeFlags]),
        (&["sif /fast flags 0x80000"], &[K::Symlink]),
        (&["sif /null flags 0x80000"], &[K::InodeFlags]),
        (&["sif /sparse flags 0x81000"], &[K::InodeFlags]),
        (&["sif /sparse faddr 7"], &[K::InodeField]),
        (&["sif /sparse dtime 1700000000"], &[K::InodeField]),
        (&["sif /sparse extra_isize 3"], &[K::InodeField]),
        (&["clri /dir7"], &[K::EntryInode]),
        (&["clri <7>"], &[K::ResizeInode]),
        (&["unlink /dir2/sub"], &[K::Unattached]),
        (&["unlink /null"], &[K::Unattached]),
        (&["ln /dir3 /second"], &[K::EntryInode]),
        (&["ln /null /dir1/another"], &[K::LinkCount]),
        (&["freei /sparse"], &[K::InodeBitmap]),
        (&["seti <1000>"], &[K::InodeBitmap]),
        (&["freeb 40 2"], &[K::BlockBitmap]),
        (&["setb 49000 3"], &[K::BlockBitmap]),
        (&["set_super_value free_blocks_count 77"], &[K::FreeBlocks]),
        (&["set_super_value free_inodes_count 77"], &[K::FreeInodes]),
        (&["set_super_value r_blocks_count 40000"], &[K::Superblock]),
        (&["set_bg 1 free_blocks_count 7", "set_bg 1 checksum calc"], &[K::FreeBlocks]),
        (&["set_bg 0 free_inodes_count 7", "set_bg 0 checksum calc"], &[K::FreeInodes]),
        (&["set_bg 0 used_dirs_count 7", "set_bg 0 checksum calc"], &[K::UsedDirectories]),
        (&["set_bg 0 inode_table 100", "set_bg 0 checksum calc"], &[K::MetadataPlace]),
        (&["set_bg 2 checksum 5"], &[K::GroupDescriptorChecksum]),
        (&["sif /dir8 block[0] 5"], &[K::ExtentNode]),
        (&["sif /dir8 block[1] 0x20000"], &[K::ExtentNode]),
        (&["sif /dir8 block[5] 99999999"], &[K::ExtentRange]),
        (&["sif /dir8 block[5] 10"], &[K::BlockShared]),
        (&["sif /dir8 block[3] 1"], &[K::DirectoryHole]),
        (&["sif /dir3 file_acl 9999999"], &[K::XattrBlock]),
        (&["sif <8> mode 040755"], &[K::ReservedInode]),
        (&["sif <6> mode 0100644"], &[K::ReservedInode]),
        (&["sif <2> mode 0100644"], &[K::InodeMode]),
        (&["sif /dir5 links_count 1"], &[K::LinkCount]),
        (&["sif /indexed flags 0x80000"], &[]),
        (&["sif /dir5 flags 0x81000"], &[K::IndexRoot]),
        (&["rmdir /lost+found"], &[]),
        // A loop: dir2 gets its name in its own subdirectory.
        (&["cd /dir2/sub", "ln /dir2 loop", "unlink /dir2"], &[K::DirectoryLoop]),
        (&["sif /dir10/sub/file block[5] 1200"], &[]),
        (&["sif /dir11/sub/file block[4] 0x10001"], &[]),
        (&["sif /sparse generation 5"], &[K::ExtentChecksum]),
        (&["sif /dir12 generation 5"], &[K::DirectoryChecksum]),
        (&["set_inode_field /beyond flags 0"], &[K::InodeFlags]),
        (&["set_super_value journal_inum 9"], &[K::Journal]),
        (&["set_super_value feature_compat 0"], &[]),
        (&["set_super_value uuid clear"], &[]),
    ];
    let Some(base) = populated(48 * MIB, &["-b", "1024"]) else { return };
    for (requests, kinds) in cases {
        let image = base.copy();
        image.debugfs(requests);
        let (theirs, text) = e2fsck_is_clean(&image);
        let report = report(&image);
        assert_eq!(theirs, report.is_clean(), "{requests:?}\n{text}\n{}", texts(&report));
        for kind in *kinds {
            let found = report.findings.iter().any(|f| f.kind == *kind);
            assert!(found, "{requests:?}: no {kind:?}\n{text}\n{}", texts(&report));
        }
    }
}

/// Blocks that hold metadata of a populated image, by number.
fn metadata_blocks(image: &Arc<Image>) -> (u64, Vec<u64>) {
    let sb = Superblock::parse_unchecked(&image.bytes(1024, 1024)).unwrap();
    let layout = Layout::new(&sb, u64::MAX).unwrap();
    let bs = u64::from(layout.block_size);
    let mut blocks = vec![layout.first_data_block, layout.first_data_block + 1];
    let text = run_ok("dumpe2fs", &[image.path.to_str().unwrap()]);
    for line in text.lines() {
        for what in ["Block bitmap at ", "Inode bitmap at "] {
            if let Some(rest) = line.trim().strip_prefix(what) {
                blocks.push(rest.split([' ', ',']).next().unwrap().parse().unwrap());
            }
        }
        if let Some(rest) = line.trim().strip_prefix("Inode table at ") {
            let first: u64 = rest.split('-').next().unwrap().parse().unwrap();
            blocks.extend(first..first + 12);
        }
    }
    let debugfs =
        |request: String| run_ok("debugfs", &["-R", &request, image.path.to_str().unwrap()]);
    for name in ["/", "/lost+found", "/indexed", "/dir1", "/dir1/sub", "/slow", "<7>"] {
        let numbers = debugfs(format!("blocks {name}"));
        let numbers = numbers.split_whitespace().filter_map(|n| n.parse::<u64>().ok());
        blocks.extend(numbers.take(60));
    }
    for name in ["/sparse", "/dir3"] {
        let text = debugfs(format!("stat {name}"));
        for (before, after) in [("(ETB0):", [' ', ',', '\n']), ("File ACL: ", [' ', ',', '\n'])] {
            let numbers = text.split(before).skip(1);
            let numbers = numbers.filter_map(|t| t.split(after).next()?.trim().parse::<u64>().ok());
            blocks.extend(numbers.filter(|n| *n != 0));
        }
    }
    (bs, blocks)
}

/// A small generator of numbers, so that a failure can be repeated.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % below
    }
}

/// `STEADFAST_SOAK` multiplies the number of flips.
fn flips(options: &[&str], count: usize, seed: u64) {
    let soak = std::env::var("STEADFAST_SOAK").ok().and_then(|v| v.parse().ok()).unwrap_or(1usize);
    let count = count * soak.max(1);
    let Some(image) = populated(8 * MIB, options) else { return };
    let (bs, blocks) = metadata_blocks(&image);
    let mut numbers = Numbers(seed);
    let (mut damaged, mut differ) = (0, Vec::new());
    for _ in 0..count {
        let block = blocks[numbers.next(blocks.len() as u64) as usize];
        let at = block * bs + numbers.next(bs.min(1024));
        let bit = 1u8 << numbers.next(8);
        let old = image.bytes(at, 1);
        image.poke(at, &[old[0] ^ bit]);
        let (theirs, text) = e2fsck_is_clean(&image);
        let (clean, ours) = match check(&image.device(), None) {
            Ok(report) if theirs && sees_more(&report) => (true, String::new()),
            Ok(report) => (report.is_clean(), texts(&report)),
            // A feature that e2fsck knows and we do not.
            Err(Ext4Error::Unsupported { .. }) => (theirs, String::new()),
            Err(Ext4Error::Refused { what }) => (false, what),
            Err(e) => panic!("{e}"),
        };
        damaged += usize::from(!clean);
        // We do not know what time it is.
        if theirs != clean && !text.contains("is in the future") {
            let what = format!("block {block}, byte {at}, bit {bit:#x}\n{text}{ours}");
            // At once, past the harness: a soak goes on for hours.
            let _ = writeln!(std::io::stderr(), "FOUND: {options:?}: {what}");
            differ.push(what);
        }
        image.poke(at, &old);
    }
    assert!(damaged > 0);
    assert!(differ.is_empty(), "{} of {count} differ:\n{}", differ.len(), differ.join("\n---\n"));
}

#[test]
fn random_flips_with_checksums() {
    flips(&["-b", "1024"], 150, 1);
    flips(&["-b", "4096", "-O", "orphan_file,metadata_csum_seed"], 50, 2);
}

#[test]
fn random_flips_without_checksums() {
    flips(&["-b", "1024", "-O", "^metadata_csum"], 150, 3);
    flips(&["-b", "1024", "-O", "^metadata_csum,uninit_bg"], 50, 4);
}

/// The log of an internal journal, by the copy of its inode in the superblock.
fn log_of(image: &Arc<Image>) -> Log {
    let sb = Superblock::parse_unchecked(&image.bytes(1024, 1024)).unwrap();
    let map: Vec<u8> = sb.journal_blocks.iter().flat_map(|w| w.get().to_le_bytes()).collect();
    let entries = usize::from(map[2]);
    let extents = map[12..].chunks(12).take(entries).map(|leaf| {
        let e = Extent::from(ExtentLeaf::read_from_bytes(leaf).unwrap());
        LogExtent { log_block: LogBlock(e.logical), device_block: e.start, len: e.len }
    });
    Log::internal(image.device(), sb.block_size().unwrap(), extents.collect()).unwrap()
}

/// A copy of a mounted file system is what a power cut leaves: judged by what its journal holds,
/// without writing to it.
#[test]
fn a_cut_file_system_is_clean_with_its_journal_in_place() {
    for options in [
        &["-b", "1024"][..],
        &["-b", "4096"],
        &["-b", "1024", "-O", "orphan_file,metadata_csum_seed"],
    ] {
        if !can_mount() {
            return;
        }
        let image = Image::mke2fs(32 * MIB, options);
        let mount = Mount::of_image(&image.path, None, "").unwrap();
        let held = std::fs::File::create(mount.path().join("orphan")).unwrap();
        std::io::Write::write_all(&mut &held, &[1; 100_000]).unwrap();
        for i in 0..200 {
            std::fs::write(mount.path().join(long_name(i)), vec![2; 3000]).unwrap();
        }
        std::fs::remove_file(mount.path().join("orphan")).unwrap();
        run_ok("sync", &["-f", mount.path().to_str().unwrap()]);
        let cut = image.copy();
        drop(held);
        drop(mount);
        assert_clean(&image);

        let (recovery, overlay) = recover_dry(&log_of(&cut), &*cut.device()).unwrap();
        assert!(recovery.transactions > 0);
        let report = check(&cut.device(), Some(&overlay)).unwrap();
        assert!(report.is_clean(), "{options:?}\n{}", texts(&report));
        assert!(report.needs_recovery);
        assert_eq!(report.orphans.len(), 1, "{options:?}");
        assert!(report.counts.files > 200);
    }
}

/// Heavier damage, for ourselves alone: whatever the bytes, an answer in bounded time.
#[test]
fn rubbish_is_answered() {
    let options = ["-b", "1024", "-O", "^metadata_csum"];
    for (options, seed) in [(&options[..], 5), (&["-b", "1024"], 6)] {
        let Some(image) = populated(8 * MIB, options) else { return };
        let (bs, blocks) = metadata_blocks(&image);
        let mut numbers = Numbers(seed);
        let start = std::time::Instant::now();
        for round in 0..400 {
            let mut undo = Vec::new();
            for _ in 0..1 + round % 40 {
                let block = blocks[numbers.next(blocks.len() as u64) as usize];
                // Not the superblock all the time: nothing else would be looked at.
                let at = block * bs + numbers.next(bs);
                if at < 2048 && round % 10 != 0 {
                    continue;
                }
                let len = 1 + numbers.next(8).min(bs - at % bs - 1) as usize;
                undo.push((at, image.bytes(at, len)));
                let values = [0, 1, 0x7f, 0x80, 0xff, numbers.next(256) as u8];
                let value = values[numbers.next(values.len() as u64) as usize];
                image.poke(at, &vec![value; len]);
            }
            match check(&image.device(), None) {
                Ok(report) => assert!(report.findings.len() <= 1000),
                Err(
                    Ext4Error::Unsupported { .. }
                    | Ext4Error::Refused { .. }
                    | Ext4Error::NoFileSystem { .. },
                ) => {}
                Err(e) => panic!("{e}"),
            }
            undo.iter().rev().for_each(|(at, bytes)| image.poke(*at, bytes));
        }
        let each = start.elapsed() / 400;
        assert!(each.as_millis() < 500, "{each:?} a check");
        assert!(report(&image).is_clean());
    }
}

#[test]
fn a_truncated_image_is_a_finding_and_nonsense_no_file_system() {
    for size in [0, 512, 1024, 2048, 4096, 100_000] {
        let said = check(&Image::new(size).device(), None);
        assert!(matches!(said, Err(Ext4Error::NoFileSystem { .. })), "{size}: {said:?}");
    }
    let whole = Image::mke2fs(8 * MIB, &["-b", "1024"]);
    let short = Image::new(7 * MIB);
    short.poke(0, &whole.bytes(0, (7 * MIB) as usize));
    let text = texts(&report(&short));
    assert!(text.contains("cut short"), "{text}");
}
