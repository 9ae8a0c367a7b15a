//! A spare is taken back: of that, too, a power cut leaves either what was or what is to be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use steadfast_block::rng::Rng;
use steadfast_block::{BlockDevice, Request};
use steadfast_runtime::{Sim, sleep, spawn};
use steadfast_volume::member::read_label;
use steadfast_volume::{LegState, NewLeg, ResyncThrottle};

use crate::bench::{Bench, bench, plain, simulated};
use crate::campaign::media::Medium;
use crate::gate::Gate;

/// Two legs that hold a block, and a spare in the third place of the bench.
fn with_spare() -> Bench {
    let mut b = bench(&[false, false]);
    b.write(0, 1);
    b.mirror.flush().unwrap();
    b.settle();
    let spare = Medium::used("spare", false, &mut Rng::new(9));
    b.plugs.push(spare.plug(10));
    b.gates.push(Gate::new(Arc::clone(&b.plugs[2].device)));
    b.disks.push(spare);
    b.mirror.add_spare(&NewLeg::new(b.device(2))).unwrap();
    b
}

#[test]
fn a_spare_that_was_removed_takes_no_place_and_is_free() {
    simulated(|| {
        let mut b = with_spare();
        let refused = b.mirror.remove_spare("leg1").unwrap_err().to_string();
        assert!(refused.contains("leg1: is no spare of 'm'"), "{refused}");
        assert!(b.mirror.remove_spare("spare").unwrap(), "its label is wiped");
        assert!(b.mirror.status().spares.is_empty());
        assert!(read_label(&b.device(2)).unwrap().is_none());
        // It belongs to nobody, also after a restart.
        b.cut(0);
        b.assemble(&[0, 1, 2], &plain()).unwrap();
        assert!(b.mirror.status().spares.is_empty());
        b.plugs[0].faults.take_away("broken");
        b.write(0, 2);
        b.mirror.tick().unwrap();
        assert_eq!(b.state(0), LegState::NeedsMaintenance);
        // Nothing has to be forced.
        b.mirror.replace(0, Some(&NewLeg::new(b.device(2)))).unwrap();
        assert!(b.mirror.resync(ResyncThrottle::default()).unwrap().complete);
        assert!(b.is_everywhere(0, 2));
    });
}

/// What a device that is none any more holds stays.
#[test]
fn what_was_written_over_a_spare_is_not_wiped() {
    simulated(|| {
        let b = with_spare();
        let foreign = vec![9; 1 << 20];
        b.device(2).write(0, foreign.clone().into()).unwrap();
        assert!(!b.mirror.remove_spare("spare").unwrap());
        assert!(b.mirror.status().spares.is_empty());
        assert!(b.device(2).read(0, 1 << 20).unwrap() == foreign);
    });
}

/// Nor does it take a leg's place.
#[test]
fn a_spare_whose_start_is_somebody_elses_does_not_stand_in() {
    simulated(|| {
        let b = with_spare();
        let foreign = vec![9; 1 << 20];
        b.device(2).write(0, foreign.clone().into()).unwrap();
        b.plugs[0].faults.take_away("broken");
        b.write(0, 2);
        b.mirror.tick().unwrap();
        assert_eq!(b.state(0), LegState::NeedsMaintenance);
        assert!(b.device(2).read(0, 1 << 20).unwrap() == foreign);
    });
}

/// One that is away is forgotten; that it is back changes nothing.
#[test]
fn a_spare_that_is_not_there_is_removed_too() {
    simulated(|| {
        let mut b = with_spare();
        b.cut(0);
        b.assemble(&[0, 1], &plain()).unwrap();
        assert!(!b.mirror.remove_spare("spare").unwrap(), "nobody wiped its label");
        b.cut(0);
        b.assemble(&[0, 1, 2], &plain()).unwrap();
        assert!(b.mirror.status().spares.is_empty());
        assert!(b.is_everywhere(0, 1));
    });
}

/// The power is cut at each write of it in turn.
#[test]
fn rule_a_cut_while_a_spare_is_removed_leaves_it_or_not() {
    let mut seen = [0; 2];
    let mut cuts = 0;
    loop {
        let (kept, finished) = Sim::new(5).run(move || cut_at(cuts)).unwrap();
        if finished {
            assert!(!kept);
            break;
        }
        seen[usize::from(kept)] += 1;
        cuts += 1;
    }
    // Two legs and two editions of two copies each, and the two copies of the spare's own label.
    assert!(cuts >= 5, "{cuts}");
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}

/// With so many writes done, and none after: whether the spare is there after a restart, and
/// whether its removal was done before the cut.
fn cut_at(writes: usize) -> (bool, bool) {
    let mut b = with_spare();
    let done = Arc::new(AtomicUsize::new(0));
    for gate in &b.gates {
        let done = Arc::clone(&done);
        gate.shut(move |request| {
            let is_write = matches!(request, Request::Write { .. });
            is_write && done.fetch_add(1, Ordering::Relaxed) >= writes
        });
    }
    let (mirror, finished) = (b.mirror.clone(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&finished);
    drop(spawn("remove", move || {
        if mirror.remove_spare("spare").is_ok() {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }));
    sleep(Duration::from_millis(50));
    let finished = finished.load(Ordering::Relaxed) > 0;
    b.cut(writes as u64);
    b.assemble(&[0, 1, 2], &plain()).unwrap();
    assert_eq!((b.state(0), b.state(1)), (LegState::Okay, LegState::Okay));
    assert!(b.is_everywhere(0, 1));
    let spares = b.mirror.status().spares;
    let kept = !spares.is_empty();
    // Either way it goes on: it can be removed, and be a spare again.
    if kept {
        b.mirror.remove_spare(&spares[0]).unwrap();
    }
    let again = NewLeg { force: true, ..NewLeg::new(b.device(2)) };
    b.mirror.add_spare(&again).unwrap();
    b.plugs[0].faults.take_away("broken");
    b.write(0, 2);
    b.mirror.tick().unwrap();
    assert!(b.mirror.resync(ResyncThrottle::default()).unwrap().complete);
    assert_eq!(b.state(0), LegState::Okay, "the spare stands in");
    (kept, finished)
}
