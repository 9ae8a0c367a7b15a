//! Texts that traces are made of: strace's, fio's, blkparse's.
#![cfg_attr(feature = "libfuzzer", no_main)]

use std::io::Cursor;

use steadfast_trace::TraceReader;
use steadfast_trace::import::{ImportOptions, TextInput, import};

pub fn run(input: &[u8]) {
    let text = TextInput {
        name: "text".into(),
        text: Box::new(Cursor::new(input.to_vec())),
        written_seconds: Some(1.0),
    };
    let options = ImportOptions { folder: "/w".into(), unit_ns: None };
    let mut written = Vec::new();
    if let Err(why) = import(vec![text], &options, &mut written) {
        return drop(why.to_string());
    }
    // What it writes can be read.
    let mut reader = TraceReader::new(Cursor::new(written), false).expect("a trace");
    while reader.next_entry().expect("a line of a trace").is_some() {}
}

steadfast_fuzz::target!(run);
