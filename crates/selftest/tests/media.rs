//! What each kind of medium breaks: what survives does so because of a mechanism, and without the
//! mechanism it breaks.

#![allow(clippy::print_stdout, reason = "a skipped test says why; figures are for people")]

use steadfast_devices::filter::record::Media;
use steadfast_selftest::media::{Cell, Setups, cell, plan};

/// States at each cut.
const STATES: u64 = 4;

fn on(setup: Setups, media: Media) -> Cell {
    let cell = cell(&setup.make().unwrap().on(media), &plan(STATES)).unwrap();
    println!("{media}, {setup:?}: {cell}; {:?}", cell.first);
    cell
}

#[test]
fn what_is_in_contract_breaks_nothing() {
    for (setup, media) in [
        (Setups::Ordered, Media::Sectors),
        (Setups::Journal, Media::Whole),
        (Setups::Transact, Media::Fifo),
    ] {
        let cell = on(setup, media);
        assert_eq!(cell.wrong(), 0, "{setup:?} on {media}: {:?}", cell.first);
        assert!(cell.states > 100, "{}", cell.states);
    }
}

/// A sector that is garbage is written again from the log, if its contents are in the log: with
/// data=journal those of files are, with data=ordered they are not.
#[test]
fn the_log_heals_garbage_of_what_it_holds() {
    let logged = on(Setups::Journal, Media::Garbage);
    assert_eq!(logged.wrong(), 0, "{:?}", logged.first);
    let ordered = on(Setups::Ordered, Media::Garbage);
    assert!(ordered.broken > 0);
    assert_eq!((ordered.refused, ordered.damaged), (0, 0), "{:?}", ordered.first);
}

/// A disk that answers a flush when the order is fixed breaks promises and nothing else: the
/// structure needs the order only. That ignores it altogether is in `tests/corpus.rs`.
#[test]
fn a_barrier_keeps_the_structure_and_no_promise() {
    let cell = on(Setups::Ordered, Media::Barrier { bytes: 256 << 10 });
    assert!(cell.broken > 0);
    assert_eq!((cell.refused, cell.damaged), (0, 0), "{:?}", cell.first);
}
