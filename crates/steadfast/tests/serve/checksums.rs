//! A mirror with checksums, of which an image goes bad.

use std::os::unix::fs::FileExt;

use super::{Desk, pattern};

#[test]
fn an_image_that_goes_bad_is_reported_and_repaired() {
    let config = "[volume.d10]\ncomponents = [\"a\", \"b\"]\nchecksums = true\n";
    let mut desk = Desk::new(&["a", "b"], config);
    desk.start();
    let data = pattern(7, 64 << 10);
    let file = desk.file("dsk/d10");
    file.write_all_at(&data, 0).unwrap();
    file.sync_all().unwrap();
    drop(file);
    desk.stop();
    let image = desk.path().join("a");
    let bytes = std::fs::read(&image).unwrap();
    let at = bytes.windows(4096).position(|window| window == &data[8192..12288]).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&image).unwrap();
    file.write_all_at(&[!bytes[at]], at as u64).unwrap();
    desk.start();
    // Reads go to the legs by turns.
    for _ in 0..8 {
        assert!(desk.read("dsk/d10", 0, data.len()) == data);
    }
    let mirror = &desk.volume("d10")["mirror"];
    assert_eq!((&mirror["checksums"], &mirror["unchecked_bytes"]), (&true.into(), &0.into()));
    assert_eq!(mirror["legs"][0]["checksum_errors"], 1, "{mirror:#}");
    assert!(desk.good("volume status d10").contains("1 checksum errors since"));
    assert!(desk.log().contains("are not what was written; repaired"), "{}", desk.log());
    desk.good("volume scrub d10");
    desk.stop();
    assert!(std::fs::read(&image).unwrap()[at] == bytes[at]);
}
