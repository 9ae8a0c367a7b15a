//! What each kind of medium breaks.

use steadfast_crash::media::{Cell, Setups, cell, plan};
use steadfast_devices::filter::record::Media;

/// States at each cut.
const STATES: u64 = 12;

fn on(setup: Setups, media: Media) -> Cell {
    let cell = cell(&setup.make().unwrap().on(media), plan(STATES)).unwrap();
    println!("{media} {setup:?}: {cell}; {:?}", cell.first);
    cell
}

#[test]
fn what_is_in_contract_breaks_nothing() {
    for setup in [Setups::Ordered, Setups::Journal, Setups::Transact, Setups::NoChecksums] {
        for media in [Media::Sectors, Media::Fifo] {
            let cell = on(setup, media);
            assert_eq!(cell.wrong(), 0, "{setup:?} on {media}: {:?}", cell.first);
        }
    }
}
