//! Metrics over TCP: who keeps others out, and whom a request must be for.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use super::Desk;

/// A host that answers for metrics; the port.
fn listening() -> (Desk, u16) {
    let mut desk = Desk::new(&["a"], "");
    let mut command = desk.command();
    command.args(["serve", "-f", "stack.toml", "--tree", "tree", "--metrics", "127.0.0.1:0"]);
    let log = std::fs::File::create(desk.path().join("log")).unwrap();
    desk.host = Some(command.stdin(Stdio::null()).stderr(log).spawn().unwrap());
    desk.wait_for_an_answer();
    let log = desk.log();
    let at = log.split("metrics at 127.0.0.1:").nth(1).and_then(|rest| rest.lines().next());
    let port = at.and_then(|port| port.trim().parse().ok());
    (desk, port.unwrap_or_else(|| panic!("{log}")))
}

fn connect(port: u16) -> TcpStream {
    let connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    connection
}

fn answer(port: u16, request: &str) -> String {
    let mut connection = connect(port);
    connection.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    connection.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn silent_connections_keep_no_metrics_back() {
    let (mut desk, port) = listening();
    let silent: Vec<TcpStream> = (0..300).map(|_| connect(port)).collect();
    for mut connection in silent.iter().step_by(2) {
        // OK to ignore: it may have been closed already.
        let _ = connection.write_all(b"GET /metrics HT");
    }
    let text = answer(port, &format!("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"));
    assert!(text.starts_with("HTTP/1.0 200 OK\r\n"), "{text}");
    assert!(text.contains("steadfast_device_present{device=\"a\"} 1\n"), "{text}");
    drop(silent);
    desk.stop();
}

#[test]
fn a_request_for_another_host_is_refused() {
    let (mut desk, port) = listening();
    let asked = |host: &str| answer(port, &format!("GET /metrics HTTP/1.1\r\n{host}\r\n\r\n"));
    for host in ["Host: evil.example", "Host: evil.example:9188", "host:  127.0.0.1.evil.example"] {
        let text = asked(host);
        assert!(text.starts_with("HTTP/1.0 421 "), "{host}: {text}");
        assert!(!text.contains("steadfast_"), "{text}");
    }
    for host in ["Host: localhost", "HOST: 127.0.0.1", "Host: localhost:1234"] {
        assert!(asked(host).starts_with("HTTP/1.0 200 "), "{host}");
    }
    assert!(asked("Host: localhost\r\nHost: evil.example").starts_with("HTTP/1.0 400 "));
    assert!(asked("Accept: */*").starts_with("HTTP/1.0 400 "));
    assert!(answer(port, "GET /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 200 "));
    assert!(answer(port, "GET /x HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 404 "));
    desk.stop();
}
