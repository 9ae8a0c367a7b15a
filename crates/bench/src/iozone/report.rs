//! What came out, in IOzone's layout.
//!
//! Tabulators, blanks at line ends and column widths are IOzone 3.487's, so that programs that
//! read its output read ours. The first lines say whose run it is.

use std::fmt::Write;

use super::options::{BannerLine, Options};
use super::results::{IozoneResults, Surroundings, TestResult};

/// Columns of the table in which IOzone keeps its header lines.
const BANNER_COLUMNS: usize = 80;

/// The whole text: header, blocks, end.
pub fn text(results: &IozoneResults) -> String {
    let surroundings = Surroundings {
        began: results.began.clone(),
        machine: results.machine.clone(),
        ..Surroundings::default()
    };
    let mut out = header(&results.options, &surroundings);
    for run in &results.runs {
        out += &run_header(&results.options);
        for test in &run.tests {
            out += &block(&results.options, test);
        }
        out += "\n\n";
    }
    out + &end(results)
}

/// What is known before the first test: the program, the machine, the options.
pub fn header(options: &Options, surroundings: &Surroundings) -> String {
    let mut out = String::from("\tIozone: Performance Test of File I/O\n");
    let version = env!("CARGO_PKG_VERSION");
    out += &format!("\t        Version $Revision: 3.487 $ as done by Steadfast {version}\n");
    out += "\t\tCompiled for 64 bit mode.\n";
    out += &format!("\t\tBuild: {} \n", build());
    out += "\n\tTests and layout after IOzone by William Norcott, Don Capps and others.\n";
    if let Some(began) = &surroundings.began {
        out += &format!("\n\tRun began: {began}\n");
    }
    out.push('\n');
    banner(&mut out, options, surroundings);
    out += &format!("\tCommand line used: {}\n", options.command_line);
    let microseconds = options.matrix.as_ref().is_some_and(|m| m.microseconds);
    if !options.ops && !microseconds {
        out += "\tOutput is in kBytes/sec\n";
    }
    out += "\tTime Resolution = 0.000000001 seconds.\n";
    out += &format!("\tProcessor cache size set to {} kBytes.\n", options.cache_kb);
    out += &format!("\tProcessor cache line size set to {} bytes.\n", options.cache_line);
    out += &format!("\tFile stride size set to {} * record size.\n", options.stride);
    if options.matrix.is_some() {
        return out;
    }
    if let Some((lower, upper)) = options.sweep {
        let child = noun(options);
        out += &format!("\tMin {child} = {lower} \n\tMax {child} = {upper} \n");
    }
    let first = options.sweep.map_or_else(
        // IOzone names the last -t.
        || options.children.last().copied().unwrap_or(1),
        |(lower, _)| lower,
    );
    let plural = match (first, options.threads) {
        (1, _) => noun(options),
        (_, true) => "threads",
        (_, false) => "processes",
    };
    out + &format!("\tThroughput test with {first} {plural}\n")
}

fn build() -> String {
    match std::env::consts::ARCH {
        "x86_64" => "linux-AMD64".into(),
        arch => format!("linux-{arch}"),
    }
}

/// The lines that the options have caused.
///
/// IOzone keeps them in rows of 80 bytes. A machine line that fills its row has no end there, so
/// the next row is printed with it and then once more by itself. Programs that count lines have
/// got used to the repeated line; it is kept, without the damage to the machine line.
fn banner(out: &mut String, options: &Options, surroundings: &Surroundings) {
    let mut repeat_next = false;
    for line in &options.banner {
        let line = match line {
            BannerLine::Machine => {
                let machine = surroundings.machine.as_deref().unwrap_or("unknown");
                let line = format!("\n\tMachine = {machine}\n");
                repeat_next = line.len() >= BANNER_COLUMNS;
                *out += &line;
                continue;
            }
            BannerLine::Text(text) => format!("\t{text}\n"),
        };
        *out += &line.repeat(if repeat_next { 2 } else { 1 });
        repeat_next = false;
    }
}

fn noun(options: &Options) -> &'static str {
    if options.threads { "thread" } else { "process" }
}

