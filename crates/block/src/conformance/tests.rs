//! The suite passes a right device, in both worlds, and finds each of these wrong ones.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use steadfast_runtime::{Mutex, Sim, sleep, spawn};

use super::{failures, run};
use crate::{BlockDevice, Completer, Completion, DeviceInfo, Payload, Request, Result, check};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Wrong {
    Nothing,
    AcceptsAnything,
    WritesBeforeRefusing,
    IgnoresTheLastBlock,
    LosesTheSecondPart,
    DiscardsNeighbours,
    DiscardFillsWithOnes,
    ForgetsRequests,
    WritesReadOnly,
    AnswersWritesWithBytes,
    MixesOverlappingWrites,
    ReadsShort,
    ReadsIntoOtherMemory,
}

struct Toy {
    wrong: Wrong,
    /// Answers come from another task.
    slow: bool,
    info: DeviceInfo,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Toy {
    fn make(wrong: Wrong, slow: bool) -> Arc<dyn BlockDevice> {
        let mut info = DeviceInfo::new("toy", "test device", 128 * 1024);
        info.read_only = wrong == Wrong::WritesReadOnly;
        let bytes = Arc::new(Mutex::new(vec![0; info.size as usize]));
        Arc::new(Toy { wrong, slow, info, bytes })
    }
}

fn apply(wrong: Wrong, info: &DeviceInfo, bytes: &mut [u8], request: &Request) -> Bytes {
    let size = bytes.len();
    let range = |at: u64, len: u64| at as usize..((at + len) as usize).min(size);
    match request {
        Request::Read { offset, len } if *len < 1 << 30 && *offset < info.size => {
            let short = if wrong == Wrong::ReadsShort && *len > 4096 { 512 } else { 0 };
            return Bytes::copy_from_slice(&bytes[range(*offset, *len - short)]);
        }
        Request::Write { offset, data, .. } if *offset < info.size => {
            let mut data = data.clone();
            if wrong == Wrong::LosesTheSecondPart && data.parts().len() == 2 {
                data = data.parts()[0].clone().into();
            }
            let len = data.len() as u64;
            if wrong == Wrong::IgnoresTheLastBlock && offset + len == info.size {
                return Bytes::new();
            }
            let range = range(*offset, len);
            let data = data.into_contiguous();
            bytes[range.clone()].copy_from_slice(&data[..range.len()]);
        }
        Request::Discard { offset, len } if *offset < info.size => {
            let fill = if wrong == Wrong::DiscardFillsWithOnes { 1 } else { 0 };
            let extra = if wrong == Wrong::DiscardsNeighbours { 512 } else { 0 };
            bytes[range(*offset, len.min(&info.size) + extra)].fill(fill);
        }
        _ => {}
    }
    Bytes::new()
}

impl BlockDevice for Toy {
    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn submit(&self, request: Request) -> Completion {
        let wrong = self.wrong;
        match check(&self.info, &request) {
            Err(_) if matches!(wrong, Wrong::AcceptsAnything | Wrong::WritesReadOnly) => {}
            Err(e) => {
                if wrong == Wrong::WritesBeforeRefusing && request.op() == "discard" {
                    apply(wrong, &self.info, &mut self.bytes.lock(), &request);
                }
                return Completion::ready(Err(e));
            }
            Ok(()) => {}
        }
        let (completer, completion) = Completion::pending();
        let (info, bytes) = (self.info.clone(), Arc::clone(&self.bytes));
        let body = move |completer: Completer| {
            let mut answer: Result<Bytes> = Ok(apply(wrong, &info, &mut bytes.lock(), &request));
            if let Request::Write { data, offset, .. } = &request {
                mix_halves(wrong, &bytes, *offset, data);
                if wrong == Wrong::AnswersWritesWithBytes {
                    answer = Ok(Bytes::from_static(b"?"));
                }
            }
            completer.complete(answer);
        };
        if wrong == Wrong::ForgetsRequests {
            spawn("toy", move || {
                sleep(Duration::from_millis(1));
                drop(completer);
            });
        } else if self.slow {
            spawn("toy", move || {
                sleep(Duration::from_micros(50));
                body(completer);
            });
        } else {
            body(completer);
        }
        completion
    }

    fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let read = self.read(offset, out.len() as u64)?;
        let at = usize::from(self.wrong == Wrong::ReadsIntoOtherMemory).min(out.len());
        let len = read.len().min(out.len() - at);
        out[at..at + len].copy_from_slice(&read[..len]);
        Ok(())
    }
}

/// Writes the first half of the first block once more, after the other writes in flight.
fn mix_halves(wrong: Wrong, bytes: &Mutex<Vec<u8>>, offset: u64, data: &Payload) {
    if wrong == Wrong::MixesOverlappingWrites {
        sleep(Duration::from_micros(100));
        let at = offset as usize;
        let half = data.slice(0, 256).into_contiguous();
        bytes.lock()[at..at + 256].copy_from_slice(&half);
    }
}

#[test]
fn a_right_device_passes_in_both_worlds() {
    for slow in [false, true] {
        let make = move || Toy::make(Wrong::Nothing, slow);
        run(&make);
        Sim::new(1).run(move || run(&make)).unwrap();
    }
}

#[test]
fn each_wrong_device_is_found() {
    use Wrong::*;
    let bugs: [(Wrong, &str); 12] = [
        (AcceptsAnything, "bad reads are refused"),
        (WritesBeforeRefusing, "refused without effect"),
        (IgnoresTheLastBlock, "the first and the last block"),
        (LosesTheSecondPart, "several parts"),
        (DiscardsNeighbours, "a discarded range"),
        (DiscardFillsWithOnes, "a discarded range"),
        (ForgetsRequests, "a flush completes"),
        (WritesReadOnly, "a read-only device refuses"),
        (AnswersWritesWithBytes, "a read sees the write before it"),
        (MixesOverlappingWrites, "overlapping writes"),
        (ReadsShort, "large requests"),
        (ReadsIntoOtherMemory, "the caller's memory"),
    ];
    for (bug, case) in bugs {
        let found = Sim::new(1).run(move || failures(&|| Toy::make(bug, true))).unwrap();
        let text: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(
            found.iter().any(|f| f.case.contains(case)),
            "{bug:?} not found by '{case}': {text:#?}"
        );
    }
}

#[test]
#[should_panic(expected = "toy (test device), case 'large requests are done whole'")]
fn a_failure_names_device_and_case() {
    run(&|| Toy::make(Wrong::ReadsShort, false));
}
