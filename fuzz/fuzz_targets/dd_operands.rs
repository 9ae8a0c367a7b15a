//! A command line of dd's, a word a line.
#![cfg_attr(feature = "libfuzzer", no_main)]

use std::ffi::OsString;

use steadfast_bench::dd::{Charset, parse};
use steadfast_fuzz::input::words;

pub fn run(input: &[u8]) {
    let words: Vec<OsString> = words(input).into_iter().map(OsString::from).collect();
    match parse(&words, Charset::Utf8) {
        Ok(operands) => {
            assert!(operands.ibs > 0 && operands.obs > 0);
            let _ = (operands.seek_offset(), operands.truncates(), operands.seeks());
        }
        Err(wrong) => assert!(!wrong.to_string().is_empty()),
    }
}

steadfast_fuzz::target!(run);
