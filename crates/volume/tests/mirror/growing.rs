//! Devices and mirrors that grow, with a power cut at every write of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use steadfast_block::{BlockDevice, Request};
use steadfast_devices::filter::fault::{Effect, FaultRule, Ops};
use steadfast_runtime::Sim;
use steadfast_volume::mirror::LegState;

use crate::arguments::larger;
use crate::bench::{BLOCK, bench, plain};
use crate::campaign::media::{LEG_BYTES, Medium};

/// The devices of a mirror have grown; the mirror is taken into use and grows too. The power goes
/// in the middle of the `n`th write. False: there are fewer.
fn grown_with_a_cut(legs: &'static [bool], n: u64) -> bool {
    let cut_in_time = Sim::new(n).run(move || {
        let mut b = bench(legs);
        b.write(255, 1);
        b.mirror.close().unwrap();
        for leg in 0..legs.len() {
            let bytes = larger(&b.copy(leg), 2 * LEG_BYTES);
            b.disks[leg] = Medium::new(&format!("leg{leg}"), false, bytes);
        }
        b.cut(0);
        // One sector of that write arrives, on every leg, and nothing after it.
        let writes = Arc::new(AtomicU64::new(0));
        for plug in &b.plugs {
            let torn = FaultRule::new(Ops::WRITE, Effect::Torn(512)).nth(n);
            let gone = Effect::Gone("the power was cut".into());
            let after = FaultRule { skip: n, count: None, ..FaultRule::new(Ops::WRITE, gone) };
            plug.faults.clear();
            plug.faults.add(torn);
            plug.faults.add(after);
        }
        for gate in &b.gates {
            let writes = Arc::clone(&writes);
            gate.shut(move |request| {
                let is = matches!(request, Request::Write { .. });
                writes.fetch_add(u64::from(is), Ordering::Relaxed);
                false
            });
        }
        let opened = b.assemble(&[0, 1][..legs.len()], &plain());
        let grown = opened.and_then(|()| b.mirror.grow(None).map_err(|e| e.to_string()));
        let enough = writes.load(Ordering::Relaxed) >= n;
        b.cut(0);
        b.assemble(&[0, 1][..legs.len()], &plain()).unwrap_or_else(|e| panic!("write {n}: {e}"));
        let size = b.mirror.info().size;
        assert!(grown.is_err() || grown == Ok(size), "write {n}");
        assert!(b.is_everywhere(255, 1), "write {n}");
        assert!((0..legs.len()).all(|leg| b.state(leg) == LegState::Okay), "write {n}");
        let size = b.mirror.grow(None).unwrap();
        assert!(size > LEG_BYTES, "write {n}");
        b.write(size / BLOCK - 1, 2);
        b.mirror.close().unwrap();
        b.assemble(&[0, 1][..legs.len()], &plain()).unwrap();
        assert!(b.is_everywhere(255, 1) && b.is_everywhere(size / BLOCK - 1, 2), "write {n}");
        enough
    });
    cut_in_time.unwrap()
}

/// A power cut while a mirror moves to the new end of its devices leaves a label that is found.
#[test]
fn rule_a_cut_while_devices_grow_loses_no_leg() {
    for legs in [&[false][..], &[false, false]] {
        let cuts = (1..60).take_while(|n| grown_with_a_cut(legs, *n)).count();
        assert!(cuts >= 7, "{cuts} cuts");
    }
}
