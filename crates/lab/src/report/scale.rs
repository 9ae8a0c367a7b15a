//! From figures to places: a linear or a logarithmic axis, with its ticks.

use super::svg::compact;

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scale {
    /// Between round numbers.
    Linear { from: f64, step: f64, max: f64 },
    /// Around what is above zero; the ends' logarithms, and whether between two powers of ten
    /// twice and five times of it are named too.
    Logarithmic { first: f64, last: f64, fine: bool },
    /// Places side by side, 0, 1, 2 ..., and the names of some.
    Names { places: usize, names: Vec<(usize, String)> },
}

impl Scale {
    /// An axis for these values; a linear one is from 0.
    pub(crate) fn of(logarithmic: bool, values: impl Iterator<Item = f64>) -> Scale {
        let values = values.filter(|v| v.is_finite());
        if logarithmic { Scale::logarithmic(values) } else { Scale::linear(values) }
    }

    fn linear(values: impl Iterator<Item = f64>) -> Scale {
        let max = values.fold(0.0, f64::max);
        let step = nice_step(max / 5.0);
        Scale::Linear { from: 0.0, step, max: (max / step).ceil().max(1.0) * step }
    }

    /// A linear axis that reaches from one value to another.
    pub(crate) fn between(least: f64, most: f64) -> Scale {
        let step = nice_step((most - least) / 5.0);
        let from = (least / step).floor() * step;
        Scale::Linear { from, step, max: ((most / step).ceil() * step).max(from + step) }
    }

    /// An axis of names, each with its place.
    pub(crate) fn names<'n>(names: impl IntoIterator<Item = &'n str>) -> Scale {
        let names: Vec<_> = names.into_iter().map(str::to_owned).enumerate().collect();
        Scale::Names { places: names.len(), names }
    }

    /// Whether it is of names.
    pub(crate) fn is_of_names(&self) -> bool {
        matches!(self, Scale::Names { .. })
    }

    /// Whether it begins at zero.
    pub(crate) fn is_from_zero(&self) -> bool {
        matches!(self, Scale::Linear { from: 0.0, .. })
    }

    fn logarithmic(values: impl Iterator<Item = f64>) -> Scale {
        let logs: Vec<f64> = values.filter(|v| *v > 0.0).map(f64::log10).collect();
        let least = logs.iter().copied().fold(f64::INFINITY, f64::min);
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if logs.is_empty() {
            return Scale::Logarithmic { first: 0.0, last: 1.0, fine: false };
        }
        let (first, last) = (least.floor(), most.ceil().max(least.floor() + 1.0));
        if most - least > 1.4 {
            return Scale::Logarithmic { first, last, fine: false };
        }
        // Few decades: ends at once, twice or five times a power of ten.
        let within = |at: &f64| *at <= least + 1e-9;
        let beyond = |at: &f64| *at >= most - 1e-9;
        let first = steps(first, last).filter(within).fold(first, f64::max);
        let last = steps(first.floor(), last).filter(beyond).fold(last, f64::min);
        Scale::Logarithmic {
            first,
            last: if last > first { last } else { first + 1.0 },
            fine: true,
        }
    }

    /// Where a value is, from 0 to 1. On a logarithmic axis zero is at its lower end.
    pub(crate) fn share(&self, value: f64) -> f64 {
        let share = match self {
            Scale::Linear { from, max, .. } => (value - from) / (max - from),
            Scale::Names { places, .. } => (value + 0.5) / (*places).max(1) as f64,
            Scale::Logarithmic { .. } if value <= 0.0 => 0.0,
            Scale::Logarithmic { first, last, .. } => (value.log10() - first) / (last - first),
        };
        share.clamp(0.0, 1.0)
    }

    /// Marks of the axis with what is written there.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        let with_text = |v: f64| (v, compact(v));
        match self {
            Scale::Linear { from, step, max } => {
                // OK to cast: five or ten, and the digits of a fraction.
                let (count, digits) =
                    (((max - from) / step).round() as u32, -step.log10().floor() as usize);
                let tick = |i| match from + f64::from(i) * step {
                    v if *step >= 1.0 || v == 0.0 => with_text(v),
                    v => (v, format!("{v:.digits$}")),
                };
                (0..=count).map(tick).collect()
            }
            Scale::Names { names, .. } => {
                names.iter().map(|(at, name)| (*at as f64, name.clone())).collect()
            }
            Scale::Logarithmic { first, last, fine: true } => {
                let shown = |at: &f64| (first - 1e-9..=last + 1e-9).contains(at);
                let places = steps(first.floor(), last.ceil()).filter(shown);
                // (To the digits that are written: 10^0.301 is not quite 2.)
                places.map(|at| with_text((10f64.powf(at) * 1e6).round() / 1e6)).collect()
            }
            Scale::Logarithmic { first, last, .. } => {
                // OK to cast: powers of ten of finite numbers. Of many only so many are named.
                let (first, last) = (*first as i32, *last as i32);
                let every = ((last - first) / 8 + 1) as usize;
                (first..=last).step_by(every).map(|d| with_text(10f64.powi(d))).collect()
            }
        }
    }
}

