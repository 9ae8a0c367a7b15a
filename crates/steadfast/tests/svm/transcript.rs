//! The session of "Using a SVM submirror on a ramdisk to increase read performance" (B. Schemmer,
//! 2008), command for command: a mirror of two disks, a RAM disk as its third submirror, the order
//! that makes it the first, the read option; then what its author had to do by hand after a boot.

use super::host::{Host, form};
use super::text;

const DISK: u64 = 24 << 20;

/// Bytes that are not all the same.
fn pattern(seed: u32) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..300_000).map(|_| next()).collect()
}

/// "Installation", up to the mirror of two disks with a file system.
fn two_disks(host: &Host) {
    let setup = "Concat/Stripe is setup\n";
    assert_eq!(host.good("metainit d11 1 1 c0d1s0"), format!("d11: {setup}"));
    assert_eq!(host.good("metainit d12 1 1 c1d0s0"), format!("d12: {setup}"));
    assert_eq!(host.good("metainit d10 -m d11"), "d10: Mirror is setup\n");
    assert_eq!(host.good("metattach d10 d12"), "d10: submirror d12 is attached\n");
    let two = "d10 -m d11 d12 1\nd11 1 1 c0d1s0\nd12 1 1 c1d0s0\n";
    assert_eq!(host.good("metastat -p d10"), two);
    // newfs, mount, and a file.
    host.ours("mkfs tree/rdsk/d10");
    std::fs::write(host.path().join("first"), pattern(1)).unwrap();
    host.ours("put tree/dsk/d10 first /first");
}

/// The RAM disk becomes the third submirror.
fn third_submirror(host: &Host) {
    let path = host.file("ramdisk/testdisk");
    assert_eq!(host.good("ramdiskadm -a testdisk 24m"), format!("{}\n", path.display()));
    std::os::unix::fs::symlink(&path, host.file("dsk/c5t0d0s0")).unwrap();
    std::os::unix::fs::symlink("/dev/rramdisk/testdisk", host.file("rdsk/c5t0d0s0")).unwrap();
    assert!(host.file("rdsk/c5t0d0s0").symlink_metadata().unwrap().is_symlink());
    assert_eq!(host.good("metainit d13 1 1 c5t0d0s0"), "d13: Concat/Stripe is setup\n");
    let concat = "\
d13: Concat/Stripe
    Size: N blocks (N MB)
    Stripe 0:
        Device     Start Block  Dbase   Reloc
        c5t0d0s0          0     No      No

Device Relocation Information:
Device   Reloc  Device ID
c5t0d0   No     -
";
    assert_eq!(form(&host.good("metastat d13")), concat);
    assert_eq!(host.good("metattach d10 d13"), "d10: submirror d13 is attached\n");
    let three = "d10 -m d11 d12 d13 1\nd11 1 1 c0d1s0\nd12 1 1 c1d0s0\nd13 1 1 c5t0d0s0\n";
    assert_eq!(host.good("metastat -p d10"), three);
    let parameters = "\
d10: Mirror current parameters are:
    Pass: 1
    Read option: roundrobin (default)
    Write option: parallel (default)
";
    assert_eq!(host.good("metaparam d10"), parameters);
    assert_eq!(host.run("metaparam").status.code(), Some(1));
}

/// The mirror is cleared and made again with the RAM disk as its first submirror.
fn recreated_in_another_order(host: &Host) {
    // "ensure that all three submirrors are in sync".
    host.until_in_sync();
    assert!(!host.good("metastat").contains("sync"));
    assert_eq!(host.good("metaclear d10"), "d10: Mirror is cleared\n");
    assert_eq!(host.good("metainit d10 -m d13"), "d10: Mirror is setup\n");
    assert_eq!(host.good("metattach d10 d12"), "d10: submirror d12 is attached\n");
    assert_eq!(host.good("metattach d10 d11"), "d10: submirror d11 is attached\n");
    let recreated = "d10 -m d13 d12 d11 1\nd13 1 1 c5t0d0s0\nd12 1 1 c1d0s0\nd11 1 1 c0d1s0\n";
    assert_eq!(host.good("metastat -p d10"), recreated);
    assert_eq!(host.good("metaparam -r first d10"), "");
}

const FIRST: &str = "\
d10: Mirror current parameters are:
    Pass: 1
    Read option: first (-r)
    Write option: parallel (default)
