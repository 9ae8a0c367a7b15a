//! Nothing is written outside the target.

use std::os::unix::fs::symlink;

use super::desk::Desk;

/// A link and a second entry of the same name, which would be written through it.
#[test]
fn a_second_entry_of_a_links_name_writes_nowhere_else() {
    let d = Desk::new();
    std::fs::create_dir(d.path("outside")).unwrap();
    std::fs::write(d.path("outside/passwd"), "root\n").unwrap();
    std::fs::write(d.path("bad"), "bad\n").unwrap();
    d.plain_image("e.img");
    let outside = d.path("outside");
    let file = outside.join("passwd");
    d.debugfs(
        "e.img",
        &[
            &format!("symlink evil {}", outside.display()),
            "mkdir eviX",
            "write bad eviX/passwd",
            &format!("symlink fil1 {}", file.display()),
            "write bad fil2",
        ],
    );
    assert_eq!(d.patch("e.img", b"eviX", b"evil"), 1);
    assert_eq!(d.patch("e.img", b"fil2", b"fil1"), 1);
    let said = d.bad("get -r e.img / out");
    assert!(said.err.contains("/evil: the folder has this name twice"), "{}", said.err);
    assert_eq!(std::fs::read(&file).unwrap(), b"root\n");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(std::fs::read_link(d.path("out/evil")).unwrap(), outside);
    // A second time, when all of that is there already.
    d.bad("get -r e.img / out");
    assert_eq!(std::fs::read(&file).unwrap(), b"root\n");
    // Links of an earlier copy are not followed either.
    d.plain_image("f.img");
    d.debugfs("f.img", &["mkdir evil", "write bad evil/passwd", "write bad fil1"]);
    let said = d.bad("get -r f.img / out");
    assert!(said.err.contains("out/evil: is in the way"), "{}", said.err);
    assert_eq!(std::fs::read(&file).unwrap(), b"root\n");
    assert_eq!(std::fs::read(d.path("out/fil1")).unwrap(), b"bad\n");
}

#[test]
fn a_target_that_is_a_link_is_not_followed() {
    let d = Desk::new();
    std::fs::write(d.path("victim"), "old\n").unwrap();
    std::fs::write(d.path("f"), "new\n").unwrap();
    symlink(d.path("victim"), d.path("link")).unwrap();
    symlink(d.path("nothing"), d.path("dangling")).unwrap();
    d.good("mkfs a.img --size 8m");
    d.good("put a.img f /f");
    for link in ["link", "dangling"] {
        let said = d.bad(&format!("get a.img /f {link}"));
        assert!(said.err.contains("symbolic link"), "{}", said.err);
    }
    assert_eq!(std::fs::read(d.path("victim")).unwrap(), b"old\n");
    assert!(!d.path("nothing").exists());
    // An ordinary file is replaced.
    d.good("get a.img /f victim");
    assert_eq!(std::fs::read(d.path("victim")).unwrap(), b"new\n");
    assert_eq!(std::fs::read_dir(d.path("")).unwrap().count(), 5);
}

/// A link in place of the folder may be another user's: it is followed where that is asked for, by
/// a '/' at the end.
#[test]
fn a_folder_that_is_a_link_is_followed_only_if_asked_for() {
    let d = Desk::new();
    for folder in ["src", "outside", "real"] {
        std::fs::create_dir(d.path(folder)).unwrap();
    }
    std::fs::write(d.path("src/f"), "new\n").unwrap();
    symlink(d.path("outside"), d.path("link")).unwrap();
    d.good("mkfs a.img --size 8m");
    d.good("put -r a.img src /");
    for line in ["get -r a.img / link", "get -r a.img /src link", "get a.img /src/f link"] {
        let said = d.bad(line);
        assert!(said.err.contains("link: is a symbolic link to a folder"), "{line}: {}", said.err);
        assert_eq!(std::fs::read_dir(d.path("outside")).unwrap().count(), 0, "{line}");
    }
    d.good("get -r a.img /src link/");
    assert_eq!(std::fs::read(d.path("outside/src/f")).unwrap(), b"new\n");
    // On the way to it links are the caller's own.
    symlink(d.path("."), d.path("way")).unwrap();
    d.good("get -r a.img /src way/real");
    assert_eq!(std::fs::read(d.path("real/src/f")).unwrap(), b"new\n");
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let d = Desk::new();
    std::fs::write(d.path("f"), "bad\n").unwrap();
    d.plain_image("n.img");
    d.debugfs("n.img", &["mkdir deep", "write f deep/..xout", "write f deep/good", "mkdir top"]);
    assert_eq!(d.patch("n.img", b"..xout", b"../out"), 1);
    let said = d.bad("get -r n.img / got");
    assert!(said.err.contains("/deep"), "{}", said.err);
    assert!(!d.path("got/out").exists() && !d.path("out").exists());
    assert!(d.path("got/top").is_dir());
    // A path of the image that ends in ".." names no file of the host.
    d.bad("get -r n.img /top/.. got2");
    assert!(d.path("got2/top").is_dir());
}

#[test]
fn the_image_is_neither_put_into_itself_nor_replaced() {
    let d = Desk::new();
    std::fs::create_dir(d.path("here")).unwrap();
    std::fs::write(d.path("here/f"), "x").unwrap();
    d.good("mkfs here/a.img --size 8m");
    let said = d.good("put -r here/a.img here /");
    assert!(said.err.contains("a.img: is the image itself"), "{}", said.err);
    std::fs::write(d.path("a.img"), "a file of this name").unwrap();
    d.good("put here/a.img a.img /here/a.img");
    let said = d.bad("get -r here/a.img /here .");
    assert!(said.err.contains("is the image itself, and not replaced"), "{}", said.err);
    assert!(d.good("ls here/a.img /here").out.contains(" f\n"));
}

#[test]
fn a_name_gives_a_terminal_no_orders() {
    let d = Desk::new();
    std::fs::create_dir(d.path("src")).unwrap();
    std::fs::write(d.path("src/a\x1b[2J\nb"), "x").unwrap();
    d.good("mkfs a.img --size 8m");
    d.good("put -r a.img src /");
    std::fs::write(d.path("src/c\u{202e}d\u{200b}"), "x").unwrap();
    d.good("put -r a.img src /");
    let listed = d.good("ls a.img /src").out;
    assert!(listed.contains(" a\\033[2J\\012b\n") && listed.lines().count() == 2, "{listed}");
    assert!(listed.contains(" c\\342\\200\\256d\\342\\200\\213\n"), "{listed}");
    // A name that looks like an escape is not taken for one.
    std::fs::write(d.path("src/e\\033"), "x").unwrap();
    std::fs::write(d.path("src/e\x1b"), "x").unwrap();
    d.good("put -r a.img src /");
    let listed = d.good("ls a.img /src").out;
    assert!(listed.contains(" e\\\\033\n") && listed.contains(" e\\033\n"), "{listed}");
    assert_eq!(d.good("cat a.img /src/e\\033").out, "x", "a path is taken as it is");
    let document = d.good("extents --json a.img /src/c\u{202e}d\u{200b}").out;
    assert!(document.is_ascii() && document.contains("c\\\\342"), "{document}");
}