/// The logarithms of once, twice and five times each power of ten, from one to another.
fn steps(first: f64, last: f64) -> impl Iterator<Item = f64> {
    // OK to cast: see above.
    let decades = first as i32..=last as i32;
    decades.flat_map(|d| [1.0_f64, 2.0, 5.0].map(|m| f64::from(d) + m.log10()))
}

/// 1, 2 or 5 times a power of ten, at least `rough`.
pub(crate) fn nice_step(rough: f64) -> f64 {
    if rough.is_nan() || rough <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= rough).unwrap_or(rough)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        assert_eq!((nice_step(0.7), nice_step(12.0), nice_step(0.0)), (1.0, 20.0, 1.0));
        let scale = Scale::of(false, [3.0, 42.0].into_iter());
        assert_eq!(scale, Scale::Linear { from: 0.0, step: 10.0, max: 50.0 });
        assert_eq!(scale.ticks().last(), Some(&(50.0, "50".into())));
        assert_eq!((scale.share(25.0), scale.share(99.0)), (0.5, 1.0));
        let none = Scale::of(false, [f64::NAN, f64::INFINITY].into_iter());
        assert_eq!(none, Scale::Linear { from: 0.0, step: 1.0, max: 1.0 });
    }

    #[test]
    fn an_axis_between_two_values_names_fractions_in_full() {
        let texts = |least, most| -> Vec<String> {
            Scale::between(least, most).ticks().into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(texts(2.62, 3.94), ["2.5", "3.0", "3.5", "4.0"]);
        assert_eq!(texts(1.011, 1.052), ["1.01", "1.02", "1.03", "1.04", "1.05", "1.06"]);
        assert_eq!(Scale::between(2.0, 2.0).ticks().len(), 2);
        let names = Scale::names(["a", "b"]);
        assert_eq!((names.share(0.0), names.share(1.0)), (0.25, 0.75));
    }

    #[test]
    fn logarithmic_axes_end_at_round_numbers_and_zero_is_at_the_end() {
        let of = |values: &[f64]| Scale::of(true, values.iter().copied());
        let whole = |first, last| Scale::Logarithmic { first, last, fine: false };
        let d = of(&[0.0, 3.0, 420.0]);
        assert_eq!(d, whole(0.0, 3.0));
        assert_eq!((d.share(0.0), d.share(1.0), d.share(1000.0)), (0.0, 0.0, 1.0));
        assert_eq!(of(&[0.0]), whole(0.0, 1.0));
        assert!(of(&[1e-300, 1e300]).ticks().len() <= 80);
        let ticks = |values: &[f64]| -> Vec<f64> {
            of(values).ticks().into_iter().map(|(at, _)| at).collect()
        };
        assert_eq!(ticks(&[540.0, 1230.0]), [500.0, 1000.0, 2000.0]);
        assert_eq!(ticks(&[10.0]), [10.0, 20.0, 50.0, 100.0]);
        assert_eq!(ticks(&[2.0, 20.0]), [2.0, 5.0, 10.0, 20.0]);
        assert_eq!(ticks(&[0.03]), [0.02, 0.05]);
    }
}
