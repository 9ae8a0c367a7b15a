//! A command line of IOzone's, a word a line.
#![cfg_attr(feature = "libfuzzer", no_main)]

use steadfast_bench::iozone::{CommandLine, parse};
use steadfast_fuzz::input::words;

pub fn run(input: &[u8]) {
    let Ok(CommandLine::Run(options)) = parse(&words(input)) else { return };
    assert!(options.record_bytes > 0 && options.records() <= options.file_bytes);
    for children in &options.children {
        drop((0..*children).map(|child| options.file_of(child)).collect::<Vec<_>>());
    }
    if let Some(matrix) = &options.matrix {
        let cells = matrix.cells(options.file_bytes, options.record_bytes);
        assert!(cells.iter().all(|(file, record)| *record > 0 && *file > 0));
        drop(matrix.columns(options.record_bytes));
    }
}

steadfast_fuzz::target!(run);
