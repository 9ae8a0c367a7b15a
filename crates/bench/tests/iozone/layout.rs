//! Our text against outputs of IOzone 3.487 (`samples/`, from "Run began" on): the same lines,
//! tabulators, blanks and column widths; only the figures differ.

use std::time::Duration;

use steadfast_bench::iozone::{Surroundings, report, run};
use steadfast_runtime::Sim;

use crate::memory::{Behaviour, MemoryFs};
use crate::options;

const MACHINE: &str = "Linux vm 6.18.44-fc-v669 #1 SMP PREEMPT_DYNAMIC @0 x86_64 GNU/Linux";

/// The text of a command line run in virtual time, from behind "Run began" on.
fn ours(line: &str) -> String {
    let options = options(line);
    let behaviour = Behaviour {
        read: Duration::from_micros(300),
        write: Duration::from_micros(500),
        fsync: Duration::from_micros(800),
        ..Behaviour::default()
    };
    let text = Sim::new(7).run(move || {
        let surroundings = Surroundings {
            began: Some("Fri Nov 20 19:54:09 2026".into()),
            machine: Some(MACHINE.into()),
            ..Surroundings::default()
        };
        let results = run(MemoryFs::new(behaviour), "", &options, &surroundings, None).unwrap();
        report::text(&results)
    });
    let text = text.unwrap();
    let (_, rest) = text.split_once("Run began: Fri Nov 20 19:54:09 2026\n").unwrap();
    rest.to_owned()
}

/// Replaces each figure with two decimals, right-aligned in its column, by its width; a figure
/// wider than the column stands for itself.
fn shape(text: &str) -> Vec<String> {
    let figures = |line: &str| match line.trim_start().starts_with("CPU ") {
        // Widths vary with the processor's time.
        true => line.split_whitespace().filter(|w| !w.contains('.')).collect::<Vec<_>>().join(" "),
        false => line.split('=').map(part).collect::<Vec<_>>().join("="),
    };
    text.lines().map(figures).collect()
}

fn part(part: &str) -> String {
    let mut out = String::new();
    let mut rest = part;
    while let Some(dot) = rest.find('.') {
        let (before, after) = rest.split_at(dot);
        let digits = before.chars().rev().take_while(char::is_ascii_digit).count();
        let two = after.len() >= 3 && after.as_bytes()[1..3].iter().all(u8::is_ascii_digit);
        let three = after.as_bytes().get(3).is_some_and(u8::is_ascii_digit);
        if digits == 0 || !two || three {
            out += before;
            out.push('.');
            rest = &after[1..];
            continue;
        }
        let head = &before[..before.len() - digits];
        let text = head.trim_end_matches(' ');
        // One blank separates, the others and the digits fill ten columns.
        let width = (head.len() - text.len() + digits + 3).max(11);
        out += text;
        out += &format!("<{}>", if width > 11 { 11 } else { width });
        rest = &after[3..];
    }
    out + rest
}

fn compare(line: &str, sample: &str) {
    let sample = sample
        .replace("Time Resolution = 0.000001 seconds.", "Time Resolution = 0.000000001 seconds.");
    let (ours, theirs) = (shape(&ours(line)), shape(&sample));
    for (i, (a, b)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(a, b, "line {i} of {line}");
    }
    assert_eq!(ours.len(), theirs.len(), "{line}");
}

#[test]
fn the_published_command_line() {
    let line = "-M -o -c -e -t3 -T -I -s 16m -r 256k -i0 -i2 -i6 -i8 -i9 -i11";
    let text = ours(line);
    assert_eq!(text.matches("\tSYNC Mode. \n").count(), 2);
    // IOzone on Linux leaves test 11 out without a word; its block stands between pwrite and
    // fwrite.
    let blocks: Vec<&str> = text.split("\n\tChildren see throughput for ").collect();
    let at = blocks.iter().position(|b| b.starts_with("3 pwritev writers")).unwrap();
    assert!(blocks[at - 1].starts_with("3 pwrite writers"));
    assert!(blocks[at + 1].starts_with(" 3 fwriters"));
    let without: Vec<&str> =
        blocks.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, b)| *b).collect();
    let without = without.join("\n\tChildren see throughput for ");
    assert_eq!(
        shape(&without),
        shape(
            &include_str!("samples/published.txt")
                .replace("0.000001 seconds", "0.000000001 seconds")
        )
    );
}

#[test]
fn all_tests_with_children_and_report() {
    compare("-C -R -t 2 -s 4m -r 64k", include_str!("samples/all_C_R.txt"));
}

#[test]
fn a_sweep() {
    compare("-R -l 1 -u 3 -s 4m -r 64k -i 0 -i 1", include_str!("samples/sweep_R.txt"));
}

#[test]
fn operations_a_second() {
    compare("-O -t 2 -s 4m -r 64k -i 0", include_str!("samples/ops.txt"));
}

#[test]
fn without_stonewall() {
    compare("-x -C -t 2 -s 4m -r 64k -i 0 -i 1", include_str!("samples/x_C.txt"));
}

#[test]
fn named_files() {
    compare("-t 2 -F fa fb -s 1m -r 64k -i 0", include_str!("samples/names.txt"));
}

#[test]
fn processor_use_latency_files_and_histograms() {
    compare("-+u -R -t 2 -s 4m -r 64k -i 0", include_str!("samples/throughput_cpu_u.txt"));
    compare("-Q -t 2 -s 1m -r 64k -i 0 -i 1 -i 2", include_str!("samples/Q_throughput.txt"));
    compare("-+z -t 2 -s 1m -r 64k -i 0 -i 1", include_str!("samples/hist.txt"));
}

/// Every field of the JSON is in `docs/iozone.md`, but for the options, which are named after
/// what they hold.
#[test]
fn the_json_is_documented() {
    let doc = include_str!("../../../../docs/iozone.md");
    let options = options("-e -c -t 2 -s 1m -r 64k -i 0");
    let json = Sim::new(7).run(move || {
        let fs = MemoryFs::new(Behaviour::default());
        run(fs, "", &options, &Surroundings::default(), None).unwrap().to_json().unwrap()
    });
    let mut value: serde_json::Value = serde_json::from_str(&json.unwrap()).unwrap();
    assert_eq!(value["version"], 1);
    assert!(value["options"].take().is_object());
    let mut todo = vec![value];
    while let Some(value) = todo.pop() {
        match value {
            serde_json::Value::Object(fields) => {
                for (name, value) in fields {
                    assert!(doc.contains(&format!("`{name}`")), "{name}");
                    todo.push(value);
                }
            }
            serde_json::Value::Array(values) => todo.extend(values),
            _ => {}
        }
    }
}
