//! Stripes, concats, growing, scrubbing and metrics of a host.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use prometheus_parse::{Scrape, Value};

use super::{Desk, pattern};

#[test]
fn stripes_and_concats_are_there_again_after_a_kill() {
    let mut desk = Desk::new(&["a", "b", "c", "d"], "");
    desk.start();
    desk.good("volume create --host --kind stripe --interlace 64k d20 a b");
    desk.good("volume create --host --kind concat d21 c d");
    let data = pattern(9, 3 << 20);
    let volumes = ["dsk/d20", "dsk/d21"];
    for volume in volumes {
        let size = desk.file(volume).metadata().unwrap().len();
        let file = desk.file(volume);
        // At the start, over the border in the middle, and at the end.
        for at in [0, size / 2 - (1 << 20), size - data.len() as u64] {
            file.write_all_at(&data, at).unwrap();
        }
        file.sync_all().unwrap();
    }
    desk.kill();
    desk.start();
    for volume in volumes {
        let size = desk.file(volume).metadata().unwrap().len();
        for at in [size / 2 - (1 << 20), size - data.len() as u64] {
            assert!(desk.read(volume, at, data.len()) == data, "{volume} at {at}");
        }
    }
    desk.bad("volume scrub d20", 2, "is a stripe, this is for mirrors");
    desk.bad("volume grow d21", 2, "is a concat, this is for mirrors");
    desk.good("volume destroy d20");
    desk.good("volume create --host d10 a b");
    desk.stop();
}

#[test]
fn a_mirror_whose_images_have_grown_grows_when_it_is_asked_to() {
    let config = "[volume.d10]\ncomponents = [\"a\", \"b\"]\n";
    let mut desk = Desk::new(&["a", "b"], config);
    desk.start();
    let data = pattern(4, 1 << 20);
    desk.file("dsk/d10").write_all_at(&data, 5 << 20).unwrap();
    let before = desk.volume("d10")["bytes"].as_u64().unwrap();
    for image in ["a", "b"] {
        let file = OpenOptions::new().write(true).open(desk.path().join(image)).unwrap();
        file.set_len(40 << 20).unwrap();
    }
    let says = desk.good("volume grow d10");
    assert!(says.contains("seen when the host is started"), "{says}");
    desk.stop();
    desk.start();
    assert_eq!(desk.volume("d10")["bytes"], before);
    let says = desk.good("volume grow d10 --size 30m");
    assert!(says.contains("31457280 bytes"), "{says}");
    desk.good("volume grow d10");
    let after = desk.volume("d10")["bytes"].as_u64().unwrap();
    assert!(after > 30 << 20, "{before} {after}");
    assert!(desk.read("dsk/d10", 5 << 20, data.len()) == data);
    desk.file("dsk/d10").write_all_at(&data, after - data.len() as u64).unwrap();
    desk.bad("volume grow d10 --size 1m", 2, "is never made smaller");
    desk.kill();
    desk.start();
    assert_eq!(desk.volume("d10")["bytes"], after);
    desk.stop();
}

#[test]
fn a_scrub_finds_a_leg_that_differs_and_repairs_it_if_asked_to() {
    let config = "[volume.d10]\ncomponents = [\"a\", \"b\", \"c\"]\n";
    let mut desk = Desk::new(&["a", "b", "c"], config);
    desk.start();
    let data = pattern(6, 1 << 20);
    let file = desk.file("dsk/d10");
    file.write_all_at(&data, 0).unwrap();
    file.sync_all().unwrap();
    drop(file);
    assert!(desk.good("volume scrub d10").contains("1048576 bytes compared"));
    let image = desk.path().join("b");
    let bytes = std::fs::read(&image).unwrap();
    let at = bytes.windows(4096).position(|window| window == &data[..4096]).unwrap();
    let file = OpenOptions::new().write(true).open(&image).unwrap();
    file.write_all_at(&[!data[0]], at as u64).unwrap();
    let out = desk.run("volume scrub d10");
    let says = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(out.status.code(), Some(1), "{says}");
    assert!(says.contains("1 block of 4096 bytes differs"), "{says}");
    let out = desk.run("volume scrub --json d10");
    assert_eq!(out.status.code(), Some(1));
    let found: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&found["name"], &found["differing"]), (&"d10".into(), &1.into()), "{found}");
    assert_eq!((&found["format"], &found["clean"]), (&"steadfast-scrub".into(), &false.into()));
    assert!(desk.good("volume scrub d10 --repair").contains("1 of these were written again"));
    assert!(desk.good("volume scrub d10").contains("1048576 bytes compared"));
    desk.stop();
}

