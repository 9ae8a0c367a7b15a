//! Metrics in Prometheus's text format, over HTTP on a loopback address or a unix socket.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>
//!
//! Who may ask and for how long is [`crate::listener`]'s. Any page in a browser of this machine can
//! send requests to a loopback address, and read the answer if its own name leads there (DNS
//! rebinding). So a request over TCP must be for the address itself, or for `localhost`.

mod text;

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use crate::host::Host;
use crate::listener::{Listener, Talk};
use crate::protocol::Refusal;
use crate::protocol::RefusalKind::{Failed, UsedWrongly};
use crate::server::bind;

/// Longest request in bytes.
const REQUEST_MAX: u64 = 8192;

/// What answers for metrics; a socket's file goes with it.
pub struct Metrics {
    _listener: Listener,
    address: String,
}

impl Metrics {
    /// Answers at `unix:PATH` or a loopback address with port.
    ///
    /// # Errors
    /// It is neither, or cannot be listened at.
    pub fn open(place: &str, host: &Arc<Host>) -> Result<Metrics, Refusal> {
        let failed = |e: std::io::Error| Failed.because(format!("{place}: {e}"));
        if let Some(path) = place.strip_prefix("unix:") {
            let path = PathBuf::from(path);
            let socket = bind(&path, "--metrics")?;
            return listening(socket.into(), Some(&path), place.to_owned(), None, host)
                .map_err(failed);
        }
        let wrong = |what: &str| UsedWrongly.because(format!("{place}: {what}"));
        let address: SocketAddr = place.parse().map_err(|_| {
            wrong("metrics are asked for at unix:PATH or ADDRESS:PORT, as 127.0.0.1:9188")
        })?;
        if !address.ip().is_loopback() {
            return Err(wrong("metrics are answered on a loopback address only, as 127.0.0.1"));
        }
        let socket = TcpListener::bind(address).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        listening(socket.into(), None, address.to_string(), Some(address), host).map_err(failed)
    }

    /// Where it answers.
    pub fn address(&self) -> &str {
        &self.address
    }
}

fn listening(
    socket: OwnedFd,
    path: Option<&Path>,
    address: String,
    at: Option<SocketAddr>,
    host: &Arc<Host>,
) -> std::io::Result<Metrics> {
    let host = Arc::downgrade(host);
    let talk = Talk {
        goes_on: false,
        request_max: REQUEST_MAX,
        is_whole: |request| {
            let has = |end: &[u8]| request.windows(end.len()).any(|bytes| bytes == end);
            has(b"\r\n\r\n") || has(b"\n\n")
        },
        answer: Box::new(move |request| answer(request, at, &host)),
        busy: response("503 Service Unavailable", "too many requests are being answered\n"),
        // The socket's file has mode 0600; of a loopback address the documents say it.
        not_allowed: None,
    };
    Ok(Metrics { _listener: Listener::serve(socket, path, talk)?, address })
}

fn answer(request: &[u8], at: Option<SocketAddr>, host: &Weak<Host>) -> Vec<u8> {
    let request = match Request::parsed(request) {
        Some(request) => request,
        None => return response("400 Bad Request", "this is no request of HTTP/1\n"),
    };
    if let Some(at) = at
        && !request.is_for(at)
    {
        let what = format!("metrics are answered for {} and localhost\n", at.ip());
        return response("421 Misdirected Request", &what);
    }
    if request.method != "GET" {
        return response("405 Method Not Allowed", "metrics are asked for by GET\n");
    }
    match (request.target, host.upgrade()) {
        ("/metrics" | "/", Some(host)) => {
            response("200 OK", &text::of(&host.status(), &host.counters()))
        }
        ("/metrics" | "/", None) => response("503 Service Unavailable", "the host has ended\n"),
        _ => response("404 Not Found", "metrics are at /metrics\n"),
    }
}

fn response(status: &str, body: &str) -> Vec<u8> {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let len = body.len();
    let head = format!("HTTP/1.0 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len}");
    format!("{head}\r\n\r\n{body}").into_bytes()
}

/// What counts of a request.
#[derive(Debug, PartialEq, Eq)]
struct Request<'a> {
    method: &'a str,
    target: &'a str,
    /// The host that it is for; a request of HTTP/1.0 need not say it.
    host: Option<&'a str>,
}

impl<'a> Request<'a> {
    /// `None`: it makes no sense, is not complete, or names several hosts or, of HTTP/1.1, none
    /// (RFC 9112, 3.2).
    fn parsed(request: &'a [u8]) -> Option<Request<'a>> {
        let request = std::str::from_utf8(request).ok()?;
        let mut lines = request.lines();
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if words.next().is_some() || !version.starts_with("HTTP/1.") {
            return None;
        }
        let (mut host, mut is_complete) = (None, false);
        for line in lines {
            if line.is_empty() {
                is_complete = true;
                break;
            }
            let (name, value) = line.split_once(':')?;
            if name.eq_ignore_ascii_case("host") && host.replace(value.trim()).is_some() {
                return None;
            }
        }
        let says_enough = host.is_some() || version == "HTTP/1.0";
        (is_complete && says_enough).then_some(Request { method, target, host })
    }

    /// Whether it is for an address that is listened at. The port does not matter: it may have come
    /// through a tunnel.
    fn is_for(&self, at: SocketAddr) -> bool {
        let Some(host) = self.host else { return true };
        let (name, port) = match host.rfind(']') {
            Some(end) => host.split_at(end + 1),
            None => host.split_at(host.rfind(':').unwrap_or(host.len())),
        };
        let port = port.strip_prefix(':').unwrap_or(port);
        let is_port = port.bytes().all(|digit| digit.is_ascii_digit());
        let name = name.strip_suffix('.').unwrap_or(name);
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        is_port
            && (name.eq_ignore_ascii_case("localhost")
                || bare.parse().is_ok_and(|ip: std::net::IpAddr| ip == at.ip()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_for_this_address_or_refused() {
        let (four, six) = ("127.0.0.1:9188".parse().unwrap(), "[::1]:9188".parse().unwrap());
        let is_for = |host: &str, at| {
            let text = format!("GET /metrics HTTP/1.1\r\nA: b\r\nhOst:  {host} \r\n\r\n");
            Request::parsed(text.as_bytes()).unwrap().is_for(at)
        };
        for host in ["127.0.0.1", "127.0.0.1:9188", "localhost", "LocalHost:1", "localhost."] {
            assert!(is_for(host, four), "{host}");
        }
        assert!(is_for("[::1]:9188", six) && is_for("[::1]", six) && is_for("localhost", six));
        for host in ["evil.example", "127.0.0.2", "localhost.evil.example", "x:y:9188", "", "@"] {
            assert!(!is_for(host, four) && !is_for(host, six), "{host}");
        }
        assert!(!is_for("localhost:evil.example", four));
    }

    #[test]
    fn a_request_is_whole_and_names_one_host() {
        let parsed = |text: &str| Request::parsed(text.as_bytes()).is_some();
        assert!(parsed("GET / HTTP/1.0\r\n\r\n") && parsed("GET / HTTP/1.1\nHost: a\n\n"));
        for bad in [
            "",
            "GET /\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            "GET / x HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost\r\n\r\n",
        ] {
            assert!(!parsed(bad), "{bad:?}");
        }
        assert!(Request::parsed(b"GET / HTTP/1.0\r\nA: \xff\r\n\r\n").is_none());
    }
}
