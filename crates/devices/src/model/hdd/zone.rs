//! A zone as it was measured: which of its physical sectors hold data.
//!
//! The kinds of spare sectors are those of DiskSim (Bucy, Schindler, Schlosser and Ganger, "The
//! DiskSim Simulation Environment, version 4.0", CMU-PDL-08-101, 2008, section 3.6.1); each comes
//! down to physical sectors that are passed over.

use serde::{Deserialize, Serialize};

/// Cylinders with equally many sectors a track.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneParams {
    /// Its first cylinder, counted from the outside.
    pub first_cylinder: u32,
    /// How many cylinders it has.
    pub cylinders: u32,
    /// Physical sectors on each of its tracks.
    pub sectors_per_track: u32,
    /// Sectors by which the first one of a track lies behind that of the track before it.
    pub track_skew: f64,
    /// The same from the last track of a cylinder to the first one of the next.
    pub cylinder_skew: f64,
    /// Where on the circle the zone's first sector lies, in sectors.
    #[serde(default)]
    pub begins_at: f64,
    /// Sectors at the beginning of the zone that hold no data.
    #[serde(default)]
    pub unused: u64,
    /// Spare sectors in each of the zone's regions, at its end.
    #[serde(default)]
    pub spares: u64,
    /// Physical sectors of such a region; 0: the whole zone is one.
    #[serde(default)]
    pub spare_region: u64,
    /// Whether the spares are at the region's beginning.
    #[serde(default)]
    pub spares_in_front: bool,
    /// Runs of physical sectors that are passed over, as first and length. Each takes the place
    /// of as many of its region's spares.
    #[serde(default)]
    pub slipped: Vec<(u64, u64)>,
}

/// From logical sector `from` of a zone on, `passed` physical ones without data lie before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hole {
    pub from: u64,
    pub passed: u64,
}

impl ZoneParams {
    pub(super) fn physical_sectors(&self, heads: u32) -> u64 {
        u64::from(self.cylinders) * u64::from(heads) * u64::from(self.sectors_per_track)
    }

    /// Runs without data, in order, as first and last plus one; they do not overlap.
    fn holes(&self, all: u64) -> Vec<(u64, u64)> {
        let region = if self.spare_region == 0 { all } else { self.spare_region };
        let mut slipped: Vec<(u64, u64)> = self.slipped.clone();
        slipped.sort_unstable();
        let run = |(first, n): &(u64, u64)| (*first, first.saturating_add(*n));
        let mut holes: Vec<(u64, u64)> =
            slipped.iter().map(run).chain([(0, self.unused)]).collect();
        if self.spares > 0 {
            let spares = self.spares.min(region);
            for start in (0..all / region).map(|r| r * region) {
                let end = start + region;
                let own = slipped.iter().filter(|(first, _)| (start..end).contains(first));
                // Data go on over each slipped run that they meet.
                holes.push(match self.spares_in_front {
                    false => {
                        let data = own.fold(end - spares, |data, (first, n)| {
                            if *first < data { data.saturating_add(*n) } else { data }
                        });
                        (data.min(end), end)
                    }
                    true => {
                        let data = own.rev().fold(start + spares, |data, (first, n)| {
                            if *first >= data { data.saturating_sub(*n) } else { data }
                        });
                        (start, data.max(start))
                    }
                });
            }
        }
        holes.sort_unstable();
        let mut apart: Vec<(u64, u64)> = Vec::with_capacity(holes.len());
        for (first, last) in holes.into_iter().map(|(first, last)| (first, last.min(all))) {
            match apart.last_mut() {
                Some(before) if first <= before.1 => before.1 = before.1.max(last),
                _ if first < last => apart.push((first, last)),
                _ => {}
            }
        }
        apart
    }

    /// How many sectors of data it holds, on a disk with so many recording surfaces.
    pub fn sectors(&self, heads: u32) -> u64 {
        self.layout(heads).1
    }

    /// Where its sectors of data lie, and how many they are.
    pub(super) fn layout(&self, heads: u32) -> (Vec<Hole>, u64) {
        let all = self.physical_sectors(heads);
        let mut passed = 0;
        let mut places = Vec::new();
        for (first, last) in self.holes(all) {
            let from = first - passed;
            passed += last - first;
            places.push(Hole { from, passed });
        }
        (places, all - passed)
    }
}

/// Two cylinders of ten sectors a track.
#[cfg(test)]
pub(super) fn zone() -> ZoneParams {
    ZoneParams {
        first_cylinder: 0,
        cylinders: 2,
        sectors_per_track: 10,
        track_skew: 2.0,
        cylinder_skew: 3.0,
        begins_at: 0.0,
        unused: 0,
        spares: 0,
        spare_region: 0,
        spares_in_front: false,
        slipped: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The physical sectors of a zone of two surfaces that hold data, in order.
    fn data(zone: &ZoneParams) -> Vec<u64> {
        let (places, sectors) = zone.layout(2);
        let passed = |s: u64| places.iter().rev().find(|p| p.from <= s).map_or(0, |p| p.passed);
        (0..sectors).map(|s| s + passed(s)).collect()
    }

    #[test]
    fn slipped_sectors_take_spares_of_their_own_region() {
        let all: Vec<u64> = (0..40).collect();
        assert_eq!(data(&zone()), all);
        // One region: three spares at the end, of which one is taken and one is a slipped one.
        let one = ZoneParams { spares: 3, slipped: vec![(4, 1), (39, 1)], ..zone() };
        let expected: Vec<u64> = (0..38).filter(|s| *s != 4).collect();
        assert_eq!(data(&one), expected);
        // A region each cylinder.
        let each = ZoneParams { spares: 2, spare_region: 20, slipped: vec![(4, 1)], ..zone() };
        let expected: Vec<u64> = (0..38).filter(|s| ![4, 19].contains(s)).collect();
        assert_eq!(data(&each), expected);
        let front = ZoneParams { spares_in_front: true, slipped: vec![], ..each };
        let expected: Vec<u64> = (0..40).filter(|s| ![0, 1, 20, 21].contains(s)).collect();
        assert_eq!(data(&front), expected);
    }

    #[test]
    fn what_overlaps_or_lies_outside_is_counted_once() {
        let odd = ZoneParams { unused: 12, slipped: vec![(11, 4), (30, u64::MAX)], ..zone() };
        let expected: Vec<u64> = (15..30).collect();
        assert_eq!(data(&odd), expected);
        assert!(data(&ZoneParams { unused: 99, ..zone() }).is_empty());
    }
}
