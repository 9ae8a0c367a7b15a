//! What is refused is reported in the volume manager's form, and changes nothing.

use super::host::Host;

#[test]
fn refusals_change_nothing() {
    let slices =
        [("c0d1s0", 8 << 20), ("c1d0s0", 8 << 20), ("c2d0s0", 4 << 20), ("c3d0s0", 8 << 20)];
    let host = Host::new(&slices);
    for line in [
        "metainit d11 1 1 c0d1s0",
        "metainit d12 1 1 c1d0s0",
        "metainit d19 1 1 c2d0s0",
        "metainit d10 -m d11",
        "metattach d10 d12",
    ] {
        host.good(line);
    }
    host.until_in_sync();
    for (line, says) in [
        ("metainit d11 1 1 c3d0s0", "d11: unit already set up"),
        ("metainit d14 1 1 c0d1s0", "c0d1s0: "),
        ("metainit d14 1 2 c3d0s0 c0d1s0", "c0d1s0: "),
        ("metainit d14 1 1 c9d0s0", "c9d0s0: "),
        ("metainit d20 -m d11", "d11: metadevice in use: by d10"),
        ("metainit d20 -m d99", "d99: unit not set up"),
        ("metainit d20 -m d10", "d10: a mirror is no submirror"),
        ("metainit d20 -m c3d0s0", "c3d0s0: not a metadevice"),
        ("metattach d10 d11", "d11: metadevice in use: by d10"),
        ("metattach d11 d19", "d11: unit is not a mirror"),
        ("metattach d10 d19", "d19: is too small"),
        ("metadetach d10 d19", "d10: can't find submirror d19 in mirror"),
        ("metaonline d10 d11", "d10: submirror d11 is not offline"),
        ("metareplace -e d10 c3d0s0", "d10: c3d0s0: can't find component in unit"),
        ("metaparam -r first d11", "d11: unit is not a mirror"),
        ("metaparam d99", "d99: unit not set up"),
        ("metasync d11", "d11: unit is not a mirror"),
        ("metaclear d11", "d11: metadevice in use: by d10"),
        ("metaclear d99", "d99: unit not set up"),
        ("metastat d99", "d99: unit not set up"),
        ("metahs -a d10 c0d1s0", "c0d1s0: "),
        // Of several that cannot be had all, none is.
        ("metahs -a d10 c3d0s0 c0d1s0", "c0d1s0: "),
        ("metahs -a d10 c3d0s0 c3d0s0", "c3d0s0: is given twice"),
        ("metahs -i d11", "d11: unit is not a mirror"),
        ("metadb -d c0d1s0", "c0d1s0: its labels are not deleted"),
        ("ramdiskadm -d c0d1s0", "c0d1s0: "),
        ("ramdiskadm -a c0d1s0 1m", "c0d1s0: "),
        ("ramdiskadm -a huge 1000g", "huge: 1073741824000 bytes: the machine has "),
    ] {
        host.bad(line, says);
    }
    assert_eq!(host.good("metahs -i d10"), "d10: is empty\n\n");
    // Only a check.
    assert_eq!(host.good("metainit -n d14 1 1 c3d0s0"), "");
    host.bad("metastat d14", "d14: unit not set up");
    // The last copy stays.
    host.good("metadetach d10 d12");
    host.bad("metadetach d10 d11", "the last good durable copy");
    host.bad("metaoffline d10 d11", "the last good durable copy");
    // What is open is not cleared.
    let open = std::fs::File::open(host.file("dsk/d10")).unwrap();
    host.bad("metaclear d10", "d10: ");
    drop(open);
    host.until("it is closed", |host| host.run("metaclear d10").status.success());
}
