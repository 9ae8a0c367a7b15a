//! What others choose: the words of a mount's answer, links in a shared folder, a long way to it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};

use steadfast_vfs::bounded;
use steadfast_vfs::foreign::is_escaped;

use super::bench::{Bench, text};

/// What a terminal would obey: controls of C0 and C1, DEL, an end of line, a turn of direction.
const ORDERS: &str = "\u{1b}[31m\u{7f}\u{9b}2J\nforged \u{202e}";

/// Another's process may answer what it likes, and root asks.
#[test]
fn an_answer_gives_a_terminal_no_orders() {
    let Some(b) = Bench::new() else { return };
    let listener = UnixListener::bind(b.path("run/77.sock")).unwrap();
    let text_of = |what: &str| format!("{what}{ORDERS}");
    let status = serde_json::json!({
        "mountpoint": text_of("/m"), "source": text_of("s"), "options": text_of("o"),
        "state": text_of("st"), "read_only_because": text_of("r"), "data": text_of("d"),
        "promised_no_more": text_of("p"), "transact": text_of("t"), "log": text_of("l"),
        "last_failure": { "what": text_of("f") }, "journal": { "device": text_of("j") },
        "queue": { "policy": text_of("q") }, "recovered": null,
        "unwritten": [{ "path": text_of("u"), "inode": text_of("i"), "from": text_of("b") }],
    });
    let answer = serde_json::json!({ "ok": true, "status": status });
    let serving = std::thread::spawn(move || {
        for connection in listener.incoming().take(2) {
            let mut connection = connection.unwrap();
            let mut line = String::new();
            BufReader::new(connection.try_clone().unwrap()).read_line(&mut line).unwrap();
            writeln!(connection, "{answer}").unwrap();
        }
    });
    let said = b.good("status");
    let obeyed = |c: char| c != '\n' && is_escaped(c);
    assert!(!said.contains(obeyed), "{said:?}");
    assert!(!said.lines().any(|line| line.starts_with("forged")), "{said}");
    assert!(said.contains("/m\\033[31m\\177\\302\\2332J\\012forged \\342\\200\\256"), "{said}");
    let json = b.good("status --json");
    assert!(!json.contains(obeyed), "{json:?}");
    assert!(json.contains("\\u007f\\u009b2J\\nforged \\u202e"), "{json}");
    let back: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(back["mounts"][0]["source"], text_of("s"));
    serving.join().unwrap();
}

/// Where others may make names, none of them is written through.
#[test]
fn a_log_follows_no_link_in_a_shared_folder() {
    let Some(b) = Bench::with_image("32m") else { return };
    fs::write(b.path("precious"), "precious\n").unwrap();
    fs::create_dir(b.path("shared")).unwrap();
    // The number of the process that serves the mount is not known before.
    let script = "chmod 0777, 'shared';
        symlink('../precious', 'shared/' . ($$ + $_) . '.log') for 1 .. 5000;
        $ENV{STEADFAST_RUNTIME_DIR} = 'shared';
        exec @ARGV";
    let program = env!("CARGO_BIN_EXE_steadfast");
    let out = b.command("perl", &["-e", script, program, "mount", "disk.img", "m"]);
    assert_eq!(bounded::read(&b.path("precious"), 100).unwrap(), b"precious\n");
    let said = text(&out.stderr);
    assert!(
        out.status.code() == Some(1) && said.contains(".log: what is there is not a file"),
        "{said}"
    );
    assert!(!b.command("mountpoint", &["-q", "m"]).status.success());
    b.e2fsck_is_clean("disk.img");
}

/// A link in place of the tree's folder would have the host mount over what it leads to.
#[test]
fn a_host_mounts_its_tree_over_no_link_in_a_shared_folder() {
    let Some(b) = Bench::new() else { return };
    fs::create_dir(b.path("victim")).unwrap();
    symlink(b.path("victim"), b.path("run/stack")).unwrap();
    fs::write(b.path("stack.toml"), "").unwrap();
    let said = b.bad("serve stack.toml", 1);
    assert!(said.contains("run/stack: is not a folder of this user alone"), "{said}");
    assert!(!b.command("mountpoint", &["-q", "victim"]).status.success());
}

/// Without its socket nobody could unmount it.
#[test]
fn no_mount_is_left_where_the_socket_has_no_room() {
    let Some(b) = Bench::with_image("32m") else { return };
    let before = fs::read(b.path("disk.img")).unwrap();
    let long = b.path(&"long".repeat(30));
    fs::create_dir(&long).unwrap();
    let script = "STEADFAST_RUNTIME_DIR=\"$1\" \"$0\" mount disk.img m";
    let program = env!("CARGO_BIN_EXE_steadfast");
    let out = b.command("sh", &["-c", script, program, long.to_str().unwrap()]);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("a socket's path has at most 107 bytes"), "{said}");
    assert!(said.contains("set STEADFAST_RUNTIME_DIR"), "{said}");
    assert!(!b.command("mountpoint", &["-q", "m"]).status.success());
    assert!(fs::read(b.path("disk.img")).unwrap() == before, "nothing was mounted, or replayed");
    // What is too long is known before a host opens anything, too.
    fs::write(b.path("stack.toml"), "").unwrap();
    let said = b.bad(&format!("serve -f stack.toml --socket {}/s", long.display()), 2);
    assert!(said.contains("a socket's path has at most 107 bytes"), "{said}");
}

/// The door of a mount is that of the host.
#[test]
fn silent_callers_keep_nobody_from_a_mount() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    let device = b.status()["device"].as_str().unwrap().replace(':', ".");
    let socket = b.path("run").join(format!("{}-{device}.sock", b.process().as_raw_nonzero()));
    let silent: Vec<UnixStream> = (0..200).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    assert!(b.good("status m").contains("disk.img"));
    drop(silent);
    b.good("umount m");
}
