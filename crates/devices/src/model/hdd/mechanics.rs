//! Arm and platters: when the head reaches a sector, and how long a transfer takes.

use super::geometry::{Geometry, SectorPosition, Track};
use super::params::HddParams;
use super::seek::SeekCurve;
use crate::model::ModelError;
use crate::model::parameters::Describe;

#[derive(Debug)]
pub(super) struct Mechanics {
    pub geometry: Geometry,
    pub read_seek: SeekCurve,
    pub write_seek: SeekCurve,
}

/// A transfer whose first sector is under the head at `start_ns`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transfer {
    pub start_ns: u64,
    pub sector: u64,
    pub writes: bool,
}

impl Mechanics {
    /// Those of a disk whose parameters make sense each.
    pub(super) fn new(p: &HddParams) -> Result<Self, ModelError> {
        let geometry = Geometry::new(p)?;
        let last = geometry.cylinders() - 1;
        let curve = |name, track, average, full| {
            SeekCurve::fit(track, average, full, last).ok_or_else(|| {
                let text = format!("{track} / {average} / {full} ms over {last} cylinders");
                let why = "no curve of a root and a line has this time to the next cylinder, \
                           average and full stroke";
                HddParams::refusal(name, text, why)
            })
        };
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
        Ok(Mechanics { geometry, read_seek, write_seek })
    }

    fn move_time(&self, from: Track, to: Track, writes: bool) -> u64 {
        if from == to {
            return 0;
        }
        let curve = if writes { &self.write_seek } else { &self.read_seek };
        curve.time(from.cylinder.abs_diff(to.cylinder))
    }

    fn reach_place(&self, at_ns: u64, from: Track, place: &SectorPosition, writes: bool) -> u64 {
        self.geometry.passes(place, at_ns + self.move_time(from, place.track, writes))
    }

    /// When the head, on track `from` at `at_ns`, can begin with `sector`: seek, settle, wait.
    pub(super) fn reach(&self, at_ns: u64, from: Track, sector: u64, writes: bool) -> u64 {
        self.reach_place(at_ns, from, &self.geometry.locate(sector), writes)
    }

    /// When `sectors` have been transferred, and the track where that leaves the head.
    pub(super) fn finish(&self, transfer: Transfer, sectors: u64) -> (u64, Track) {
        let (mut sector, end) = (transfer.sector, transfer.sector + sectors);
        let mut place = self.geometry.locate(sector);
        let mut at = transfer.start_ns;
        loop {
            let left = u64::from(place.sectors_per_track - place.sector).min(end - sector) as u32;
            at += self.geometry.rotation_to(&place, place.sector + left)
                - self.geometry.rotation_to(&place, place.sector);
            sector += u64::from(left);
            if sector == end {
                return (at, place.track);
            }
            let next = self.geometry.locate(sector);
            at = self.reach_place(at, place.track, &next, transfer.writes);
            place = next;
        }
    }

    /// How many sectors, at most `limit`, have been transferred by `by_ns`, and the track where
    /// the head then is.
    pub(super) fn progress(&self, transfer: Transfer, limit: u64, by_ns: u64) -> (u64, Track) {
        let mut sector = transfer.sector;
        let end = sector + limit;
        let mut place = self.geometry.locate(sector);
        let mut at = transfer.start_ns;
        while sector < end && at <= by_ns {
            let left = u64::from(place.sectors_per_track - place.sector).min(end - sector) as u32;
            let before = self.geometry.rotation_to(&place, place.sector);
            let took = self.geometry.rotation_to(&place, place.sector + left) - before;
            if at + took > by_ns {
                let passed = self.geometry.passed(&place, before + (by_ns - at));
                sector += u64::from(passed.saturating_sub(place.sector));
                break;
            }
            at += took;
            sector += u64::from(left);
            if sector < end {
                let next = self.geometry.locate(sector);
                at = self.reach_place(at, place.track, &next, transfer.writes);
                place = next;
            }
        }
        (sector - transfer.sector, place.track)
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
