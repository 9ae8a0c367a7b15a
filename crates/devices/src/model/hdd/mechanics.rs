//! Arm and platters: when the head reaches a sector, and how long a transfer takes.

use super::geometry::{Geometry, SectorPosition, Track};
use super::params::HddParams;
use super::seek::{Seek, SeekCurve, SeekTable};
use crate::model::ModelError;
use crate::model::parameters::Describe;
use crate::model::units::ms;

#[derive(Debug)]
pub(super) struct Mechanics {
    pub geometry: Geometry,
    read_seek: Seek,
    write_seek: Seek,
    /// Another surface, for a read and for a write, beside the seek.
    head_switch_ns: [u64; 2],
    /// What a write takes longer than `write_seek` and the head switch say, or less.
    write_settle_ns: i64,
}

/// A transfer whose first sector is under the head at `start_ns`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transfer {
    pub start_ns: u64,
    pub sector: u64,
    pub writes: bool,
}

/// Sectors that pass under a head one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub sector: u64,
    pub sectors: u64,
    pub start_ns: u64,
    pub end_ns: u64,
    pub track: Track,
}

impl Piece {
    pub(super) fn sector_ns(&self) -> u64 {
        (self.end_ns - self.start_ns) / self.sectors
    }
}

impl Mechanics {
    /// Those of a disk whose parameters make sense each.
    pub(super) fn new(p: &HddParams) -> Result<Self, ModelError> {
        let geometry = Geometry::new(p)?;
        let last = geometry.cylinders() - 1;
        let curve = |name, track, average, full| {
            SeekCurve::fit(track, average, full, last).map(Seek::Curve).ok_or_else(|| {
                let text = format!("{track} / {average} / {full} ms over {last} cylinders");
                let why = "no curve of a root and a line has this time to the next cylinder, \
                           average and full stroke";
                HddParams::refusal(name, text, why)
            })
        };
        let switch = p.head_switch_ms.map(|switch| [ms(switch); 2]);
        if !p.seek_table.is_empty() {
            let Some(table) = SeekTable::new(&p.seek_table) else {
                let (found, why) = (p.seek_table.len(), "must be growing distances with times");
                return Err(HddParams::refusal("seek_table", format!("{found} points"), why));
            };
            let seek = Seek::Table(table);
            return Ok(Mechanics {
                geometry,
                head_switch_ns: switch.unwrap_or([seek.time(1); 2]),
                // OK to cast: within the parameter's limits.
                write_settle_ns: (p.write_settle_ms.unwrap_or(0.0) * 1e6).round() as i64,
                read_seek: seek.clone(),
                write_seek: seek,
            });
        }
        let read_seek = curve(
            "seek_read_*",
            p.seek_read_track_to_track_ms,
            p.seek_read_average_ms,
            p.seek_read_full_stroke_ms,
        )?;
        let write_seek = curve(
            "seek_write_*",
            p.seek_write_track_to_track_ms,
            p.seek_write_average_ms,
            p.seek_write_full_stroke_ms,
        )?;
        // The curve for writes has their settling; a head switch of its own has not.
        let (read, write) = (read_seek.time(1), write_seek.time(1));
        let settle = p.write_settle_ms.map_or(write.saturating_sub(read), ms);
        let head_switch_ns = switch.map_or([read, write], |[ns, _]| [ns, ns + settle]);
        Ok(Mechanics { geometry, read_seek, write_seek, head_switch_ns, write_settle_ns: 0 })
    }

    /// How long the arm takes from one track to another.
    pub(super) fn move_time(&self, from: Track, to: Track, writes: bool) -> u64 {
        if from == to {
            return 0;
        }
        let curve = if writes { &self.write_seek } else { &self.read_seek };
        let switch =
            if from.head == to.head { 0 } else { self.head_switch_ns[usize::from(writes)] };
        let seek = match from.cylinder.abs_diff(to.cylinder) {
            0 => 0,
            distance => curve.time(distance),
        };
        seek.max(switch).saturating_add_signed(if writes { self.write_settle_ns } else { 0 })
    }

    /// Skews that are over before the head is on the next track, in words: each such crossing
    /// loses a revolution.
    pub(super) fn lost_revolutions(&self, heads: u32) -> Vec<String> {
        let (track, cylinder) = self.geometry.least_skews_ns();
        let at = |cylinder, head| Track { cylinder, head };
        // With one surface there is no other track on a cylinder.
        let crossings = [
            ("track", "on another surface", at(0, heads.min(2) - 1), track),
            ("cylinder", "on the next cylinder", at(1, 0), cylinder),
        ];
        let mut all = Vec::new();
        for (skew, place, to, skew_ns) in crossings {
            for (what, writes) in [("read", false), ("write", true)] {
                let moved = self.move_time(at(0, 0), to, writes);
                if skew_ns < moved {
                    let ms = |ns: u64| ns as f64 / 1e6;
                    all.push(format!(
                        "{skew} skew {} ms, but the head is ready {place} after {} ms for a \
                         {what}: each crossing loses a revolution",
                        ms(skew_ns),
                        ms(moved)
                    ));
                }
            }
        }
        all
    }

    /// When the head, on track `from` at `at_ns`, can begin with `sector`: seek, settle, wait.
    pub(super) fn reach(&self, at_ns: u64, from: Track, sector: u64, writes: bool) -> u64 {
        self.reach_place(at_ns, from, &self.geometry.locate(sector), writes)
    }

    fn reach_place(&self, at_ns: u64, from: Track, place: &SectorPosition, writes: bool) -> u64 {
        self.geometry.passes(place, at_ns + self.move_time(from, place.track, writes))
    }

