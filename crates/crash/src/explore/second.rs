//! Second cuts: the power goes again, while the machine recovers or just after it has.

use std::collections::HashSet;

use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::{DeviceId, Recording};
use steadfast_devices::store::Store;

use super::system::System;

/// What a second cut of the recovery from `contents` leaves, at an instant that is drawn; `None`:
/// the system's recovery is not known. An error is a refused mount, in words.
pub(crate) fn cut_recovery(
    system: &dyn System,
    contents: &[Store],
    choices: &mut Rng,
) -> Option<crate::Result<Vec<Store>>> {
    let recording = system.record_recovery(contents.to_vec(), choices.bits())?;
    Some(recording.map(|recording| {
        let (first, last) = (recording.first_crash_point(), recording.last_crash_point());
        let cut = first + choices.below((last - first).max(1));
        let keep_percent = [0, 100, 50][choices.below(3) as usize];
        left_at(&recording, contents, cut, keep_percent, choices)
    }))
}

/// What second cuts leave at each instant of the recovery, three times: nothing in doubt is there,
/// all of it is, some. No two are the same.
pub(crate) fn cut_recovery_everywhere(
    system: &dyn System,
    contents: &[Store],
    choices: &mut Rng,
) -> Option<crate::Result<Vec<Vec<Store>>>> {
    let recording = system.record_recovery(contents.to_vec(), choices.bits())?;
    Some(recording.map(|recording| {
        let mut seen = HashSet::new();
        let mut left = Vec::new();
        for cut in recording.first_crash_point()..=recording.last_crash_point() {
            for keep_percent in [0, 100, 50] {
                let stores = left_at(&recording, contents, cut, keep_percent, choices);
                if seen.insert(stores.iter().map(Store::digest).collect::<Vec<_>>()) {
                    left.push(stores);
                }
            }
        }
        left
    }))
}

/// What a cut leaves; so many of the units in doubt are there.
fn left_at(
    recording: &Recording,
    bases: &[Store],
    cut: u64,
    keep_percent: u64,
    choices: &mut Rng,
) -> Vec<Store> {
    let left = |(base, device): (&Store, u32)| {
        recording.at(DeviceId(device), cut).contents(base, 0, keep_percent, choices)
    };
    bases.iter().zip(0..).map(left).collect()
}
