//! Opening writes nothing, closing leaves nothing to do.

use steadfast_block::{BlockDevice, Request};
use steadfast_devices::source::Ram;
use steadfast_volume::mirror::LegState;
use steadfast_volume::{AssembleOptions, NewLeg, Policies, ReadPolicy, ResyncThrottle};

use crate::bench::{BLOCK, Bench, bench, degraded, plain, simulated};
use crate::campaign::truth::bytes_of;
use crate::gate::writes;

/// Whoever drops the last handle closes the mirror: nothing is in doubt after that.
#[test]
fn rule_the_last_handle_closes() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        b.write(0, 1);
        let other = b.mirror.clone();
        b.assemble_anew();
        drop(other);
        b.assemble(&[0, 1], &plain()).unwrap();
        assert_eq!(b.mirror.status().regions[2], 0, "nothing is dirty");
        assert_eq!((b.state(0), b.state(1)), (LegState::Okay, LegState::Okay));
        assert!(b.is_everywhere(0, 1));
    });
}

impl Bench {
    /// Lets go of the mirror, and looks at what is there.
    fn assemble_anew(&mut self) {
        let look = AssembleOptions { read_only: true, ..plain() };
        self.assemble(&[0, 1], &look).unwrap();
    }
}

/// What a power cut has left in doubt is on all legs when the mirror is closed: it was on all
/// before.
#[test]
fn rule_what_was_in_doubt_is_copied_before_the_end() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        b.write(0, 1);
        b.mirror.flush().unwrap();
        b.cut(0);
        b.assemble(&[0, 1], &plain()).unwrap();
        b.write(100, 2);
        b.mirror.close().unwrap();
        // The leg that stood for it is lost.
        b.assemble(&[1], &degraded()).unwrap();
        assert!(b.is(0, 1) && b.is(100, 2));
    });
}

/// Closing waits for what was begun; nothing begins after it.
#[test]
fn rule_what_was_begun_is_waited_for() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        b.write(0, 1);
        b.gates[1].shut(writes(64 << 10..1 << 20));
        let data = bytes_of(2, 0).into();
        let begun = b.mirror.submit(Request::Write { offset: 0, data, fua: false });
        b.gates[1].wait();
        let mirror = b.mirror.clone();
        let close = steadfast_runtime::spawn("close", move || mirror.close());
        steadfast_runtime::sleep(std::time::Duration::from_millis(1));
        assert!(!close.is_finished());
        let late = b.mirror.write(BLOCK, bytes_of(3, 1).into()).unwrap_err().to_string();
        assert!(late.contains("being closed"), "{late}");
        b.gates[1].open();
        begun.wait().unwrap();
        close.join().unwrap().unwrap();
        b.mirror.close().unwrap();
        let late = b.mirror.read(0, BLOCK).unwrap_err().to_string();
        assert!(late.contains("was closed"), "{late}");
        b.assemble(&[1, 0], &plain()).unwrap();
        assert_eq!((b.state(0), b.state(1)), (LegState::Okay, LegState::Okay));
        assert!(b.is_everywhere(0, 2));
    });
}

/// All that is to be refused; how much was not.
fn refusals(b: &Bench) -> usize {
    let small = NewLeg::new(std::sync::Arc::new(Ram::new("small", 1 << 20)));
    let tiny = NewLeg::new(std::sync::Arc::new(Ram::new("tiny", 4096)));
    let read = ReadPolicy::Preferred(4);
    let nothing = ResyncThrottle { bytes_per_second: Some(0), ..ResyncThrottle::default() };
    let here = b.mirror.status().legs.iter().find(|l| l.state == LegState::Okay).unwrap().slot;
    let refused = [
        b.mirror.attach(&small).map(drop),
        b.mirror.attach(&tiny).map(drop),
        b.mirror.add_spare(&small),
        b.mirror.detach(here),
        b.mirror.detach(3),
        b.mirror.offline(here),
        b.mirror.online(here, None),
        b.mirror.online(1 - here, None),
        b.mirror.replace(here, None),
        b.mirror.replace(1 - here, None),
        b.mirror.replace(1 - here, Some(&small)),
        b.mirror.grow(Some(4096)).map(drop),
        b.mirror.grow(Some(u64::MAX)).map(drop),
        b.mirror.grow(None).map(drop),
        b.mirror.set_policies(Policies { read, ..Policies::default() }),
        b.mirror.resync(nothing).map(drop),
    ];
    refused.iter().filter(|refused| refused.is_ok()).count()
}

/// A command that opens a mirror and is refused leaves every byte as it was: neither half has gone
/// on without the other.
#[test]
fn rule_a_refused_command_does_not_split_a_mirror() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        b.write(0, 1);
        b.mirror.flush().unwrap();
        b.cut(0);
        for leg in [0, 1] {
            let before = b.device(leg).read(0, 1 << 20).unwrap();
            b.assemble(&[leg], &degraded()).unwrap();
            let done = refusals(&b);
            // Looking does not change anything either.
            assert!(b.mirror.read(100 * BLOCK, BLOCK).is_ok());
            b.mirror.close().unwrap();
            assert!(b.device(leg).read(0, 1 << 20).unwrap() == before);
            assert_eq!(done, 0);
        }
        b.assemble(&[0, 1], &plain()).unwrap();
        assert!(b.is_everywhere(0, 1));
    });
}

/// A mirror that is only looked at answers what changes nothing, and refuses the rest.
#[test]
fn rule_read_only_writes_nothing() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        b.write(0, 1);
        b.mirror.flush().unwrap();
        b.cut(0);
        let before = b.device(1).read(0, 1 << 20).unwrap();
        b.assemble(&[1, 0], &AssembleOptions { read_only: true, ..plain() }).unwrap();
        assert!(b.is(0, 1));
        b.mirror.flush().unwrap();
        b.mirror.tick().unwrap();
        b.mirror.write(0, bytes_of(2, 0).into()).unwrap_err();
        b.mirror.resync(ResyncThrottle::default()).unwrap_err();
        b.mirror.offline(0).unwrap_err();
        b.mirror.close().unwrap();
        assert!(b.device(1).read(0, 1 << 20).unwrap() == before);
    });
}
