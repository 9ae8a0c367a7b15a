//! The control socket: who may talk to it, and what a caller can do to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::Desk;

fn connect(desk: &Desk) -> UnixStream {
    let socket = UnixStream::connect(desk.path().join("run/host.socket")).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket
}

fn answer(socket: &UnixStream) -> Value {
    let mut line = String::new();
    BufReader::new(socket).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"))
}

#[test]
fn six_hundred_silent_callers_keep_nobody_out() {
    let mut desk = Desk::new(&["a"], "");
    desk.start();
    let silent: Vec<UnixStream> = (0..600).map(|_| connect(&desk)).collect();
    // Half of them have begun to say something.
    for mut socket in silent.iter().step_by(2) {
        // OK to ignore: the host may have hung up already.
        let _ = socket.write_all(b"{\"do\": ");
    }
    assert!(desk.good("host status").contains('a'));
    // Whoever has said what it wants is answered, among all of them.
    let mut socket = connect(&desk);
    socket.write_all(b"{\"do\": \"status\"}\n").unwrap();
    assert_eq!(answer(&socket)["ok"], true);
    drop(silent);
    assert!(desk.good("host status").contains('a'));
    desk.stop();
}

#[test]
fn what_is_no_request_is_reported_and_the_next_one_is_answered() {
    let mut desk = Desk::new(&["a"], "");
    desk.start();
    let wrong: [&[u8]; 6] = [
        b"\xff\xfe\x00garbage\n",
        b"{\"do\": \"status\xff\"}\n",
        b"[1, 2\n",
        b"{\"do\": \"no such thing\"}\n",
        b"{\"do\": \"create\", \"name\": \"\xf0\x28\", \"components\": [\"a\"]}\n",
        b"\n",
    ];
    for request in wrong {
        let mut socket = connect(&desk);
        socket.write_all(request).unwrap();
        let answer = answer(&socket);
        assert_eq!(answer["ok"], false, "{request:?}: {answer}");
        let error = answer["error"].as_str().unwrap();
        assert!(!error.is_empty() && !error.contains('\n'), "{request:?}: {error}");
    }
    // Without an end a request is not waited for without bound: it may be this large.
    let mut socket = connect(&desk);
    let endless = vec![b' '; 64 << 20];
    let sent = socket.write_all(&endless);
    let mut rest = Vec::new();
    let read = socket.read_to_end(&mut rest);
    assert!(sent.is_err() || read.is_ok(), "it still listens after 64 MiB");
    assert!(desk.good("host status").contains('a'));
    desk.stop();
}

#[test]
fn who_may_not_talk_to_it_is_refused() {
    let mut desk = Desk::new(&["a"], "");
    desk.start();
    // The way there is open; only the socket is not.
    for path in ["", "run"] {
        let path = desk.path().join(path);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let program = desk.path().join("steadfast");
    std::fs::copy(env!("CARGO_BIN_EXE_steadfast"), &program).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.arg(&program).args(["host", "status"]);
    command.env("STEADFAST_SOCKET", desk.path().join("run/host.socket"));
    let out = command.current_dir("/").output().unwrap();
    let says = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{says}");
    assert!(says.contains("host.socket: this user may not ask this host"), "{says}");
    assert!(desk.good("host status").contains('a'));
    desk.stop();
}
