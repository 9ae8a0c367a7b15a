//! Erase groups of simple flash: how many can be open for writing at a time, and how large they
//! are. A durable write of 4 KiB costs more when a group has to be closed for it.

use super::error::Result;
use super::figures::{self, DURABLE, READ, READ_32, Reading, enter_one};
use super::probe::{KIB, MIB, Op, Prober, Times};
use steadfast_statistics::median;

pub(super) const GROUP: &str = "erase group";
pub(super) const OPEN: &str = "open erase groups";

/// Places are so far apart while groups are counted.
const APART: u64 = 2 * MIB;

/// Looks for them, if one request at a time is all that the device does, as such flash does.
pub(super) fn look(p: &mut Prober<'_>, into: &mut Vec<Reading>) -> Result<()> {
    let value = |name: &str| into.iter().rfind(|r| r.name == name).map(|r| r.value);
    let (Some(one), Some(many), Some(durable)) = (value(READ), value(READ_32), value(DURABLE))
    else {
        return Ok(());
    };
    let most = figures::area(p).end / APART;
    if many * one / 1e6 > 1.5 || most < 4 {
        return Ok(());
    }
    let closes = |us: f64| us > 1.5 * durable;
    let mut open = 1;
    while 2 * open <= most && !closes(in_turn(p, 2 * open, APART)?) {
        open *= 2;
    }
    if 2 * open > most {
        return Ok(());
    }
    // Places half a group apart share one: then as many groups are written to as can be open.
    let mut group = APART;
    while group > 8 * KIB && closes(in_turn(p, 2 * open, group / 2)?) {
        group /= 2;
    }
    enter_one(into, OPEN, "groups", open as f64);
    enter_one(into, GROUP, "KiB", (group / KIB) as f64);
    Ok(())
}

/// The median of durable writes to so many places in turn, after a first turn.
fn in_turn(p: &mut Prober<'_>, places: u64, apart: u64) -> Result<f64> {
    let mut turn = |n: u64| {
        let mut i = 0;
        p.repeat(Times(n as usize, 2.0), |p| {
            i += 1;
            p.one(Op::Durable, (i - 1) % places * apart, 4 * KIB)
        })
    };
    turn(places)?;
    Ok(median(&turn(places.max(16))?).unwrap_or(0.0))
}
