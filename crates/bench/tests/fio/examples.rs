//! fio's own example job files (Debian's package fio-examples; fio 3.33): their option lines. Each
//! runs in virtual time, at a smaller size, or is refused by the names of what is not here.

use std::time::Duration;

use crate::memory::Behaviour;
use crate::{planned, simulate};

/// Each behind its name.
const EXAMPLES: &str = include_str!("examples.txt");

/// An example: its name, its lines, and what of them is refused.
struct ExampleJob<'a> {
    name: &'a str,
    text: String,
    refused: Vec<&'a str>,
}

fn examples() -> Vec<ExampleJob<'static>> {
    let each = EXAMPLES.split("=== ").skip(1).map(|example| {
        let mut lines = example.lines();
        let name = lines.next().unwrap();
        let (refused, text): (Vec<&str>, Vec<&str>) = lines.partition(|l| l.starts_with("! "));
        ExampleJob { name, text: text.join("\n"), refused }
    });
    each.collect()
}

/// The same job for less time and with smaller files.
fn small(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let name = line.split('=').next().unwrap();
        match name {
            "size" | "filesize" => lines.push(format!("{name}=2m")),
            "runtime" | "timeout" => lines.push(format!("{name}=200ms")),
            "loops" => lines.push("loops=2".into()),
            "filename" if line.contains("/dev/") => lines.extend([line.into(), "size=2m".into()]),
            "ioengine" if line.contains("null") => {
                lines.extend([line.into(), "number_ios=5000".into()]);
            }
            _ => lines.push(line.into()),
        }
    }
    lines.join("\n")
}

#[test]
fn thirty_and_more_run_or_are_refused_by_name() {
    let examples = examples();
    assert!(examples.len() >= 30);
    assert!(examples.iter().filter(|example| example.refused.is_empty()).count() >= 20);
    for ExampleJob { name, text, refused } in examples {
        if !refused.is_empty() {
            let wrong = planned(&text).unwrap_err();
            let lines: Vec<&str> = wrong.lines().collect();
            assert_eq!(lines.len(), refused.len(), "{name}: {wrong}");
            for (line, what) in lines.iter().zip(refused) {
                assert!(line.starts_with(&format!("a.fio:{}", &what[2..])), "{name}: {line}");
            }
            continue;
        }
        let us = Duration::from_micros(100);
        let behaviour = Behaviour { read: us, write: us, fsync: us, ..Behaviour::default() };
        // The folders of the examples, of which this file system has none.
        let text = small(&text).replace("directory=/data1", "");
        let text = text.replace("directory=/mount-point-of-ssd", "");
        let (results, _) = simulate(&text.replace("/dev/", "").replace("/tmp/", ""), behaviour);
        assert_eq!(results.fault(), None, "{name}");
        assert!(results.entries.iter().all(|e| e.figures.requests() > 0), "{name}");
    }
}
