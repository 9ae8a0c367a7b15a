//! DiskSim's seek functions as a table of seek times.

use super::syntax::Block;

/// Distances of a curve that go into the table: each of the first, then ever fewer, so that the
/// lines between them are within a microsecond or two of it.
fn distances(last: u32) -> impl Iterator<Item = u32> {
    let step = |d: &u32| Some(d + (d / 16).max(1));
    std::iter::successors(Some(1), step).take_while(move |d| *d < last).chain([last])
}

/// The seek times of a drive, as distances in cylinders and ms.
pub(super) fn table(
    mechanics: &Block,
    model: &Block,
    file: Option<&str>,
) -> Result<Vec<(u32, f64)>, String> {
    let last = (model.or_0("Number of cylinders") as u32).saturating_sub(1).max(1);
    let key = |key: &str| {
        mechanics.number(key).ok_or_else(|| format!("'{key}' is missing in {}", mechanics.kind))
    };
    let sampled = |time: &dyn Fn(f64) -> f64| {
        distances(last).map(|d| (d, time(f64::from(d)))).collect::<Vec<_>>()
    };
    let three = || {
        let (one, average) = (key("Single cylinder seek time")?, key("Average seek time")?);
        // The manual's own spelling.
        let full = key("Full strobe seek time").or_else(|_| key("Full stroke seek time"))?;
        Ok::<_, String>((one, average, full))
    };
    let n = f64::from(last);
    match mechanics.word("Seek type").unwrap_or("extracted") {
        "extracted" => from_file(file.ok_or("the file of 'Full seek curve' is missing")?),
        "constant" => {
            let time = key("Constant seek time").or_else(|_| key("Average seek time"))?;
            Ok(vec![(1, time)])
        }
        // To a third of the stroke, then to all of it.
        "linear" => {
            let (one, average, full) = three()?;
            Ok(match last / 3 {
                0 | 1 => vec![(1, one), (last.max(2), full)],
                third => vec![(1, one), (third, average), (last, full)],
            })
        }
        // Lee and Katz, "An analytic performance model of disk arrays", SIGMETRICS 1993.
        "curve" => {
            let (one, average, full) = three()?;
            let root = (-10.0 * one + 15.0 * average - 5.0 * full) / (3.0 * n.sqrt());
            let line = (7.0 * one - 15.0 * average + 8.0 * full) / (3.0 * n);
            Ok(sampled(&|d| one + root * (d - 1.0).sqrt() + line * (d - 1.0)))
        }
        // Ruemmler and Wilkes, 1994; with the first ten distances as measured.
        kind @ ("hpl" | "hplplus10") => {
            let [knee, c0, root, c1, line, ..] = mechanics.numbers("HPL seek equation values")[..]
            else {
                return Err("'HPL seek equation values' are not six numbers".into());
            };
            let first = mechanics.numbers("First ten seek times");
            let one = mechanics.number("Single cylinder seek time");
            Ok(sampled(&|d| match first.get(d as usize - 1) {
                Some(time) if kind == "hplplus10" => *time,
                _ if d == 1.0 && kind == "hpl" && one.is_some() => one.unwrap_or(0.0),
                _ if d < knee => c0 + root * d.sqrt(),
                _ => c1 + line * d,
            }))
        }
        other => Err(format!("'Seek type = {other}' is not known")),
    }
}

/// Lines of distance and time; the first line says how many there are.
fn from_file(text: &str) -> Result<Vec<(u32, f64)>, String> {
    let mut points: Vec<(u32, f64)> = Vec::new();
    let mut said = None;
    for (n, line) in (1..).zip(text.lines()) {
        if let Some((_, count)) = line.split_once(':') {
            said = count.trim().parse::<usize>().ok();
            continue;
        }
        if line.trim().is_empty() {
            continue;
        }
        let (distance, time) = line.split_once(',').unwrap_or((line, ""));
        let (Ok(distance), Ok(time)) = (distance.trim().parse(), time.trim().parse()) else {
            return Err(format!("seek times, line {n}: is not: cylinders, ms"));
        };
        points.push((distance, time));
    }
    // DiskSim reads as many as the file says.
    points.truncate(said.unwrap_or(usize::MAX));
    if let Some(said) = said.filter(|said| *said > points.len()) {
        return Err(format!(
            "seek times: the file says that it has {said}, and has {}",
            points.len()
        ));
    }
    points.sort_by_key(|(distance, _)| *distance);
    points.dedup_by_key(|(distance, _)| *distance);
    points.retain(|(distance, _)| *distance > 0);
    if points.is_empty() {
        return Err("seek times: the file has none".into());
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::syntax::parse;

    fn of(mechanics: &str) -> Result<Vec<(u32, f64)>, String> {
        let text = format!("m M {{ {mechanics} }} d D {{ Number of cylinders = 1001 }}");
        let found = parse(&text).unwrap();
        table(&found.blocks[0], &found.blocks[1], Some("Seek distances: 2\n1, 0.8\n9,\t1.5\n"))
    }

    /// The time that the table gives for a distance.
    fn at(points: &[(u32, f64)], d: u32) -> f64 {
        let above = points.iter().position(|(x, _)| *x >= d).unwrap();
        let (b, t) = points[above];
        let Some((a, s)) = above.checked_sub(1).map(|i| points[i]) else { return t };
        s + (t - s) * f64::from(d - a) / f64::from(b - a)
    }

    #[test]
    fn the_kinds_of_curves() {
        assert_eq!(of("Seek type = extracted").unwrap(), [(1, 0.8), (9, 1.5)]);
        assert_eq!(of("Seek type = constant, Average seek time = 5").unwrap(), [(1, 5.0)]);
        let three = "Single cylinder seek time = 1, Average seek time = 8, \
                     Full strobe seek time = 16";
        let linear = of(&format!("Seek type = linear, {three}")).unwrap();
        assert_eq!(linear, [(1, 1.0), (333, 8.0), (1000, 16.0)]);
        let curve = of(&format!("Seek type = curve, {three}")).unwrap();
        assert!((curve[0].1 - 1.0).abs() < 1e-9 && (at(&curve, 1000) - 16.0).abs() < 0.05);
        let hpl = "HPL seek equation values = [ 300, 3.81, 0.33, 7.75, 0.0059, -1 ]";
        let ten = "First ten seek times = [ 2.89, 3.68, 3.81, 3.98, 4.27, 4.65, 4.52, 4.65, 4.82, \
                   4.99 ]";
        let hpl = of(&format!("Seek type = hplplus10, {hpl}, {ten}")).unwrap();
        assert_eq!((at(&hpl, 1), at(&hpl, 7)), (2.89, 4.52));
        for d in [11_u32, 57, 123, 290, 301, 777] {
            let d64 = f64::from(d);
            let exact = if d < 300 { 3.81 + 0.33 * d64.sqrt() } else { 7.75 + 0.0059 * d64 };
            assert!((at(&hpl, d) - exact).abs() < 0.03, "{d}");
        }
        assert!(of("Seek type = guess").unwrap_err().contains("guess"));
    }
}
