//! The commands that the published session does not have.

use std::io::{Read, Seek, SeekFrom, Write};

use super::host::{Host, form};
use super::text;

fn write(host: &Host, at: u64, byte: u8) {
    let mut file = std::fs::File::options().write(true).open(host.file("dsk/d10")).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(&vec![byte; 100_000]).unwrap();
    file.sync_all().unwrap();
}

fn holds(host: &Host, at: u64, byte: u8) {
    let mut file = std::fs::File::open(host.file("dsk/d10")).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    let mut read = vec![0; 100_000];
    file.read_exact(&mut read).unwrap();
    assert!(read.iter().all(|found| *found == byte), "{byte}");
}

fn mirrored(disks: &[&str]) -> Host {
    let slices: Vec<(&str, u64)> = disks.iter().map(|name| (*name, 8 << 20)).collect();
    let host = Host::new(&slices);
    host.good("metainit d11 1 1 c0d1s0");
    host.good("metainit d12 1 1 c1d0s0");
    host.good("metainit d10 -m d11");
    host.good("metattach d10 d12");
    host
}

#[test]
fn a_submirror_leaves_comes_back_and_is_replaced() {
    let mut host = mirrored(&["c0d1s0", "c1d0s0", "c2d0s0"]);
    write(&host, 0, 1);
    host.until_in_sync();
    assert_eq!(host.good("metaoffline d10 d12"), "d10: submirror d12 is offlined\n");
    let shown = form(&host.good("metastat d10"));
    let away = "    Submirror 1: d12\n      State: Needs maintenance\n";
    assert!(shown.contains(away), "{shown}");
    assert!(shown.contains("    Invoke: metaonline d10 d12\n"), "{shown}");
    write(&host, 1 << 20, 2);
    assert_eq!(host.good("metaonline d10 d12"), "d10: submirror d12 is onlined\n");
    host.until_in_sync();
    // The other one alone has what was written while it was away.
    assert_eq!(host.good("metadetach d10 d11"), "d10: submirror d11 is detached\n");
    assert_eq!(host.good("metastat -p d10"), "d10 -m d12 1\nd12 1 1 c1d0s0\n");
    holds(&host, 0, 1);
    holds(&host, 1 << 20, 2);
    assert_eq!(host.good("metattach d10 d11"), "d10: submirror d11 is attached\n");
    host.until_in_sync();
    // Another slice under the same concat.
    let replaced = host.good("metareplace d10 c1d0s0 c2d0s0");
    assert_eq!(replaced, "d10: device c1d0s0 is replaced with c2d0s0\n");
    host.until_in_sync();
    let short = host.good("metastat -p d10");
    assert!(short.contains("d12 1 1 c2d0s0\n"), "{short}");
    write(&host, 2 << 20, 3);
    host.kill();
    host.start();
    host.until_in_sync();
    assert_eq!(host.good("metastat -p d10"), short);
    (1..=3).for_each(|n| holds(&host, u64::from(n - 1) << 20, n));
}

#[test]
fn options_states_and_spares_are_shown() {
    let host = mirrored(&["c0d1s0", "c1d0s0", "c2d0s0"]);
    host.until_in_sync();
    host.good("metaparam -r geometric -w serial -p 3 d10");
    assert!(host.good("metastat -p d10").starts_with("d10 -m d11 d12 -g -S 3\n"));
    let shown = host.good("metaparam d10");
    assert!(shown.contains("geometric (-g)\n    Write option: serial (-S)\n"), "{shown}");
    let concise = host.good("metastat -c");
    assert!(concise.starts_with("d10                  m"), "{concise}");
    assert_eq!(concise.lines().count(), 3);
    assert_eq!(host.good("metasync d10"), "");
    assert_eq!(host.good("metasync -r"), "");
    assert_eq!(host.good("metahs -i"), "d10: is empty\n\n");
    assert_eq!(host.good("metahs -a d10 c2d0s0"), "d10: Hotspare is added\n");
    assert!(host.good("metahs -i d10").starts_with("d10: 1 hot spare\n"));
    assert_eq!(host.good("metahs -d d10 c2d0s0"), "d10: Hotspare is deleted\n");
    assert_eq!(host.good("metahs -a d10 c2d0s0"), "d10: Hotspare is added\n");
    let places = host.good("metadb");
    assert!(places.lines().count() > 6 && places.contains("c0d1s0\n"), "{places}");
    assert!(host.good("metadb -i").contains(" u - replica is up to date\n"));
    let nothing = host.run("metadb -a -f -c 3 c2d0s0");
    assert!(nothing.status.success());
    assert!(text(&nothing.stderr).contains("nothing to add"), "{nothing:?}");
}

#[test]
fn stripes_concats_and_what_is_over_them() {
    let names = ["c0d0s0", "c0d1s0", "c1d0s0", "c1d1s0"];
    let host = Host::new(&names.map(|name| (name, 8 << 20)));
    assert_eq!(host.good("metainit d1 1 2 c0d0s0 c0d1s0 -i 32k"), "d1: Concat/Stripe is setup\n");
    assert_eq!(host.good("metainit d2 2 1 c1d0s0 1 c1d1s0"), "d2: Concat/Stripe is setup\n");
    let short = "d1 1 2 c0d0s0 c0d1s0 -i 64b\nd2 2 1 c1d0s0 \\\n\t 1 c1d1s0\n";
    assert_eq!(host.good("metastat -p"), short);
    let shown = host.good("metastat -q d1");
    assert!(shown.contains("    Stripe 0: (interlace: 64 blocks)\n"), "{shown}");
    host.good("metainit d10 -m d1 -r 2");
    host.good("metattach d10 d2");
    write(&host, 300_000, 7);
    host.until_in_sync();
    holds(&host, 300_000, 7);
    assert_eq!(
        host.good("metaclear -r d10"),
        "\
d10: Mirror is cleared\nd1: Concat/Stripe is cleared\nd2: Concat/Stripe is cleared\n"
    );
    assert_eq!(host.good("metastat -p"), "");
    // They are free again.
    assert_eq!(host.good("metainit d1 1 1 c0d0s0"), "d1: Concat/Stripe is setup\n");
}

#[test]
fn ram_disks_are_listed_and_deleted() {
    let host = Host::new(&[("c0d1s0", 8 << 20)]);
    assert_eq!(host.good("ramdiskadm"), "");
    host.good("ramdiskadm -a one 1m");
    host.good("ramdiskadm -a two 4096b");
    let listed = host.good("ramdiskadm");
    let path = host.file("ramdisk/two").display().to_string();
    assert!(listed.starts_with("Block Device ") && listed.contains(&path), "{listed}");
    host.good("metainit d13 1 1 two");
    host.bad("ramdiskadm -d two", "two: ");
    host.good("ramdiskadm -d one");
    assert_eq!(host.good("ramdiskadm").lines().count(), 2);
}