    /// The pieces of a transfer, in order.
    pub(super) fn pieces(&self, t: Transfer, sectors: u64) -> impl Iterator<Item = Piece> {
        let (mut sector, end) = (t.sector, t.sector + sectors);
        let (mut at, mut on) = (t.start_ns, None);
        std::iter::from_fn(move || {
            if sector == end {
                return None;
            }
            let place = self.geometry.locate(sector);
            if let Some(track) = on {
                at = self.reach_place(at, track, &place, t.writes);
            }
            // OK to cast: at most a track.
            let n = u64::from(place.run).min(end - sector) as u32;
            let took = self.geometry.rotation_to(&place, place.sector + n)
                - self.geometry.rotation_to(&place, place.sector);
            let (start_ns, end_ns, track) = (at, at + took, place.track);
            let piece = Piece { sector, sectors: n.into(), start_ns, end_ns, track };
            (sector, at, on) = (sector + u64::from(n), end_ns, Some(track));
            Some(piece)
        })
    }

    /// When `sectors` have been transferred, and the track where that leaves the head.
    pub(super) fn finish(&self, transfer: Transfer, sectors: u64) -> (u64, Track) {
        let nowhere = self.geometry.locate(transfer.sector).track;
        let last = self.pieces(transfer, sectors).last();
        last.map_or((transfer.start_ns, nowhere), |piece| (piece.end_ns, piece.track))
    }

    /// How many sectors, at most `limit`, have been transferred by `by_ns`, and the track where
    /// the head then is.
    pub(super) fn progress(&self, transfer: Transfer, limit: u64, by_ns: u64) -> (u64, Track) {
        let (mut sectors, mut track) = (0, self.geometry.locate(transfer.sector).track);
        for piece in self.pieces(transfer, limit) {
            track = piece.track;
            if piece.end_ns <= by_ns {
                sectors += piece.sectors;
                continue;
            }
            if piece.start_ns <= by_ns {
                let place = self.geometry.locate(piece.sector);
                let before = self.geometry.rotation_to(&place, place.sector);
                let passed = self.geometry.passed(&place, before + (by_ns - piece.start_ns));
                sectors += u64::from(passed.saturating_sub(place.sector));
            }
            break;
        }
        (sectors, track)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REVOLUTION: u64 = 4_000_000;

    fn mechanics() -> Mechanics {
        Mechanics::new(&HddParams::default()).unwrap()
    }

    fn track(m: &Mechanics, sector: u64) -> Track {
        m.geometry.locate(sector).track
    }

    #[test]
    fn a_track_takes_a_revolution_and_the_next_begins_a_skew_later() {
        let m = mechanics();
        let per_track = u64::from(m.geometry.locate(0).sectors_per_track);
        let t = Transfer { start_ns: 0, sector: 0, writes: false };
        assert_eq!(m.finish(t, per_track).0, REVOLUTION);
        assert_eq!(m.finish(t, 2 * per_track).0, 2 * REVOLUTION + 480_000);
        assert_eq!(m.finish(Transfer { writes: true, ..t }, 3 * per_track).0, 12_960_000);
    }

    #[test]
    fn a_transfer_cut_in_pieces_takes_as_long() {
        let m = mechanics();
        for sector in [0, 1000, 5_000_000, 286_000_000] {
            let start_ns = m.reach(123_456_789, track(&m, sector), sector, true);
            let (whole, _) = m.finish(Transfer { start_ns, sector, writes: true }, 10_000);
            let (mut at, mut from) = (start_ns, track(&m, sector));
            for piece in 0..100 {
                let sector = sector + piece * 100;
                let start_ns = m.reach(at, from, sector, true);
                (at, from) = m.finish(Transfer { start_ns, sector, writes: true }, 100);
            }
            assert_eq!(at, whole);
        }
    }

    #[test]
    fn progress_agrees_with_finish() {
        let m = mechanics();
        let t = Transfer { start_ns: 777, sector: 4321, writes: false };
        for n in [1, 2, 511, 1503, 1504, 5000] {
            let (end, _) = m.finish(t, n);
            assert_eq!(m.progress(t, 10_000, end).0, n);
            assert_eq!(m.progress(t, 10_000, end - 1).0, n - 1);
            assert_eq!(m.progress(t, n, end + 1_000_000_000).0, n);
        }
        assert_eq!(m.progress(t, 100, 0).0, 0);
    }

    #[test]
    fn missing_a_sector_costs_a_revolution() {
        let m = mechanics();
        let here = track(&m, 100);
        let at = m.reach(0, here, 100, false);
        assert_eq!(m.reach(at, here, 100, false), at);
        assert_eq!(m.reach(at + 1, here, 100, false), at + REVOLUTION);
    }

    #[test]
    fn the_sheets_capacity_and_rates_come_out() {
        let m = mechanics();
        let last = m.geometry.locate(286_749_487);
        assert!(last.track.cylinder < m.geometry.cylinders());
        for (sector, mb_per_s) in [(0, 171.0), (286_749_487 - 200_000, 112.0)] {
            let t = Transfer {
                start_ns: m.reach(0, track(&m, sector), sector, false),
                sector,
                writes: false,
            };
            let ns = m.finish(t, 200_000).0 - t.start_ns;
            let rate = 200_000.0 * 512.0 / (ns as f64 / 1e3);
            assert!((rate / mb_per_s - 1.0).abs() < 0.01, "{rate} MB/s at {sector}");
        }
    }
}
