//! A trace: its lines, as they are and in a frame of zstd; the calls in their order.
#![cfg_attr(feature = "libfuzzer", no_main)]

use std::io::Cursor;

use steadfast_trace::TraceReader;
use steadfast_trace::format::TraceEntry;
use steadfast_trace::order::CallOrder;

pub fn run(input: &[u8]) {
    read(input.to_vec());
    // Lines: what a mutation of packed bytes seldom gets to.
    if input.len() < 1 << 16 {
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
        frame.extend((input.len() as u32).to_le_bytes());
        frame.extend(&(((input.len() as u32) << 3) | 1).to_le_bytes()[..3]);
        frame.extend(input);
        read(frame);
    }
}

fn read(bytes: Vec<u8>) {
    let mut reader = match TraceReader::new(Cursor::new(bytes), true) {
        Ok(reader) => reader,
        Err(why) => return drop(why.to_string()),
    };
    let mut order = CallOrder::new(reader.header().trip.clone());
    loop {
        match reader.next_entry() {
            Ok(Some(TraceEntry::Thread(thread))) => order.thread(&thread),
            Ok(Some(TraceEntry::Call(mut call))) => order.call(&mut call),
            Ok(Some(_)) => {}
            Ok(None) => return,
            Err(why) => return drop(why.to_string()),
        }
    }
}

steadfast_fuzz::target!(run);
