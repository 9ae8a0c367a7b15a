//! The IOzone engine from outside: layout, semantics in virtual time, real folders.

mod engine;
mod host;
mod layout;
mod matrix;
mod memory;

use steadfast_bench::iozone::{CommandLine, Options, parse};

/// A command line without "iozone", without the two seconds of rest.
fn options(line: &str) -> Options {
    let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    match parse(&args).unwrap() {
        CommandLine::Run(options) => Options { settle_ms: 0, ..*options },
        other => panic!("{other:?}"),
    }
}
