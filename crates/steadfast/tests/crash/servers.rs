//! Whole servers: a client drives them, and its lines are what was acknowledged.

use super::lab::{Lab, text};

/// Appends lines to a log. With an argument it acknowledges a line before it is synced, and syncs
/// some of them only.
const SERVER: &str = "
import os, socket, sys
early = len(sys.argv) > 1
if os.path.exists('socket'):
    os.unlink('socket')
listener = socket.socket(socket.AF_UNIX)
log = os.open('log', os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.fsync(os.open('.', os.O_RDONLY))
listener.bind('socket')
listener.listen()
while True:
    connection, _ = listener.accept()
    for n, line in enumerate(connection.makefile('rb')):
        os.write(log, line)
        if not early:
            os.fsync(log)
        connection.sendall(b'ok\\n')
        if n % 4 == 3:
            os.fsync(log)
";

/// Prints each line that is acknowledged.
const CLIENT: &str = "
import socket
server = socket.socket(socket.AF_UNIX)
server.connect('socket')
answers = server.makefile('rb')
for n in range(12):
    server.sendall(f'row {n}\\n'.encode())
    assert answers.readline() == b'ok\\n'
    print(f'row {n}', flush=True)
";

/// All that was acknowledged is in the log.
const JUDGE: &str = "while read -r row; do \
    grep -qx \"$row\" log || { echo \"$row is missing\"; exit 1; }; done < $STEADFAST_PRINTED";

#[test]
fn a_server_that_acknowledges_early_is_found_and_its_twin_is_not() {
    let Some(lab) = Lab::new() else { return };
    let server = lab.script("server.py", SERVER);
    let client = format!("python3 {}", lab.script("client.py", CLIENT));
    let options = ["--linger", "0.2", "--ready", "test -S socket", "--judge", JUDGE];
    for early in [true, false] {
        let program = [&["--", "python3", &server][..], if early { &["early"] } else { &[] }];
        let words = [&["--client", &client], &options[..], &program.concat()].concat();
        let (report, found) = lab.run(&words);
        assert_eq!(found, early, "{report:#}");
        let recorded = &report["recorded"];
        assert_eq!(recorded["lines"], 12, "{report:#}");
        assert_eq!(recorded["client"], "ended with status 0", "{report:#}");
        let ended = recorded["server"]["ended"].as_str().unwrap();
        assert!(ended.contains("SIGTERM") && ended.contains("asked to end"), "{report:#}");
        assert!(recorded["program"].is_null(), "{report:#}");
    }
}

/// What it was started with is wrong: that is no test, and what it said is the reason.
#[test]
fn a_server_that_does_not_come_up_is_an_error() {
    let Some(lab) = Lab::new() else { return };
    let ready = ["run", "--client", "true", "--ready", "echo refused; exit 9"];
    let cases: [(&[&str], &str, &[&str]); 2] = [
        (&[], "echo no such option; exit 3", &["ended with status 3 before it was ready"]),
        (
            &["--ready-limit", "3"],
            "echo waits for a disk; exec sleep 600",
            &["did not succeed within 3 s: at last ended with status 9: refused", "for a disk"],
        ),
    ];
    for (more, server, expected) in cases {
        let out = lab.crash(&[&ready[..], more, &["--", "sh", "-c", server]].concat());
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(expected.iter().all(|expected| said.contains(expected)), "{said}");
        assert!(said.contains("the server printed last:"), "{said}");
    }
}

/// Nothing was found because nothing was tested.
#[test]
fn a_server_that_fails_under_its_client_is_said() {
    let Some(lab) = Lab::new() else { return };
    let server = "echo $$ > number; sync number; sleep 0.3; echo out of order; exit 4";
    let run = |client| {
        let words = ["run", "--cuts", "3", "--linger", "0", "--client", client];
        let out = lab.crash(&[&words[..], &["--", "sh", "-c", server]].concat());
        (out.status.code(), text(&out.stdout), text(&out.stderr))
    };
    let (status, report, said) = run("sleep 1; exit 7");
    assert_eq!(status, Some(2), "{report}{said}");
    assert!(said.contains("the server ended") && said.contains("status 7"), "{said}");
    let server_ended = "the server ended with status 4 before the client did";
    assert!(report.contains(server_ended) && report.contains("| out of order"), "{report}");
    // At once, too, as of a connection that is reset.
    let sees_it = "while ! test -s number; do :; done; \
        while readlink /proc/$(cat number)/exe > /dev/null; do :; done; exit 7";
    let (status, report, said) = run(sees_it);
    assert!(status == Some(2) && report.contains(server_ended), "{report}{said}");
    // A client that has seen it and says that all is well has expected it.
    let (status, report, said) = run("sleep 1");
    assert!(status == Some(0) && report.contains(server_ended), "{report}{said}");
}

#[test]
fn a_client_that_fails_is_judged_like_a_program() {
    let Some(lab) = Lab::new() else { return };
    let words = ["run", "--cuts", "3", "--linger", "0"];
    let server = ["--", "sh", "-c", "echo x > f; exec sleep 600"];
    for (client, status, expected) in [
        (&["--client", "exit 7"][..], 2, "the client ended with status 7"),
        (
            &["--client", "sleep 600", "--client-limit", "0.4"],
            2,
            "the client was ended after 0.4 s",
        ),
    ] {
        let out = lab.crash(&[&words[..], client, &server].concat());
        let said = format!("{}{}", text(&out.stdout), text(&out.stderr));
        assert_eq!(out.status.code(), Some(status), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

/// It is read all the time, and it is no promise.
#[test]
fn a_server_may_print_as_much_as_it_likes() {
    let Some(lab) = Lab::new() else { return };
    let server = "yes | head -c 30000000; yes | head -c 30000000 >&2; echo x > done; \
        exec sleep 600";
    let client = "while ! test -s done; do sleep 0.05; done; echo seen";
    let words = ["--cuts", "3", "--linger", "0", "--client", client, "--", "sh", "-c", server];
    let (report, found) = lab.run(&words);
    assert!(!found && report["recorded"]["lines"] == 1, "{report:#}");
}

#[test]
fn wrong_words_about_servers_are_named() {
    let Some(lab) = Lab::new() else { return };
    let wrong: [(&[&str], &str); 6] = [
        (&["--client", " "], "--client: the command is empty"),
        (&["--client", "true", "--ready", ""], "--ready: the command is empty"),
        (&["--ready", "true"], "--client"),
        (&["--client-limit", "3"], "--client"),
        (&["--client", "true", "--client-limit", "0"], "--client-limit 0"),
        (&["--client", "true", "--ready", "true", "--ready-limit=-1"], "--ready-limit -1"),
    ];
    for (words, named) in wrong {
        let out = lab.crash(&[&["run"], words, &["--", "sleep", "600"]].concat());
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{words:?}\n{said}");
        assert!(said.contains(named), "{words:?}\n{said}");
    }
}
