//! One bad object ends nothing else.

use super::desk::Desk;

/// A tree with a file in each folder; what is done to the image; what must come out.
fn tree(d: &Desk) {
    std::fs::write(d.path("f"), "good\n").unwrap();
    std::fs::write(d.path("big"), vec![7; 50_000]).unwrap();
    d.plain_image("t.img");
    d.debugfs(
        "t.img",
        &["mkdir a", "write f a/f", "write big a/wrong", "write f a/z", "mkdir b", "write f b/f"],
    );
}

#[test]
fn a_bad_inode_is_reported_and_the_rest_is_copied() {
    let d = Desk::new();
    tree(&d);
    // A type that is none, a block beyond the end, a deleted inode.
    d.debugfs("t.img", &["sif a/wrong mode 0130644"]);
    let said = d.bad("get -r t.img / out");
    assert!(said.err.contains("/a/wrong: "), "{}", said.err);
    for good in ["a/f", "a/z", "b/f"] {
        assert_eq!(std::fs::read(d.path("out").join(good)).unwrap(), b"good\n", "{good}");
    }
    let said = d.bad("ls t.img /a");
    assert!(said.out.contains("??????????") && said.out.contains(" wrong\n"), "{}", said.out);
    assert!(said.out.contains(" f\n") && said.out.contains(" z\n"), "{}", said.out);
    assert!(said.err.contains("/a/wrong: "), "{}", said.err);
    // Which of two is met first is up to the directory's hashes: a second is not met.
    d.debugfs("t.img", &["sif a/z mode 0130644"]);
    let said = d.bad("get --strict -r t.img / strict");
    let reported = ["/a/wrong: ", "/a/z: "].iter().filter(|path| said.err.contains(**path)).count();
    assert_eq!(reported, 1, "{}", said.err);
    d.bad("rm -r t.img /a");
}

#[test]
fn a_block_of_a_folder_that_makes_no_sense_hides_only_its_names() {
    let d = Desk::new();
    std::fs::create_dir(d.path("src")).unwrap();
    for i in 0..200 {
        std::fs::write(d.path(&format!("src/a-name-of-a-file-{i:03}")), "x").unwrap();
    }
    d.good("mkfs s.img --size 8m -b 1024");
    d.good("put -r s.img src /");
    let document = d.good("extents --json s.img /src").out;
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    let block = document["extents"][0]["physical"].as_u64().unwrap() + 3 * 1024;
    let mut bytes = std::fs::read(d.path("s.img")).unwrap();
    bytes[block as usize + 100..][..400].fill(0xee);
    std::fs::write(d.path("s.img"), bytes).unwrap();
    let listed = d.bad("ls s.img /src");
    let count = listed.out.lines().count();
    assert!((150..200).contains(&count), "{count} names\n{}", listed.err);
    assert_eq!(listed.err.matches("error:").count(), 1, "{}", listed.err);
    assert!(!listed.out.contains('?'), "{}", listed.out);
    d.bad("get -r s.img /src out");
    assert_eq!(std::fs::read_dir(d.path("out")).unwrap().count(), count);
}

/// A size that nothing is behind, and blocks that all files claim.
#[test]
fn impossible_sizes_write_no_more_than_there_is() {
    let d = Desk::new();
    tree(&d);
    d.debugfs("t.img", &["sif a/f size 0x7fffffff", "sif a/z size 0x7fffffffffff"]);
    let said = d.run("get -r t.img / out");
    assert!(said.err.contains("/a/z: "), "{}", said.err);
    use std::os::unix::fs::MetadataExt;
    let blocks = |name: &str| d.path(name).metadata().map_or(0, |m| m.blocks());
    assert_eq!(d.path("out/a/f").metadata().unwrap().len(), 0x7fff_ffff);
    assert!(blocks("out/a/f") <= 32, "{} blocks", blocks("out/a/f"));
    assert!(blocks("out/a/z") <= 32, "{} blocks", blocks("out/a/z"));
    assert_eq!(std::fs::read(d.path("out/b/f")).unwrap(), b"good\n");
}