/// What a host answers for metrics, at its socket.
pub fn metrics(desk: &Desk) -> String {
    let mut socket = UnixStream::connect(desk.path().join("metrics")).unwrap();
    socket.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(" 200 OK") && head.contains("version=0.0.4"), "{head}");
    let wrong =
        body.lines().filter(|line| !line.starts_with('#') && !line.starts_with("steadfast_"));
    assert_eq!(wrong.count(), 0, "{body}");
    body.to_owned()
}

fn scraped(desk: &Desk) -> Scrape {
    let body = metrics(desk);
    Scrape::parse(body.lines().map(|line| Ok(line.to_owned()))).unwrap()
}

/// A parser that is not ours reads the metrics, and they count what was done.
#[test]
fn metrics_are_read_by_a_parser_and_count() {
    let config = "[volume.d10]\ncomponents = [\"a\", \"b\"]\n";
    let mut desk = Desk::new(&["a", "b"], config);
    let place = format!("unix:{}", desk.path().join("metrics").display());
    // What is there and is no socket stays.
    std::fs::write(desk.path().join("metrics"), "mine").unwrap();
    let out = desk.run(&format!("serve -f stack.toml --tree tree --metrics {place}"));
    assert_eq!(out.status.code(), Some(2), "{out:?}");
    assert!(String::from_utf8_lossy(&out.stderr).contains("is no socket"), "{out:?}");
    assert_eq!(std::fs::read(desk.path().join("metrics")).unwrap(), b"mine");
    std::fs::remove_file(desk.path().join("metrics")).unwrap();
    let mut command = desk.command();
    command.args(["serve", "-f", "stack.toml", "--tree", "tree", "--metrics", &place]);
    desk.host = Some(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    desk.wait_for_an_answer();
    let value = |scrape: &Scrape, name: &str, of: &str| -> f64 {
        let mut samples = scrape.samples.iter().filter(|s| s.metric == name);
        let sample = samples.find(|s| s.labels.get("device") == Some(of));
        match sample.unwrap_or_else(|| panic!("no {name} of {of}")).value {
            Value::Counter(value) | Value::Gauge(value) | Value::Untyped(value) => value,
            ref other => panic!("{name}: {other:?}"),
        }
    };
    let before = scraped(&desk);
    let data = pattern(1, 1 << 20);
    let file = desk.file("dsk/d10");
    // The kernel cuts a large request where pages of the buffer end, and a block that is cut is
    // read and written once more.
    for (n, piece) in (0..).zip(data.chunks(64 << 10)) {
        file.write_all_at(piece, n * (64 << 10)).unwrap();
    }
    file.sync_all().unwrap();
    drop(file);
    let after = scraped(&desk);
    let more = |name: &str, of: &str| value(&after, name, of) - value(&before, name, of);
    assert_eq!(more("steadfast_written_bytes_total", "d10"), data.len() as f64);
    for leg in ["a", "b"] {
        assert!(more("steadfast_written_bytes_total", leg) >= data.len() as f64);
        // Asking for it is no traffic.
        assert_eq!(more("steadfast_reads_total", leg), 0.0);
    }
    let typed = |name: &str| after.docs.contains_key(name);
    assert!(typed("steadfast_written_bytes_total") && typed("steadfast_up_seconds"));
    desk.stop();
}
