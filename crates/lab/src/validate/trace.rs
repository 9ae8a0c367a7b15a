//! A trace of a real drive: requests one after the other, each with the time that it took.
//!
//! DiskSim's form `validate`: `R` or `W`, a word about the cache, first sector, sectors, response
//! time in us, and the time from the answer to the next request in us.

use std::time::Duration;

/// A request, and what the drive did with it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TraceRequest {
    /// Whether it is a write.
    pub writes: bool,
    /// Its first sector of 512 bytes.
    pub sector: u64,
    /// How many.
    pub sectors: u64,
    /// How long the drive took.
    pub response: Duration,
    /// From the answer to the next request.
    pub think: Duration,
}

/// No request is larger, in sectors.
const SECTORS_MAX: u64 = 1 << 16;

/// The requests of a trace; an error is what is wrong, with its line.
pub(super) fn parse(text: &str, drive_sectors: u64) -> Result<Vec<TraceRequest>, String> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let requests: Vec<TraceRequest> = lines
        .map(|(n, line)| request(line, drive_sectors).map_err(|e| format!("line {n}: {e}")))
        .collect::<Result<_, _>>()?;
    if requests.is_empty() {
        return Err("it has no requests".into());
    }
    Ok(requests)
}

fn request(line: &str, drive_sectors: u64) -> Result<TraceRequest, String> {
    const FORM: &str = "a request is: R or W, a word, first sector, sectors, us, us";
    let words: Vec<&str> = line.split_whitespace().collect();
    let [kind, _, sector, sectors, response, think] = words[..] else {
        return Err(FORM.into());
    };
    let writes = match kind {
        "R" => false,
        "W" => true,
        other => return Err(format!("'{other}' is neither R nor W")),
    };
    let whole = |word: &str| word.parse::<u64>().map_err(|_| FORM.to_owned());
    let time = |word: &str| {
        let us: f64 = word.parse().map_err(|_| FORM.to_owned())?;
        let limits = 0.0..=3.6e9;
        let is_time = limits.contains(&us);
        let why = || format!("{us} us is not a time of at most an hour");
        is_time.then(|| Duration::from_secs_f64(us / 1e6)).ok_or_else(why)
    };
    let (sector, sectors) = (whole(sector)?, whole(sectors)?);
    let fits = sector.checked_add(sectors).is_some_and(|end| end <= drive_sectors);
    if !(1..=SECTORS_MAX).contains(&sectors) || !fits {
        return Err(format!(
            "{sectors} sectors at {sector} are not on the drive, which has {drive_sectors}"
        ));
    }
    Ok(TraceRequest { writes, sector, sectors, response: time(response)?, think: time(think)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_and_nonsense_is_refused() {
        let text =
            "R Hit    1975456   4  15362.00000  56074.00000\n\nW Miss 9 15 17221.0 21894.38\n";
        let all = parse(text, 2_000_000).unwrap();
        assert_eq!((all[0].sector, all[0].sectors, all[0].writes), (1_975_456, 4, false));
        assert_eq!(all[0].response, Duration::from_micros(15_362));
        assert!(all[1].writes);
        let wrong = |text: &str| parse(text, 1000).unwrap_err();
        assert_eq!(wrong(""), "it has no requests");
        assert!(wrong("R Hit 1 2 3").starts_with("line 1: a request is"));
        assert!(wrong("\nX Hit 1 2 3 4").starts_with("line 2: 'X' is neither"));
        assert!(wrong("R Hit 999 2 3 4").contains("not on the drive"));
        assert!(wrong("R Hit 1 0 3 4").contains("not on the drive"));
        assert!(wrong("R Hit 18446744073709551615 9 3 4").contains("not on the drive"));
        assert!(wrong("R Hit 1 2 nan 4").contains("not a time"));
        assert!(wrong("R Hit 1 2 -1 4").contains("not a time"));
    }
}
