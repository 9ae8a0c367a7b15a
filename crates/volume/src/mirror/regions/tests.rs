//! What a region says before, during and after a commit.

use super::*;

const MIB: u64 = 1 << 20;

fn fixture() -> Regions {
    Regions::new(10 * MIB - 4096, MIB as u32, Region::UNWRITTEN)
}

#[test]
fn ranges_and_the_short_last_region() {
    let regions = fixture();
    assert_eq!(regions.count(), 10);
    assert_eq!(regions.of(MIB - 1, 2), 0..2);
    assert_eq!(regions.inside(1, 3 * MIB), 1..3);
    assert_eq!(regions.inside(9 * MIB, MIB - 4096), 9..10);
    assert_eq!(regions.inside(9 * MIB + 1, MIB - 4097), 10..10);
    assert_eq!(regions.bytes_of(9), (9 * MIB, MIB - 4096));
}

#[test]
fn a_write_waits_for_the_state_that_covers_it() {
    let mut regions = fixture();
    regions.open(3, 0b100);
    assert!(!regions.is_ready(3, 0b100, 0b100));
    let written = regions.begin_commit();
    assert_eq!(written.len(), 1);
    assert!(!regions.is_ready(3, 0b100, 0b100), "on its way is not there");
    regions.end_commit(&written);
    assert!(!regions.is_ready(3, 0b100, 0b100), "must be filled first");
    regions.set_filled(3);
    assert!(regions.is_ready(3, 0b100, 0b100) && !regions.is_ready(3, 0b110, 0b110));
    assert_eq!(regions.filled(), [(3, 1)]);
}

#[test]
fn a_flush_promises_only_the_first_write_that_it_saw() {
    let mut regions = fixture();
    regions.open(3, 0);
    regions.set_filled(3);
    let (_, seen) = regions.filled()[0];
    regions.set(3, Region::UNWRITTEN);
    regions.open(3, 0);
    regions.set_filled(3);
    regions.promise(3, seen);
    assert_eq!(regions.get(3).state, RegionState::Filling);
    let (_, seen) = regions.filled()[0];
    regions.promise(3, seen);
    assert_eq!(regions.get(3).state, RegionState::Dirty);
}

#[test]
fn a_clean_state_counts_as_soon_as_it_is_on_its_way() {
    let mut regions = Regions::new(10 * MIB, MIB as u32, Region::UNKNOWN);
    assert!(regions.is_ready(1, 0, 0));
    regions.set(1, Region { state: RegionState::Clean, stale: 0, summed: false });
    let _on_its_way = regions.begin_commit();
    regions.open(1, 0);
    assert!(!regions.is_ready(1, 0, 0), "the cut may leave it clean");
}

#[test]
fn a_copied_region_is_stale_on_disk_until_it_is_fresh() {
    let mut regions = Regions::new(10 * MIB, MIB as u32, Region::UNKNOWN);
    regions.set_stale(2, 0b10);
    let written = regions.begin_commit();
    regions.end_commit(&written);
    regions.set_copied(2, 0b10);
    assert_eq!((regions.lacking(2), regions.on_disk(2).stale), (0, 0b10));
    // Another change of the same block does not take it along.
    regions.set_stale(3, 0b10);
    let written = regions.begin_commit();
    regions.end_commit(&written);
    assert_eq!(regions.on_disk(2).stale, 0b10);
    regions.set_fresh(2, 0b10);
    let written = regions.begin_commit();
    regions.end_commit(&written);
    assert_eq!(regions.on_disk(2).stale, 0);
}
