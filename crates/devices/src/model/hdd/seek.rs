//! The seek time over a distance: a curve through a data sheet's figures, or measured times.

use crate::model::units::ms;

/// Seek time over a distance in cylinders: while the arm only accelerates and brakes, the time
/// grows with the root of the distance; beyond a knee it coasts, and the time grows linearly,
/// with the slope it had at the knee (Ruemmler and Wilkes, "An introduction to disk drive
/// modeling", IEEE Computer, March 1994).
///
/// The curve is the only one of this shape through the three figures of a data sheet: to the next
/// cylinder, average over all pairs of cylinders, full stroke.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeekCurve {
    constant_ns: f64,
    /// Factor of the root of the distance as a share of the stroke.
    root_ns: f64,
    /// The knee, as a share of the stroke.
    knee: f64,
    stroke: f64,
    next_cylinder_ns: u64,
}

impl SeekCurve {
    /// The curve through three points in milliseconds, over `stroke` cylinders; `None` if there
    /// is none.
    pub(super) fn fit(track_ms: f64, average_ms: f64, full_ms: f64, stroke: u32) -> Option<Self> {
        let stroke = f64::from(stroke.max(1));
        let ordered = track_ms > 0.0 && average_ms > track_ms && full_ms > average_ms;
        if !ordered || !full_ms.is_finite() || full_ms > 60_000.0 {
            return None;
        }
        let curve = |knee: f64| {
            let reach = (1.0 + knee) / (2.0 * knee.sqrt());
            let root_ns = (full_ms - track_ms) * 1e6 / (reach - 1.0 / stroke.sqrt());
            SeekCurve {
                constant_ns: track_ms * 1e6 - root_ns / stroke.sqrt(),
                root_ns,
                knee,
                stroke,
                next_cylinder_ns: (track_ms * 1e6).round() as u64,
            }
        };
        let wanted = average_ms * 1e6;
        let (mut low, mut high) = ((4.0 / stroke).min(0.5), 1.0);
        if !(curve(low).average_ns()..=curve(high).average_ns()).contains(&wanted) {
            return None;
        }
        // The average grows with the knee. 60 halvings exhaust the precision.
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if curve(middle).average_ns() < wanted { low = middle } else { high = middle }
        }
        Some(curve(low))
    }

    /// The mean over all pairs: the integral of 2(1-u) T(u) over distances u in shares of the
    /// stroke.
    fn average_ns(&self) -> f64 {
        let k = self.knee;
        let root = k.sqrt();
        let coast = 1.0 - k;
        let accelerating = k * root * (4.0 / 3.0 - 0.8 * k);
        let coasting = root * coast * coast + coast * coast * coast / (6.0 * root);
        self.constant_ns + self.root_ns * (accelerating + coasting)
    }

    /// Nanoseconds to settle on a track `distance` cylinders away. A distance of zero is another
    /// head of the same cylinder: the arm moves as little as to the next cylinder.
    pub(super) fn time(&self, distance: u32) -> u64 {
        if distance <= 1 {
            return self.next_cylinder_ns;
        }
        let u = f64::from(distance) / self.stroke;
        let share = if u <= self.knee {
            u.sqrt()
        } else {
            let root = self.knee.sqrt();
            root + (u - self.knee) / (2.0 * root)
        };
        (self.constant_ns + self.root_ns * share).round() as u64
    }
}

/// Measured seek times: between two distances the time is on the line through both, beyond the
/// last on the line through the last two.
#[derive(Debug, Clone)]
pub(super) struct SeekTable(Vec<(u32, f64)>);

impl SeekTable {
    /// Of distances in cylinders, growing, with times in milliseconds; `None` if they do not grow
    /// or a time is none.
    pub(super) fn new(points: &[(u32, f64)]) -> Option<Self> {
        let grows = points.is_sorted_by(|a, b| a.0 < b.0) && points.first()?.0 > 0;
        let are_times = points.iter().all(|(_, ms)| (0.0..=60_000.0).contains(ms));
        (grows && are_times).then(|| SeekTable(points.to_vec()))
    }

    fn time(&self, distance: u32) -> u64 {
        let SeekTable(points) = self;
        let after =
            points.partition_point(|(d, _)| *d < distance).clamp(1, points.len().max(2) - 1);
        let (Some((d0, t0)), Some((d1, t1))) = (points.get(after - 1), points.get(after)) else {
            return ms(points[0].1);
        };
        if distance <= *d0 {
            return ms(*t0);
        }
        let share = f64::from(distance - d0) / f64::from(d1 - d0);
        ms((t0 + share * (t1 - t0)).max(0.0))
    }
}

/// How long seeks take.
#[derive(Debug, Clone)]
pub(super) enum Seek {
    Curve(SeekCurve),
    Table(SeekTable),
}

impl Seek {
    /// Nanoseconds to reach a track `distance` cylinders away, at least 1.
    pub(super) fn time(&self, distance: u32) -> u64 {
        match self {
            Seek::Curve(curve) => curve.time(distance),
            Seek::Table(table) => table.time(distance),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_followed_and_continued() {
        let t = SeekTable::new(&[(1, 1.0), (3, 2.0), (10, 1.3)]).unwrap();
        let times = [1, 2, 3, 10, 17].map(|d| t.time(d));
        assert_eq!(times, [1_000_000, 1_500_000, 2_000_000, 1_300_000, 600_000]);
        assert_eq!(SeekTable::new(&[(4, 1.5)]).unwrap().time(400), 1_500_000);
        assert!(SeekTable::new(&[]).is_none());
        assert!(SeekTable::new(&[(0, 1.0)]).is_none());
        assert!(SeekTable::new(&[(2, 1.0), (2, 1.0)]).is_none());
        assert!(SeekTable::new(&[(2, f64::NAN)]).is_none());
    }

    #[test]
    fn passes_through_the_data_sheet() {
        for (track, average, full) in [(0.2, 3.4, 6.6), (0.44, 3.9, 7.4), (1.0, 8.5, 17.0)] {
            let n = 70_000;
            let curve = SeekCurve::fit(track, average, full, n).unwrap();
            assert_eq!(curve.time(1), (track * 1e6) as u64);
            assert!(curve.time(n).abs_diff((full * 1e6) as u64) <= 1);
            // The average over all pairs, summed instead of integrated.
            let pairs = |d: u64| 2 * (u64::from(n) + 1 - d);
            let total: u128 = (1..=u64::from(n))
                .map(|d| u128::from(curve.time(d as u32)) * u128::from(pairs(d)))
                .sum();
            let all: u128 = (1..=u64::from(n)).map(|d| u128::from(pairs(d))).sum();
            let mean = (total / all) as f64;
            assert!((mean / (average * 1e6) - 1.0).abs() < 1e-3, "{mean}");
        }
    }

    #[test]
    fn grows_with_the_distance() {
        let curve = SeekCurve::fit(0.2, 3.4, 6.6, 70_000).unwrap();
        let times: Vec<u64> = (1..=70_000).map(|d| curve.time(d)).collect();
        assert!(times.is_sorted());
    }

    #[test]
    fn impossible_figures_are_refused() {
        assert!(SeekCurve::fit(0.2, 6.5, 6.6, 70_000).is_none());
        assert!(SeekCurve::fit(3.0, 2.0, 6.6, 70_000).is_none());
        assert!(SeekCurve::fit(0.2, f64::NAN, 6.6, 70_000).is_none());
    }
}
