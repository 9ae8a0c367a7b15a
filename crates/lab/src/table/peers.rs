//! The tables of the runs in real time beside the kernel's.

use crate::results::{
    Cell, Order, PeerRow, Results, RowContext, TableLine, Unit, always, each_once,
};

/// The lines of the runs in real time beside the kernel's: MiB/s by system calls, and their ratios.
pub(super) fn peer_lines(results: &Results) -> Vec<TableLine> {
    let with_ratio = || results.peers.iter().filter(|row| row.ratio.is_some());
    let baselines = each_once(with_ratio().map(|row| row.baseline.as_str()));
    let line = |row: &PeerRow, title: String, cell| {
        let columns = vec![always(&row.variant, cell)];
        TableLine::new(Order::Peers, title, results.test_label(&row.test), columns)
    };
    let speed = |row: &PeerRow| {
        let mib = Cell::Number(row.kb_per_s.map(|kb| kb / 1024.0), Unit::Plain(1));
        line(row, "peers: MiB/s by system calls, wall clock".into(), mib)
    };
    let ratio = |row: &PeerRow| {
        let title = format!("peers: speed over {baselines}, wall clock");
        line(row, title, row.ratio.map_or(Cell::None, |r| Cell::Number(r, Unit::Times)))
    };
    let speeds = results.peers.iter().map(speed);
    speeds.chain(with_ratio().map(ratio)).collect()
}
