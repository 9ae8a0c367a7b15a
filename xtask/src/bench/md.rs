//! `cargo xtask bench volume --md`: the kernel's md raid1 beside our mirror, each over what it is
//! made of, in one run of one guest ([`crate::guest`]).
//!
//! md at its best: arrays that need no resync, no bitmap except where its cost is the question, no
//! mitigations in the kernel. fio asks the kernel past its page cache, one request at a time.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use super::machine;
use crate::guest::Guest;
use crate::{packages, step};

/// What is compared: the array's device, the device alone, fio's arguments.
const ROWS: [(&str, &str, &str, &str); 6] = [
    ("read 4k, RAM leg preferred : RAM", "md0", "ram1", "--rw=randread --bs=4k"),
    ("read 128k in sequence : RAM", "md0", "ram1", "--rw=read --bs=128k"),
    ("write 64k, two slow disks : one", "md1", "nullb4", "--rw=write --bs=64k"),
    ("write 4k, two fast disks : one", "md2", "nullb7", "--rw=randwrite --bs=4k"),
    ("write 4k, one leg in RAM : RAM", "md3", "ram1", "--rw=randwrite --bs=4k"),
    ("the same, with a bitmap that is set", "md4", "ram1", "--rw=randwrite --bs=4k"),
];
/// What the guest may take, at most.
const LIMIT: Duration = Duration::from_secs(45 * 60);
/// Seconds of each run of fio.
const SECONDS: u32 = 2;

/// Prints our mirror's figures in the guest, then md's.
pub(super) fn run(root: &Path, rounds: u32) -> anyhow::Result<bool> {
    let needed = [("fio", "fio"), ("mdadm", "mdadm")];
    anyhow::ensure!(packages::install_these(&needed)?, "the packages above are needed");
    let example = ["--release", "--quiet", "--package", "steadfast-volume", "--example", "speed"];
    if !step::run(step::cargo(root, &["build"]).args(example))? {
        return Ok(false);
    }
    let mut programs = vec![root.join("target/release/examples/speed")];
    for (name, _) in needed {
        programs.push(packages::find(name).with_context(|| format!("{name} is not there"))?);
    }
    let guest = Guest {
        modules: &["brd rd_nr=4 rd_size=262144 max_part=0", "null_blk nr_devices=0", "raid1"],
        programs: &programs,
        script: &script(rounds),
        memory: 6144,
        processors: 2,
        qemu: &[],
        limit: LIMIT,
    };
    println!("Our mirror in the guest:\n");
    let mut results = Results::default();
    let answer = guest.run(root, |line| results.take(line))?;
    if answer.status != 0 {
        println!("the guest's script has failed ({}):", answer.status);
        answer.lines.iter().rev().take(20).rev().for_each(|line| println!("  {line}"));
        return Ok(false);
    }
    println!("\nmd raid1 of Linux {} in the same guest:", answer.kernel);
    println!("microseconds a request, medians of {rounds} (least to greatest); the array's speed");
    println!("over that of the device alone\n");
    results.table(rounds)?.iter().for_each(|line| println!("{line}"));
    println!("\n{}; the guest's processors are emulated: the ratios of this run", machine());
    println!("may be compared with each other, and with nothing else.");
    Ok(true)
}

/// What the guest does. Disks are null_blk devices that answer by a timer: 400 us as the modelled
/// SSD of our row with 64 KiB, 150 us as with 4 KiB.
fn script(rounds: u32) -> String {
    let mut text = format!(
        r#"set -e
speed - {rounds}
mount -t configfs none /sys/kernel/config
null() {{
    d=/sys/kernel/config/nullb/nullb$1
    mkdir $d
    echo 256 > $d/size
    echo 1 > $d/memory_backed
    echo 2 > $d/irqmode
    echo $2 > $d/completion_nsec
    echo 1 > $d/power
}}
null 1 400000; null 2 400000; null 3 400000; null 4 400000
null 5 150000; null 6 150000; null 7 150000
array() {{
    name=$1 count=$2
    shift 2
    MDADM_NO_UDEV=1 mdadm --create /dev/$name --run --force --quiet --level=1 \
        --raid-devices=$count --assume-clean --metadata=1.2 "$@"
}}
array md0 2 --bitmap=none /dev/ram0 --write-mostly /dev/nullb1
array md1 2 --bitmap=none /dev/nullb2 /dev/nullb3
array md2 2 --bitmap=none /dev/nullb5 /dev/nullb6
array md3 1 --bitmap=none /dev/ram2
array md4 1 --bitmap=internal --bitmap-chunk=64K --delay=3600 /dev/ram3
# What was never written, memory does not have.
for device in md0 ram1 md3 md4; do
    dd if=/dev/urandom of=/dev/$device bs=1M count=192 oflag=direct 2> /dev/null
done
one() {{
    echo "run $1 $2 $3"
    fio --name=x --filename=/dev/$4 --ioengine=psync --direct=1 --size=192m --time_based \
        --runtime={SECONDS} --output-format=terse $5
}}
"#
    );
    // The first round warms up.
    for round in 0..=rounds {
        for (row, (_, array, alone, load)) in ROWS.iter().enumerate() {
            let mut sides = [(0, array), (1, alone)];
            if round % 2 == 1 {
                sides.reverse();
            }
            for (side, device) in sides {
                text += &format!("one {round} {row} {side} {device} '{load}'\n");
            }
        }
    }
    text
}

