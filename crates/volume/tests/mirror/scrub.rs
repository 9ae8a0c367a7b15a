//! Scrubbing: legs that do not hold the same, sectors that cannot be read, and cuts in the middle.

use steadfast_block::BlockDevice;
use steadfast_devices::filter::fault::{Effect, FaultRule, Ops};
use steadfast_runtime::{Sim, sleep, spawn};
use steadfast_volume::mirror::LegState;
use steadfast_volume::{ResyncThrottle, ScrubReport};

use crate::bench::{BLOCK, Bench, DATA, REGION, bench, plain, simulated};
use crate::campaign::media::LEG_BYTES;
use crate::campaign::truth::bytes_of;
use crate::gate::writes;

/// Blocks 0 and 1 of two regions are written, and clean.
fn written(volatile: &[bool]) -> Bench {
    let b = bench(volatile);
    [0, 1, 16, 17].into_iter().for_each(|n| b.write(n, 1));
    b.mirror.flush().unwrap();
    b.settle();
    b
}

impl Bench {
    /// What a leg's medium holds goes bad without an error.
    fn rot(&self, leg: usize, block: u64) {
        let bad = bytes_of(90 + leg as u64, block).into();
        self.disks[leg].ram().write(DATA + block * BLOCK, bad).unwrap();
    }

    fn scrub(&self, repair: bool) -> ScrubReport {
        self.mirror.scrub(repair, ResyncThrottle::default()).unwrap()
    }

    fn contents(&self) -> Vec<bytes::Bytes> {
        let data = DATA..LEG_BYTES - BLOCK;
        let read = |d: &crate::campaign::media::Medium| d.ram().read(data.start, data.end - DATA);
        self.disks.iter().map(|d| read(d).unwrap()).collect()
    }
}

#[test]
fn a_scrub_counts_what_differs_and_writes_nothing_by_itself() {
    simulated(|| {
        let b = written(&[false, false]);
        let (clean, complete) = (true, true);
        let all = ScrubReport { bytes: 2 * REGION, clean, complete, ..ScrubReport::default() };
        assert_eq!(b.scrub(false), all);
        [0, 17].into_iter().for_each(|block| b.rot(1, block));
        let before = b.contents();
        let found = b.scrub(false);
        assert_eq!(found, ScrubReport { differing: 2, clean: false, ..all });
        assert!(b.contents() == before);
        let found = b.scrub(true);
        assert_eq!(found, ScrubReport { differing: 2, repaired: 2, ..all });
        assert_eq!(b.scrub(false), all);
        assert!(b.is_everywhere(0, 1) && b.is_everywhere(17, 1));
    });
}

/// Also the last block of what is compared at once, and of the volume.
#[test]
fn every_block_is_compared() {
    simulated(|| {
        let b = bench(&[false, false]);
        let last = b.mirror.info().size / BLOCK - 1;
        let in_region = REGION / BLOCK;
        let blocks = || (0..in_region).chain(last + 1 - in_region..=last);
        blocks().for_each(|block| b.write(block, 1));
        b.mirror.flush().unwrap();
        b.settle();
        for block in blocks() {
            b.rot(1, block);
            let found = b.scrub(true);
            assert_eq!((found.differing, found.repaired), (1, 1), "block {block}");
            assert!(b.is_everywhere(block, 1), "block {block}");
        }
    });
}

/// Whatever memory holds, and however many hold it, it does not count against a durable leg.
#[test]
fn rule_memory_has_no_vote_in_a_scrub() {
    simulated(|| {
        let b = written(&[true, false, true]);
        let bad = bytes_of(99, 0);
        for memory in [0, 2] {
            b.disks[memory].ram().write(DATA, bad.clone().into()).unwrap();
        }
        assert_eq!(b.scrub(true).repaired, 2);
        assert!(b.is_everywhere(0, 1));
    });
}

#[test]
fn the_majority_of_the_durable_legs_counts() {
    simulated(|| {
        let b = written(&[false, false, false]);
        b.rot(0, 0);
        b.rot(2, 16);
        assert_eq!(b.scrub(true).repaired, 2);
        assert!(b.is_everywhere(0, 1) && b.is_everywhere(16, 1));
    });
}

/// What a leg cannot read is written from another one, also when nobody asked for a repair; a leg
/// that does not take it is dropped.
#[test]
fn what_cannot_be_read_is_written_again() {
    for takes_it in [true, false] {
        Sim::new(5)
            .run(move || {
                let b = written(&[false, false]);
                b.rot(0, 0);
                let at = DATA..DATA + BLOCK;
                let bad = FaultRule::new(Ops::READ, Effect::Fail("a bad sector".into()));
                b.plugs[0].faults.clear();
                b.plugs[0].faults.add(bad.within(at.clone()).nth(1));
                if !takes_it {
                    let failing = FaultRule::new(Ops::WRITE, Effect::Fail("a bad sector".into()));
                    b.plugs[0].faults.add(failing.within(at));
                }
                let found = b.scrub(false);
                assert_eq!((found.differing, found.unreadable), (0, 1));
                assert_eq!(found.repaired, u64::from(takes_it));
                let state = if takes_it { LegState::Okay } else { LegState::NeedsMaintenance };
                assert_eq!(b.state(0), state);
                assert!(b.is_everywhere(0, 1));
            })
            .unwrap();
    }
}

/// A cut in the middle of a repair leaves what counts where it is; the next scrub repairs the rest.
#[test]
fn rule_a_cut_in_a_scrub_loses_nothing() {
    for seed in 0..4 {
        Sim::new(seed)
            .run(move || {
                let mut b = written(&[false, false]);
                [0, 1, 16].into_iter().for_each(|block| b.rot(1, block));
                b.gates[1].shut(writes(DATA + REGION..DATA + 2 * REGION));
                let mirror = b.mirror.clone();
                drop(spawn("scrub", move || drop(mirror.scrub(true, ResyncThrottle::default()))));
                b.gates[1].wait();
                sleep(std::time::Duration::from_millis(1));
                b.cut(seed);
                b.assemble(&[0, 1], &plain()).unwrap();
                assert!(b.scrub(true).clean);
                assert!([0, 1, 16, 17].into_iter().all(|block| b.is_everywhere(block, 1)));
                b.mirror.close().unwrap();
                let legs = b.contents();
                assert!(legs[0][..2 * REGION as usize] == legs[1][..2 * REGION as usize]);
            })
            .unwrap();
    }
}

/// A scrub goes on beside writes, and ends when the mirror is closed.
#[test]
fn a_scrub_beside_writes_finds_nothing() {
    simulated(|| {
        let b = written(&[false, false, true]);
        let mirror = b.mirror.clone();
        let slow = ResyncThrottle { bytes_per_second: Some(64 << 20), regions: None };
        let scrub = spawn("scrub", move || mirror.scrub(false, slow));
        (0..200).for_each(|n| b.write(n % 40, 100 + n));
        let found = scrub.join().unwrap().unwrap();
        assert_eq!((found.differing, found.complete), (0, true));
        let mirror = b.mirror.clone();
        let hours = ResyncThrottle { bytes_per_second: Some(1), regions: None };
        let scrub = spawn("scrub", move || mirror.scrub(false, hours));
        sleep(std::time::Duration::from_millis(5));
        b.mirror.close().unwrap();
        assert!(!scrub.join().unwrap().unwrap().complete);
        let none = ResyncThrottle { bytes_per_second: Some(0), regions: None };
        assert!(b.mirror.scrub(false, none).unwrap_err().to_string().contains("never ends"));
    });
}
