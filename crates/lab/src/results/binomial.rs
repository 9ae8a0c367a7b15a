//! The bound of Clopper and Pearson (Biometrika 26, 1934): which rate is too high for what was
//! seen.
//!
//! # Invariants
//!
//! The counts are anybody's: a result is read from a file, and may have thousands of rates. One
//! bound takes some ten thousand steps of arithmetic at the most, whatever its counts are.

/// Up to here a factorial is a number.
const FACTORIAL_MAX: u64 = 170;
/// Steps of Newton's method. It needs less than ten.
const STEPS_MAX: u32 = 60;
/// Where the next step is smaller than that share of the rate, the step after it changes nothing.
const NEAR: f64 = 1e-12;

/// The highest rate at which at most `events` of `n` are seen with a chance of `chance` or more.
/// `events` is above 0 and below `n`, `chance` below a half.
pub(super) fn upper_bound(events: u64, n: u64, chance: f64) -> f64 {
    let choices = ln_factorial(n) - ln_factorial(events) - ln_factorial(n - events);
    let (k, others) = (events as f64, (n - events) as f64);
    let seen = k / n as f64;
    // At the rate that was seen the chance is a half or more, at 1 it is none.
    let (mut low, mut high) = (seen, 1.0);
    let deviation = (seen * (1.0 - seen) / n as f64).sqrt();
    let mut rate = (seen + 2.0 * deviation).min(f64::midpoint(seen, 1.0));
    for _ in 0..STEPS_MAX {
        let exactly = (choices + k * rate.ln() + others * (-rate).ln_1p()).exp();
        let at_most = exactly * terms(events, n, rate);
        if at_most > chance {
            low = rate;
        } else {
            high = rate;
        }
        // The chance of `events` or fewer falls so fast as the rate rises.
        let slope = exactly * others / (1.0 - rate);
        let next = rate + (at_most - chance) / slope;
        let is_near = (next - rate).abs() <= NEAR * rate;
        // Also where the chance is too small for a number.
        rate = if low <= next && next <= high { next } else { f64::midpoint(low, high) };
        if is_near {
            break;
        }
    }
    rate
}

/// The chance of at most `events` of `n`, as a multiple of the chance of exactly so many. The rate
/// is not below the one that was seen, so that the largest term comes first.
fn terms(events: u64, n: u64, rate: f64) -> f64 {
    let odds = (1.0 - rate) / rate;
    let (mut sum, mut term, mut k) = (1.0, 1.0, events as f64);
    while k > 0.0 {
        term *= k * odds / (n as f64 - k + 1.0);
        let before = sum;
        sum += term;
        if sum == before {
            break;
        }
        k -= 1.0;
    }
    sum
}

/// Stirling's series where the factorial itself would be too large.
fn ln_factorial(k: u64) -> f64 {
    if k <= FACTORIAL_MAX {
        return (2..=k).map(|i| i as f64).product::<f64>().ln();
    }
    let k = k as f64;
    let series = 1.0 / (12.0 * k) - 1.0 / (360.0 * k.powi(3)) + 1.0 / (1260.0 * k.powi(5));
    k * k.ln() - k + (std::f64::consts::TAU * k).ln() / 2.0 + series
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANCE: f64 = 0.05;

    /// By the definition, with every term: the interval is halved until it is a number.
    fn by_definition(events: u64, n: u64) -> f64 {
        let at_most = |rate: f64| {
            let mut log = n as f64 * (1.0 - rate).ln();
            let mut sum = log.exp();
            for k in 0..events {
                let k = k as f64;
                log += ((n as f64 - k) / (k + 1.0)).ln() + (rate / (1.0 - rate)).ln();
                sum += log.exp();
            }
            sum
        };
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if at_most(middle) > CHANCE { low = middle } else { high = middle }
        }
        high
    }

    #[test]
    fn it_is_what_the_definition_gives() {
        for n in [2, 3, 10, 60, 171, 400, 1000] {
            for events in (1..n).step_by(1 + n as usize / 25).chain([n - 1]) {
                let (bound, right) = (upper_bound(events, n, CHANCE), by_definition(events, n));
                assert!((bound - right).abs() < 1e-11 * right, "{events} of {n}: {bound} {right}");
            }
        }
        let (bound, right) = (upper_bound(700, 100_000, CHANCE), by_definition(700, 100_000));
        assert!((bound - right).abs() < 1e-9 * right, "{bound} {right}");
    }

    /// With a step for each event this would take days.
    #[test]
    fn the_most_events_take_a_moment() {
        let n = 10_000_000;
        for events in [1, 1000, n / 2, n - 10_000, n - 1].repeat(200) {
            let (bound, seen) = (upper_bound(events, n, CHANCE), events as f64 / n as f64);
            // The normal approximation, with room for the skew of a few events.
            let deviation = (seen * (1.0 - seen) / n as f64).sqrt();
            let above = (bound - seen) / deviation;
            let room = if events == 1 { 5.0 } else { 1.75 };
            assert!(bound < 1.0 && (0.9..room).contains(&above), "{events}: {bound} {above}");
        }
    }
}