/// What fio has said so far.
#[derive(Default)]
struct Results {
    /// Round, row and side of the run of which the figures come next.
    next: Option<(u32, usize, usize)>,
    begun: bool,
    /// The round that was told.
    round: Option<u32>,
    /// Microseconds a request, by row, side and round.
    figures: BTreeMap<(usize, usize), BTreeMap<u32, f64>>,
}

impl Results {
    fn take(&mut self, line: &str) {
        if let Some(run) = line.strip_prefix("run ") {
            self.next = run_of(run);
            if !std::mem::replace(&mut self.begun, true) {
                println!();
            }
            if let Some((round, 0, _)) = self.next
                && self.round.replace(round) != Some(round)
            {
                println!("fio asks md, round {round}");
            }
        } else if let Some((round, row, side)) = self.next
            && let Some(figure) = microseconds(line)
        {
            self.figures.entry((row, side)).or_default().insert(round, figure);
            self.next = None;
        } else if !self.begun {
            println!("{line}");
        }
    }

    /// The lines of a table as our own program prints it.
    fn table(&self, rounds: u32) -> anyhow::Result<Vec<String>> {
        let mut lines = Vec::new();
        let mut line = |cells: [&str; 4]| {
            let [what, md, alone, ratio] = cells;
            lines.push(format!("{what:<38} {md:>14} {alone:>14} {ratio:>10}"));
        };
        line(["md raid1 : compared with", "md", "alone", "ratio"]);
        for (row, (what, ..)) in ROWS.iter().enumerate() {
            let of = |side: usize| -> anyhow::Result<Vec<f64>> {
                let known = self.figures.get(&(row, side));
                let each = (1..=rounds).map(|round| known?.get(&round).copied());
                each.collect::<Option<_>>().with_context(|| format!("'{what}': a run is missing"))
            };
            let (md, alone) = (of(0)?, of(1)?);
            let ratios = md.iter().zip(&alone).map(|(md, alone)| alone / md).collect();
            let [md, alone, ratio] = [text(md, 1), text(alone, 1), text(ratios, 2)];
            line([what, &md.0, &alone.0, &ratio.0]);
            line(["", &md.1, &alone.1, &ratio.1]);
        }
        Ok(lines)
    }
}

fn run_of(text: &str) -> Option<(u32, usize, usize)> {
    let mut numbers = text.split(' ');
    let (round, row, side) = (numbers.next()?, numbers.next()?, numbers.next()?);
    Some((round.parse().ok()?, row.parse().ok()?, side.parse().ok()?))
}

/// Of fio's terse output, version 3: of the direction that did something, the time of the run over
/// its requests.
fn microseconds(line: &str) -> Option<f64> {
    let fields: Vec<&str> = line.split(';').collect();
    if fields.first() != Some(&"3") {
        return None;
    }
    // Of reads from field 6, of writes from field 47: KiB in all, KiB a second, requests a second,
    // milliseconds.
    let rate = |at: usize| fields.get(at)?.parse::<f64>().ok().filter(|rate| *rate > 0.0);
    rate(7).or_else(|| rate(48)).map(|rate| 1e6 / rate)
}

/// Median, and least to greatest.
fn text(mut values: Vec<f64>, digits: usize) -> (String, String) {
    values.sort_by(f64::total_cmp);
    let (least, most) = (values[0], values[values.len() - 1]);
    let median = values[(values.len() - 1) / 2];
    (format!("{median:.digits$}"), format!("{least:.digits$}..{most:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_direction_that_did_something_counts() {
        let mut fields = vec!["0"; 130];
        fields[0] = "3";
        fields[7] = "20000";
        assert_eq!(microseconds(&fields.join(";")), Some(50.0));
        fields[7] = "0";
        fields[48] = "4000";
        assert_eq!(microseconds(&fields.join(";")), Some(250.0));
        assert_eq!(microseconds("run 1 2 3"), None);
    }

    #[test]
    fn each_row_has_both_sides_in_each_round() {
        let mut results = Results::default();
        assert!(results.table(1).is_err());
        for row in 0..ROWS.len() {
            for side in 0..2 {
                results.take(&format!("run 1 {row} {side}"));
                let mut fields = vec!["0".to_owned(); 60];
                fields[0] = "3".to_owned();
                fields[7] = (if side == 0 { 10_000 } else { 20_000 }).to_string();
                results.take(&fields.join(";"));
            }
        }
        let table = results.table(1).unwrap();
        let words: Vec<&str> = table[1].split_whitespace().rev().take(3).collect();
        assert_eq!(words, ["0.50", "50.0", "100.0"]);
        assert!(table.iter().all(|line| line.len() <= 80) && table.len() == 1 + 2 * ROWS.len());
        assert_eq!(script(2).matches("\none ").count(), 3 * 2 * ROWS.len());
    }
}
