//! Metrics in Prometheus's text format, over HTTP on a loopback address or a unix socket.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::host::Host;
use crate::protocol::{Counters, Kind, Refusal, StackCounters, StackStatus};
use crate::server::bind;

/// Longest request in bytes.
const REQUEST_MAX: u64 = 8192;
const TIMEOUT: Duration = Duration::from_secs(5);

/// What answers for metrics; a socket's file goes with it.
pub struct Metrics {
    path: Option<PathBuf>,
    address: String,
}

impl Metrics {
    /// Answers at `unix:PATH` or a loopback address with port.
    ///
    /// # Errors
    /// It is neither, or cannot be listened at.
    pub fn open(place: &str, host: &Arc<Host>) -> Result<Metrics, Refusal> {
        let failed = |e: std::io::Error| Refusal::new(Kind::Failed, format!("{place}: {e}"));
        let host = Arc::downgrade(host);
        if let Some(path) = place.strip_prefix("unix:") {
            let path = PathBuf::from(path);
            let listener = bind(&path, "--metrics")?;
            listen(move || Ok(listener.accept()?.0), |c| c.set_read_timeout(Some(TIMEOUT)), host)
                .map_err(failed)?;
            return Ok(Metrics { path: Some(path), address: place.to_owned() });
        }
        let wrong = |what: &str| Refusal::new(Kind::UsedWrongly, format!("{place}: {what}"));
        let address: SocketAddr = place.parse().map_err(|_| {
            wrong("metrics are asked for at unix:PATH or ADDRESS:PORT, as 127.0.0.1:9188")
        })?;
        if !address.ip().is_loopback() {
            return Err(wrong("metrics are answered on a loopback address only, as 127.0.0.1"));
        }
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?.to_string();
        listen(move || Ok(listener.accept()?.0), |c| c.set_read_timeout(Some(TIMEOUT)), host)
            .map_err(failed)?;
        Ok(Metrics { path: None, address })
    }

    /// Where it answers.
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // OK to ignore: a later client finds no listener.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// One after the other: there is one who asks, every few seconds.
fn listen<C: Read + Write + Send + 'static>(
    accept: impl Fn() -> std::io::Result<C> + Send + 'static,
    limit: impl Fn(&C) -> std::io::Result<()> + Send + 'static,
    host: Weak<Host>,
) -> std::io::Result<()> {
    let serve = move || {
        loop {
            let Ok(connection) = accept() else {
                std::thread::sleep(Duration::from_millis(100));
                continue;
            };
            let Some(host) = host.upgrade() else { return };
            if limit(&connection).is_ok() {
                // Who does not listen to the answer misses it.
                let _ = converse(connection, &host);
            }
        }
    };
    std::thread::Builder::new().name("metrics".into()).spawn(serve).map(drop)
}

fn converse(mut connection: impl Read + Write, host: &Host) -> std::io::Result<()> {
    let mut first = String::new();
    let mut request = BufReader::new((&mut connection).take(REQUEST_MAX));
    request.read_line(&mut first)?;
    // The rest of the request: its headers end with an empty line.
    let mut line = String::new();
    while request.read_line(&mut line)? > 2 {
        line.clear();
    }
    drop(request);
    let is_known = first.starts_with("GET /metrics ") || first.starts_with("GET / ");
    let (status, body) = match is_known {
        true => ("200 OK", text(&host.status(), &host.counters())),
        false => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
    };
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let len = body.len();
    write!(
        connection,
        "HTTP/1.0 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\n\r\n{body}"
    )?;
    connection.flush()
}