/// The line before the tests of one number of children.
fn run_header(options: &Options) -> String {
    format!(
        "\tEach {} writes a {} kByte file in {} kByte records\n",
        noun(options),
        options.file_bytes >> 10,
        options.record_bytes >> 10
    )
}

/// One test's block, with the blank line in front of it.
pub fn block(options: &Options, test: &TestResult) -> String {
    let (unit, child, s) = (options.unit(), noun(options), &test.summary);
    let who = who(test);
    let mut out = String::from("\n");
    let mut line = |text: &str, tabs: &str, amount: f64, end: &str| {
        // OK to ignore: writing to a string cannot fail.
        let _ = writeln!(out, "\t{text} {tabs}= {amount:10.2} {unit}{end}");
    };
    let (children, parent) = tabs(test.label);
    line(&format!("Children see throughput for {who}"), children, s.children_see, "/sec");
    line(&format!("Parent sees throughput for {who}"), parent, s.parent_sees, "/sec");
    line(&format!("Min throughput per {child}"), "\t\t\t", s.min, "/sec ");
    line(&format!("Max throughput per {child}"), "\t\t\t", s.max, "/sec");
    line(&format!("Avg throughput per {child}"), "\t\t\t", s.avg, "/sec");
    line("Min xfer", "\t\t\t\t\t", s.min_xfer, "");
    if options.child_lines {
        for c in &test.children {
            let _ = writeln!(
                out,
                "\tChild[{}] xfer count = {:10.2} {unit}, Throughput = {:10.2} {unit}/sec",
                c.child, c.xfer, c.rate
            );
        }
    }
    if let Some(cpu_ns) = test.cpu_ns {
        // IOzone has a capital letter with the first test only.
        let word = if test.label == "initial writers" { "Utilization" } else { "utilization" };
        let (wall, cpu) = (test.parent_ns as f64 / 1e9, cpu_ns as f64 / 1e9);
        let _ = writeln!(
            out,
            "\tCPU {word}: Wall time {wall:8.3}    CPU time {cpu:8.3}    \
             CPU utilization {:6.2} %\n",
            100.0 * cpu / wall.max(1e-9)
        );
    }
    out
}

/// "3 random readers"; some labels have the number in two columns.
fn who(test: &TestResult) -> String {
    let children = test.children.len();
    match test.label {
        "initial writers" | "rewriters" | "readers" | "fwriters" | "freaders" => {
            format!("{children:2} {}", test.label)
        }
        label => format!("{children} {label}"),
    }
}

/// Tabulators behind the label, in the children's line and in the parent's.
fn tabs(label: &str) -> (&'static str, &'static str) {
    match label {
        "readers" => ("\t\t", "\t\t"),
        "fwriters" | "freaders" => ("\t", "\t\t"),
        _ => ("\t", "\t"),
    }
}

/// What follows the last run: the -R report, the closing line.
pub fn end(results: &IozoneResults) -> String {
    let options = &results.options;
    let mut out = String::new();
    if options.report {
        let rates = if options.ops { "ops/sec" } else { "kBytes/sec" };
        out += &table(results, "Throughput", rates, |t| t.summary.children_see);
        if options.cpu_use {
            out += &table(results, "CPU utilization", "CPU%", |t| {
                100.0 * t.cpu_ns.unwrap_or(0) as f64 / (t.parent_ns as f64).max(1.0)
            });
        }
    }
    out + "\niozone test complete.\n"
}

/// A table of the report: a figure of each test, by the number of children.
fn table(
    results: &IozoneResults,
    name: &str,
    unit: &str,
    figure: impl Fn(&TestResult) -> f64,
) -> String {
    let children = if results.options.threads { "threads" } else { "processes" };
    let mut out = format!(
        "\n\"{name} report Y-axis is type of test X-axis is number of {children}\"\n\
         \"Record size = {} kBytes \"\n\"Output is in {unit}\"\n\n",
        results.options.record_bytes >> 10
    );
    for test in results.runs.first().into_iter().flat_map(|run| &run.tests) {
        let _ = write!(out, "\"{:>15} \"", test.test.title());
        for result in results.of(test.test) {
            let _ = write!(out, " {:10.2} ", figure(result));
        }
        out += "\n\n";
    }
    out
}
