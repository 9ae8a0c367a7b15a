//! Requests to a stack host, a line of JSON each: read and written again, and the answers of a host
//! without devices to what changes nothing outside of it.
#![cfg_attr(feature = "libfuzzer", no_main)]

use steadfast_stack::protocol::{RefusalKind, Request, reply};

pub fn run(input: &[u8]) {
    for line in input.split(|b| *b == b'\n') {
        match serde_json::from_slice::<Request>(line) {
            Ok(request) => {
                let written = serde_json::to_vec(&request).expect("what was read can be written");
                let again: Request =
                    serde_json::from_slice(&written).expect("what was written can be read");
                assert_eq!(again, request);
            }
            Err(why) => {
                let refused = RefusalKind::UsedWrongly.because(why.to_string());
                let answer = reply(&Err(refused)).to_string();
                assert!(!answer.contains('\n'), "an answer is one line");
            }
        }
    }
}

steadfast_fuzz::target!(run);
