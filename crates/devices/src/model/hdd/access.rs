//! A host's access in detail: which sectors pass when, what a slow link has to do with it, and
//! where on a track it begins.

use super::geometry::Track;
use super::mechanics::{Mechanics, Piece, Transfer};

/// Data that come over the link at an even pace, the last sector complete at `last_ns`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Arrival {
    pub last_ns: u64,
    pub sectors: u64,
    pub sector_ns: f64,
}

impl Arrival {
    /// When the first `n` sectors are complete.
    pub(super) fn of(&self, n: u64) -> u64 {
        let missing = self.sectors.saturating_sub(n);
        self.last_ns.saturating_sub((missing as f64 * self.sector_ns).round() as u64)
    }
}

impl Mechanics {
    /// The pieces of a read in the order of its sectors, from an arm that is free at `at_ns`. With
    /// `on_arrival` each track begins with the sector that is met first, and ends before it.
    pub(super) fn read(
        &self,
        at_ns: u64,
        from: Track,
        (sector, end): (u64, u64),
        on_arrival: bool,
    ) -> Vec<Piece> {
        let start_ns = self.reach(at_ns, from, sector, false);
        let transfer = |sector, start_ns| Transfer { start_ns, sector, writes: false };
        if !on_arrival {
            return self.pieces(transfer(sector, start_ns), end - sector).collect();
        }
        let (mut at, mut on, mut sector) = (at_ns, from, sector);
        let mut all = Vec::new();
        while sector < end {
            let track = self.geometry.locate(sector).track;
            let landed = at + self.move_time(on, track, false);
            let start_ns = self.reach(at, on, sector, false);
            let until = self.pieces(transfer(sector, start_ns), end - sector);
            let whole: Vec<Piece> = until.take_while(|p| p.track == track).collect();
            (at, sector, on) = self.land(landed, &whole, &mut all);
        }
        all
    }

    /// Reads the pieces of one track from where the head has landed; when that is done, and the
    /// sector and track where it leaves the head.
    fn land(&self, landed: u64, whole: &[Piece], all: &mut Vec<Piece>) -> (u64, u64, Track) {
        let turn = self.geometry.revolution_ns();
        // A sector that passed at most a revolution before it will pass again.
        let met = |piece: &Piece| {
            let late = (landed + turn).saturating_sub(piece.start_ns);
            late.div_ceil(piece.sector_ns().max(1)).min(piece.sectors)
        };
        let mut done = landed;
        for piece in whole {
            let (missed, each) = (met(piece), piece.sector_ns());
            if missed > 0 {
                let end_ns = piece.start_ns + missed * each;
                all.push(Piece { sectors: missed, end_ns, ..*piece });
                done = done.max(end_ns);
            }
            if missed < piece.sectors {
                let start_ns = piece.start_ns + missed * each - turn;
                let (sector, end_ns) = (piece.sector + missed, piece.end_ns - turn);
                let sectors = piece.sectors - missed;
                all.push(Piece { sector, sectors, start_ns, end_ns, track: piece.track });
                done = done.max(end_ns);
            }
        }
        // OK to index: a track of an access has a piece.
        let last = whole[whole.len() - 1];
        (done, last.sector + last.sectors, last.track)
    }

    /// The pieces of a write whose first sector could pass at `transfer.start_ns`. A sector that
    /// passes before its data are there waits for a revolution, and with it all behind it.
    pub(super) fn write(&self, transfer: Transfer, sectors: u64, data: Arrival) -> Vec<Piece> {
        let turn = self.geometry.revolution_ns();
        let mut all: Vec<Piece> = Vec::new();
        let mut next = transfer;
        let end = transfer.sector + sectors;
        while let Some(mut piece) = self.pieces(next, end - next.sector).next() {
            let (each, before) = (piece.sector_ns(), piece.sector - transfer.sector);
            let late = |i: u64, start: u64| {
                data.of(before + i + 1).saturating_sub(start + i * each).div_ceil(turn) * turn
            };
            let put_off = late(0, piece.start_ns);
            (piece.start_ns, piece.end_ns) = (piece.start_ns + put_off, piece.end_ns + put_off);
            // A faster link cannot fall behind.
            if data.sector_ns > each as f64
                && let Some(i) = (1..piece.sectors).find(|i| late(*i, piece.start_ns) > 0)
            {
                piece.sectors = i;
                piece.end_ns = piece.start_ns + i * each;
            }
            all.push(piece);
            let sector = piece.sector + piece.sectors;
            if sector == end {
                break;
            }
            let start_ns = self.reach(piece.end_ns, piece.track, sector, true);
            next = Transfer { start_ns, sector, writes: true };
        }
        all
    }
}

/// When the last sector of a read has gone over a link that is free at `free_ns` and takes
/// `sector_ns` for each: they go in order, each when it has been read.
pub(super) fn sent(free_ns: u64, sector_ns: f64, pieces: &[Piece]) -> u64 {
    pieces.iter().fold(free_ns, |at, piece| {
        let link = |sectors: u64| (sectors as f64 * sector_ns).round() as u64;
        let first = piece.start_ns + piece.sector_ns();
        let one_by_one = at.max(first) + link(piece.sectors);
        one_by_one.max(piece.end_ns + link(1))
    })
}

/// When the first `sectors` of a read are in the drive.
pub(super) fn read_by(pieces: &[Piece], sectors: u64) -> u64 {
    let mut left = sectors;
    let mut at = 0;
    for piece in pieces {
        let n = left.min(piece.sectors);
        at = at.max(piece.start_ns + n * piece.sector_ns());
        left -= n;
        if left == 0 {
            break;
        }
    }
    at
}
