//! A mirror with checksums, of which an image goes bad: what a person sees, and does.

use std::fs;
use std::os::unix::fs::FileExt;

use super::Desk;

const TEXT: &str = "what must stay, and stay the same\n";

impl Desk {
    /// Where the text is in an image.
    fn find(&self, image: &str) -> Option<u64> {
        let bytes = fs::read(self.path().join(image)).unwrap();
        let at = bytes.windows(TEXT.len()).position(|window| window == TEXT.as_bytes())?;
        Some(at as u64)
    }

    fn spoil(&self, image: &str) {
        let at = self.find(image).unwrap();
        let file = fs::OpenOptions::new().write(true).open(self.path().join(image)).unwrap();
        file.write_all_at(b"W", at).unwrap();
    }
}

#[test]
fn an_image_that_goes_bad_is_not_believed_and_is_repaired() {
    let desk = Desk::new(&["a", "b"]);
    desk.good("volume create m a b --checksums");
    fs::write(desk.path().join("text"), TEXT).unwrap();
    desk.good("mkfs volume:a,b");
    desk.good("put volume:a,b text /text");
    let status = desk.good("volume status a b");
    assert!(status.contains("checksums of all that was written"), "{status}");
    assert!(desk.good("volume status --json a b").contains("\"checksums\": true"));
    desk.spoil("a");
    // Who only reads repairs nothing.
    assert_eq!(desk.good("cat volume:a,b /text"), TEXT);
    assert_eq!(desk.good("cat volume:b,a /text"), TEXT);
    assert_eq!(desk.find("a"), None);
    let found = desk.run("volume scrub a b");
    assert_eq!(found.status.code(), Some(1));
    let text = String::from_utf8(found.stdout).unwrap();
    assert!(text.contains("1 block of 4096 bytes differs"), "{text}");
    desk.good("volume scrub a b --repair");
    assert!(desk.find("a").is_some());
    desk.good("volume scrub a b");
    desk.spoil("a");
    desk.spoil("b");
    desk.bad("cat volume:a,b /text", 1, "its checksum says that what leg 0");
    let lost = desk.run("volume scrub a b --repair");
    assert_eq!(lost.status.code(), Some(1));
    let text = String::from_utf8(lost.stdout).unwrap();
    assert!(text.contains("of 1 block no leg holds what was written"), "{text}");
}

#[test]
fn only_mirrors_have_checksums() {
    let desk = Desk::new(&["a", "b"]);
    desk.bad("volume create s a b --kind stripe --checksums", 2, "checksums are for mirrors only");
    desk.bad("volume create m a b --checksums --region 4k", 2, "at least 65536");
}
