//! Encrypted directories: names are long enough, and all that is in one has its policy.

use crate::image::Image;

/// Index 9, name "c": the context of a policy of version 1, with a nonce.
fn context(key: u8, nonce: u8) -> Vec<u8> {
    let policy = [vec![1, 1, 4, 0], vec![key; 8]].concat();
    [policy, vec![nonce; 16]].concat()
}

/// An encrypted directory with an encrypted file in it; its name, and the file's context.
fn image(name: &str, of_file: Option<&[u8]>) -> Image {
    let image = Image::mke2fs(4 << 20, &["-O", "^metadata_csum,encrypt,^has_journal", "-I", "128"]);
    std::fs::write(image.folder().join("empty"), "").unwrap();
    let host = image.folder().join("empty").display().to_string();
    image.debugfs(&["mkdir d", "cd d", &format!("write {host} {name}")]);
    image.debugfs(&["sif <12> flags 0x80800", &format!("sif d/{name} flags 0x80800")]);
    put_context(&image, 12, 4000, &context(1, 1));
    if let Some(bytes) = of_file {
        put_context(&image, 13, 4001, bytes);
    }
    image
}

/// Puts an attribute block with the context: e2fsprogs writes no attributes of this kind.
fn put_context(image: &Image, ino: u32, block: u64, context: &[u8]) {
    let mut bytes = vec![0u8; 1024];
    bytes[0..4].copy_from_slice(&0xea02_0000u32.to_le_bytes());
    bytes[4] = 1;
    bytes[8] = 1;
    let len = context.len().next_multiple_of(4);
    let at = 1024 - len;
    bytes[at..at + context.len()].copy_from_slice(context);
    // Name length, index, offset, inode of the value, size, hash, name.
    bytes[32..34].copy_from_slice(&[1, 9]);
    bytes[34..36].copy_from_slice(&(at as u16).to_le_bytes());
    bytes[40..44].copy_from_slice(&(context.len() as u32).to_le_bytes());
    let hash = hash(b"c", &bytes[at..]);
    bytes[44..48].copy_from_slice(&hash.to_le_bytes());
    bytes[48] = b'c';
    bytes[12..16].copy_from_slice(&hash.to_le_bytes());
    image.poke(block * 1024, &bytes);
    let storage = if ino == 12 { 4 } else { 2 };
    image.debugfs(&[
        &format!("sif <{ino}> file_acl {block}"),
        &format!("sif <{ino}> blocks {storage}"),
        &format!("setb {block}"),
    ]);
}

/// The hash of an attribute (`ext4_xattr_hash_entry`).
fn hash(name: &[u8], value: &[u8]) -> u32 {
    let hash = name.iter().fold(0u32, |h, b| h.rotate_left(5) ^ u32::from(*b));
    let words = value.as_chunks::<4>().0.iter().map(|w| u32::from_le_bytes(*w));
    words.fold(hash, |h, w| h.rotate_left(16) ^ w)
}

const LONG: &str = "abcdefghijklmnopqrstuvwxyz";

fn says(image: &Image, text: &str) {
    let (_, e2fsck) = image.e2fsck();
    let said = image.run("check disk.img").out;
    assert!(said.contains(text), "{said}\ne2fsck: {e2fsck}");
}

fn says_nothing_of_it(image: &Image) {
    let (_, e2fsck) = image.e2fsck();
    assert!(!e2fsck.contains("crypt"), "{e2fsck}");
    let said = image.run("check disk.img").out;
    assert!(!said.contains("crypt") && !said.contains("attribute"), "{said}\n{e2fsck}");
}

#[test]
fn names_and_policies() {
    let good = image(LONG, Some(&context(1, 2)));
    says_nothing_of_it(&good);
    says(&image("short", Some(&context(1, 2))), "too short for an encrypted one");
    says(&image(LONG, Some(&context(2, 2))), "another encryption policy");
    says(&image(LONG, None), "inode 13: it is encrypted, but has no encryption context");
    says(&image(LONG, Some(&context(1, 2)[..27])), "inode 13: its encryption context is damaged");
    let plain = image(LONG, Some(&context(1, 2)));
    plain.debugfs(&[&format!("sif d/{LONG} flags 0x80000")]);
    says(&plain, "which is not encrypted");
    for (image, text) in [
        (image("short", Some(&context(1, 2))), "too short"),
        (image(LONG, Some(&context(2, 2))), "different encryption policy"),
        (image(LONG, None), "no encryption extended attribute"),
    ] {
        let (_, e2fsck) = image.e2fsck();
        assert!(e2fsck.contains(text), "{e2fsck}");
    }
}