/// A host's metrics.
pub fn text(status: &StackStatus, counters: &StackCounters) -> String {
    let mut out = String::new();
    type Value = fn(&Counters) -> f64;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let of: [(&str, &str, &str, Value); 8] = [
        ("reads_total", "counter", "Reads that were done.", |c| c.reads as f64),
        ("writes_total", "counter", "Writes that were done.", |c| c.writes as f64),
        ("read_bytes_total", "counter", "Bytes read.", |c| c.read_bytes as f64),
        ("written_bytes_total", "counter", "Bytes written.", |c| c.written_bytes as f64),
        ("flushes_total", "counter", "Flushes that were done.", |c| c.flushes as f64),
        ("errors_total", "counter", "Requests that failed.", |c| c.errors as f64),
        ("busy_seconds_total", "counter", "Time with a request under way.", |c| {
            c.run_ns as f64 / 1e9
        }),
        ("in_flight", "gauge", "Requests under way.", |c| c.in_flight as f64),
    ];
    let head = |out: &mut String, name: &str, kind: &str, help: &str| {
        let _ = writeln!(out, "# HELP steadfast_{name} {help}");
        let _ = writeln!(out, "# TYPE steadfast_{name} {kind}");
    };
    head(&mut out, "up_seconds", "gauge", "Time since the host was started.");
    let _ = writeln!(out, "steadfast_up_seconds {}", seconds(status.up_ns));
    for (name, kind, help, value) in of {
        head(&mut out, name, kind, help);
        for c in &counters.of {
            let _ = writeln!(out, "steadfast_{name}{{device=\"{}\"}} {}", c.name, value(c));
        }
    }
    head(&mut out, "device_present", "gauge", "1 if the device is there.");
    for device in &status.devices {
        let there = u8::from(device.problem.is_none());
        let _ = writeln!(out, "steadfast_device_present{{device=\"{}\"}} {there}", device.name);
    }
    head(&mut out, "volume_whole", "gauge", "1 if it is assembled and no durable leg is missing.");
    for volume in &status.volumes {
        let whole = volume.problem.is_none() && volume.mirror.as_ref().is_none_or(|m| m.whole);
        let name = &volume.name;
        let _ = writeln!(out, "steadfast_volume_whole{{volume=\"{name}\"}} {}", u8::from(whole));
    }
    head(
        &mut out,
        "volume_dirty_regions",
        "gauge",
        "Regions that a power cut would leave out of sync.",
    );
    for volume in &status.volumes {
        if let Some(mirror) = &volume.mirror {
            let (name, dirty) = (&volume.name, mirror.regions.dirty + mirror.regions.filling);
            let _ = writeln!(out, "steadfast_volume_dirty_regions{{volume=\"{name}\"}} {dirty}");
        }
    }
    head(
        &mut out,
        "volume_unchecked_bytes",
        "gauge",
        "Written bytes that no checksum covers, where there are checksums.",
    );
    for volume in &status.volumes {
        if let Some(mirror) = volume.mirror.as_ref().filter(|mirror| mirror.checksums) {
            let (name, bytes) = (&volume.name, mirror.unchecked_bytes);
            let _ = writeln!(out, "steadfast_volume_unchecked_bytes{{volume=\"{name}\"}} {bytes}");
        }
    }
    head(
        &mut out,
        "leg_checksum_errors_total",
        "counter",
        "Blocks of a leg that were not what was written, and damaged checksums.",
    );
    for volume in &status.volumes {
        for leg in volume.mirror.iter().filter(|m| m.checksums).flat_map(|m| &m.legs) {
            let labels = format!("volume=\"{}\",leg=\"{}\"", volume.name, escaped(&leg.component));
            let errors = leg.checksum_errors;
            let _ = writeln!(out, "steadfast_leg_checksum_errors_total{{{labels}}} {errors}");
        }
    }
    head(&mut out, "mount_up", "gauge", "1 if the file system is mounted.");
    for mount in &status.mounts {
        let labels = format!("mount=\"{}\",volume=\"{}\"", mount.name, mount.volume);
        let _ = writeln!(out, "steadfast_mount_up{{{labels}}} {}", u8::from(mount.mounted));
    }
    head(&mut out, "leg_lacking_bytes", "gauge", "Bytes that a leg lacks.");
    for volume in &status.volumes {
        for leg in volume.mirror.iter().flat_map(|m| &m.legs) {
            let labels = format!("volume=\"{}\",leg=\"{}\"", volume.name, escaped(&leg.component));
            let _ = writeln!(out, "steadfast_leg_lacking_bytes{{{labels}}} {}", leg.lacking_bytes);
        }
    }
    out
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
