//! The file of a recorded run. The input is what stands between its head and its checksum, which
//! are made right: the fuzzer could not guess them. What was read is cut at its end, and saved
//! again.
#![cfg_attr(feature = "libfuzzer", no_main)]

use steadfast_crash::program::file::{load, save};
use steadfast_devices::filter::record::DeviceId;
use steadfast_fuzz::input::InMemory;

const HEAD: &[u8] = b"steadfast crash\n\x06\0\0\0";

pub fn run(input: &[u8]) {
    let mut bytes = [HEAD, input].concat();
    let sum = crc32c::crc32c(&bytes);
    bytes.extend(sum.to_le_bytes());
    let Ok(run) = load(&InMemory::new(&bytes).path()) else { return };
    let _ = run.totals();
    let last = run.recording.last_crash_point();
    for (device, base) in (0..).zip(&run.bases) {
        // A file of this length has few pieces, and a device's contents are sparse.
        drop(run.recording.at(DeviceId(device), last).contents_where(base, 0, |_, _| true));
    }
    let (first, second) = (InMemory::new(&[]), InMemory::new(&[]));
    save(&run, &first.path()).expect("room in memory");
    let again = load(&first.path()).expect("what was saved is read");
    save(&again, &second.path()).expect("room in memory");
    assert_eq!(first.contents(), second.contents(), "what was read is what was saved");
}

steadfast_fuzz::target!(run);
