//! Folders that contain themselves, or stand in many places.

use super::desk::Desk;

#[test]
fn a_folder_inside_itself_is_named() {
    let d = Desk::new();
    d.plain_image("c.img");
    d.debugfs("c.img", &["mkdir a", "mkdir a/b", "mkdir z", "link / a/x", "link a a/b/y"]);
    let said = d.bad("get -r c.img / out");
    assert!(said.err.contains("/a/x: a cycle: this is the folder / (inode 2)"), "{}", said.err);
    assert!(said.err.contains("/a/b/y: a cycle: this is the folder /a "), "{}", said.err);
    assert!(d.path("out/a/b").is_dir() && d.path("out/z").is_dir());
    let said = d.bad("ls -R c.img /");
    assert!(said.err.contains("/a/x: a cycle") && said.out.contains("/z:"), "{}", said.err);
    // The way through /a/x to everything else is not gone, and /z stays.
    let said = d.bad("rm -r c.img /a");
    assert!(said.err.contains("/a/x: a cycle: this is a folder above"), "{}", said.err);
    assert!(d.good("ls c.img /").out.contains(" z\n"));
}

/// Two names of the next folder in each: 2^20 ways down.
#[test]
fn many_ways_to_a_folder_are_gone_once() {
    let d = Desk::new();
    d.plain_image("w.img");
    let commands: Vec<String> = (0..20)
        .flat_map(|i| [format!("mkdir f{i}"), format!("link f{i} {}b", parent(i))])
        .collect();
    d.debugfs("w.img", &commands.iter().map(String::as_str).collect::<Vec<_>>());
    let said = d.bad("get -r w.img / out");
    assert!(said.err.contains("a second name of a folder"), "{}", said.err);
    d.bad("ls -R w.img /");
    // Removing the one name does not empty the folder of the other.
    std::fs::write(d.path("f"), "kept\n").unwrap();
    d.plain_image("r.img");
    d.debugfs("r.img", &["mkdir own", "write f own/f", "mkdir other", "link own other/own"]);
    let said = d.bad("rm -r r.img /other");
    assert!(said.err.contains("/other/own: a second name of a folder"), "{}", said.err);
    assert_eq!(d.good("cat r.img /own/f").out, "kept\n");
}

fn parent(i: usize) -> String {
    if i == 0 { String::new() } else { format!("f{}/", i - 1) }
}

/// The second entry is no ".." but leads to the root.
#[test]
fn a_folder_without_its_second_dot() {
    let d = Desk::new();
    std::fs::write(d.path("f"), "x\n").unwrap();
    d.plain_image("m.img");
    d.debugfs("m.img", &["mkdir many", "write f many/f"]);
    let dots = |second: &[u8]| [&b"\x02\x00\x00\x00\x0c\x00\x02\x02"[..], second].concat();
    assert!(d.patch("m.img", &dots(b".."), &dots(b".*")) >= 1);
    let said = d.bad("get -r m.img /many out");
    assert!(said.err.contains("cycle") || said.err.contains("corrupt"), "{}", said.err);
    assert_eq!(std::fs::read(d.path("out/f")).unwrap(), b"x\n");
    d.bad("rm -r m.img /many");
}

#[test]
fn deep_trees_come_and_go() {
    let d = Desk::new();
    let mut path = d.path("src");
    for _ in 0..400 {
        path.push("a-folder");
    }
    std::fs::create_dir_all(&path).unwrap();
    d.good("mkfs a.img --size 32m");
    d.good("put -r a.img src /");
    d.good("get -r a.img /src back");
    d.good("rm -r a.img /src");
    d.e2fsck_is_clean("a.img");
    assert!(d.path("back").join(path.strip_prefix(d.path("src")).unwrap()).is_dir());
}