";

/// As the article has it after the repair.
const WHOLE: &str = "\
d10: Mirror
    Submirror 0: d13
      State: Okay
    Submirror 1: d12
      State: Okay
    Submirror 2: d11
      State: Okay
    Pass: 1
    Read option: first (-r)
    Write option: parallel (default)
    Size: N blocks (N MB)

d13: Submirror of d10
    State: Okay
    Size: N blocks (N MB)
    Stripe 0:
        Device     Start Block  Dbase        State Reloc Hot Spare
        c5t0d0s0          0     No            Okay   No


d12: Submirror of d10
    State: Okay
    Size: N blocks (N MB)
    Stripe 0:
        Device   Start Block  Dbase        State Reloc Hot Spare
        c1d0s0          0     No            Okay   Yes


d11: Submirror of d10
    State: Okay
    Size: N blocks (N MB)
    Stripe 0:
        Device   Start Block  Dbase        State Reloc Hot Spare
        c0d1s0          0     No            Okay   Yes


Device Relocation Information:
Device   Reloc  Device ID
c5t0d0   No     -
c1d0     Yes    ID
c0d1     Yes    ID
";

/// What the file holds.
fn holds(host: &Host, name: &str, seed: u32) {
    let copy = host.path().join("copy");
    let _ = std::fs::remove_file(&copy);
    host.ours(&format!("get tree/dsk/d10 /{name} copy"));
    assert_eq!(std::fs::read(copy).unwrap(), pattern(seed), "{name}");
}

/// The line of iostat for a device: reads, writes, kilobytes of both.
fn rates(host: &Host, device: &str) -> [f64; 4] {
    let report = host.ours("iostat -xn");
    let mut lines = report.lines();
    assert_eq!(lines.next().unwrap().trim(), "extended device statistics");
    let columns = "    r/s    w/s   kr/s   kw/s wait actv wsvc_t asvc_t  %w  %b device";
    assert_eq!(lines.next().unwrap(), columns);
    let shown: Vec<&str> = report.lines().filter_map(|line| line.split(' ').next_back()).collect();
    let expected = ["c0d1", "c1d0", "md/d10", "md/d11", "md/d12", "md/d13", "ramdisk/testdisk"];
    assert_eq!(shown[2..], expected, "{report}");
    let line = report.lines().find(|line| line.ends_with(&format!(" {device}"))).unwrap();
    let numbers: Vec<f64> = line.split_whitespace().take(4).map(|n| n.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

#[test]
fn the_session_and_what_follows_a_boot() {
    let mut host = Host::new(&[("c0d1s0", DISK), ("c1d0s0", DISK)]);
    two_disks(&host);
    third_submirror(&host);
    recreated_in_another_order(&host);
    assert_eq!(host.good("metaparam d10"), FIRST);
    host.until_in_sync();
    assert_eq!(form(&host.good("metastat")), WHOLE);
    holds(&host, "first", 1);
    // "Writing to a mirror with ... one submirror on a ramdisk".
    std::fs::write(host.path().join("second"), pattern(2)).unwrap();
    host.ours("put tree/dsk/d10 second /second");

    // The machine is cut off, and comes back.
    host.kill();
    host.start();
    host.until_in_sync();
    assert_eq!(form(&host.good("metastat")), WHOLE, "as it was, by itself");
    assert_eq!(host.good("metaparam d10"), FIRST);
    holds(&host, "first", 1);
    holds(&host, "second", 2);
    host.ours("check tree/dsk/d10");

    // What the author did by hand has nothing left to do.
    let again = host.run("ramdiskadm -a testdisk 24m");
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("testdisk: is there already"), "{again:?}");
    let enabled = "d10: device c5t0d0s0 is enabled\n";
    assert_eq!(host.good("metareplace -e d10 c5t0d0s0"), enabled);
    assert_eq!(form(&host.good("metastat d10")), WHOLE);

    // dd if=/dev/md/rdsk/d10: all reads go to memory.
    let before = rates(&host, "c0d1")[2];
    host.ours("dd if=tree/rdsk/d10 of=/dev/null bs=64k");
    let [reads, _, read, _] = rates(&host, "ramdisk/testdisk");
    assert!(reads > 0.0 && read > 0.0);
    // Since the start, in a longer time: not more than before.
    assert!(rates(&host, "c0d1")[2] <= before, "{before}");
}
