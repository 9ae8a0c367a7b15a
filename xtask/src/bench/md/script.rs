//! What the guest does: md's arrays, fio's jobs, and our mirrors' program before and after.

use std::fmt::Write;

/// MiB of a volume, as `speed` has them, and of a leg with room for md's own data.
const VOLUME_MIB: u64 = 256;
const LEG_MIB: u64 = 300;

/// What is compared: `alone` is what the mirrors are compared with.
pub(super) const SIDES: [&str; 3] = ["alone", "md", "bitmap"];

/// A row of the table: one of `speed -`, and what is the same with md.
pub(super) struct Row {
    /// As `speed` calls it.
    pub what: &'static str,
    /// How the table calls it.
    pub name: &'static str,
    /// `None`: md has nothing like it.
    pub md: Option<Md>,
}

pub(super) struct Md {
    /// Of a request.
    pub bytes: u64,
    rw: &'static str,
    tasks: u64,
    requests: u64,
    devices: Devices,
    /// Waits before each turn until no chunk of the bitmap is dirty.
    clean: bool,
}

/// Each side's device; `None`: it is not measured.
type Devices = [Option<&'static str>; 3];

const PREFERRED: Devices = [Some("/dev/ram5"), Some("/dev/md0"), None];
const SSDS: Devices = [Some("/dev/nullb4"), Some("/dev/md1"), Some("/dev/md2")];
/// What is dirty is a question of the bitmap only.
const SSDS_BITMAP: Devices = [Some("/dev/nullb4"), None, Some("/dev/md2")];
const ONE_IN_RAM: Devices = [Some("/dev/ram5"), Some("/dev/md3"), Some("/dev/md4")];

const fn md(
    rw: &'static str,
    bytes: u64,
    tasks: u64,
    requests: u64,
    devices: Devices,
    clean: bool,
) -> Option<Md> {
    Some(Md { bytes, rw, tasks, requests, devices, clean })
}

pub(super) const ROWS: [Row; 8] = [
    Row {
        what: "read 4k, RAM leg preferred : RAM",
        name: "read 4k, RAM leg preferred : RAM",
        md: md("randread", 4096, 1, 40_000, PREFERRED, false),
    },
    Row {
        what: "the same, two tasks",
        name: "the same, two tasks",
        md: md("randread", 4096, 2, 40_000, PREFERRED, false),
    },
    Row {
        what: "read 128k in sequence : RAM",
        name: "read 128k in sequence : RAM",
        md: md("read", 128 << 10, 1, 4_000, PREFERRED, false),
    },
    Row {
        what: "write 64k, two modelled SSDs : one",
        name: "write 64k, two slow legs : one",
        md: md("write", 64 << 10, 1, 400, SSDS, false),
    },
    Row {
        what: "write 4k, two modelled SSDs : one",
        name: "write 4k, two slow legs, dirty : one",
        md: md("randwrite", 4096, 1, 1_000, SSDS, false),
    },
    Row {
        what: "write 4k, modelled SSDs, clean : one",
        name: "write 4k, two slow legs, clean : one",
        md: md("randwrite", 4096, 1, 1_000, SSDS_BITMAP, true),
    },
    Row {
        what: "write 4k, modelled SSDs, unwritten : one",
        name: "write 4k, two slow legs, unwritten : one",
        md: None,
    },
    Row {
        what: "write 4k, one leg in RAM, dirty : RAM",
        name: "write 4k, one leg in RAM, dirty : RAM",
        md: md("randwrite", 4096, 1, 20_000, ONE_IN_RAM, false),
    },
];

/// Modules with their arguments.
pub(super) const MODULES: [&str; 3] =
    ["raid1", "brd rd_nr=6 rd_size=307200 max_part=0", "null_blk nr_devices=0"];
const _: () = assert!(LEG_MIB << 10 == 307_200, "rd_size is in KiB");

/// What the modelled SSD takes from a request until it says that it has been done: command, link
/// and buffer (`SsdParams::default`).
fn ssd_nanos(bytes: u64) -> u64 {
    13_300 + bytes * 2 + 43_500
}

/// Shell functions. The bitmap has a chunk for what is a region with us. Its daemon, which makes
/// chunks clean, sleeps for an hour unless it is asked to; so what was written stays dirty.
fn functions() -> String {
    format!(
        r#"set -e
array() {{
    MDADM_NO_UDEV=1 mdadm --create --quiet --run --force --assume-clean --metadata=1.2 --level=1 \
        "$@"
}}
filled() {{ dd if=/dev/zero of=$1 bs=1M count={VOLUME_MIB} oflag=direct 2>/dev/null; }}
sleeps() {{ echo $2 > /sys/block/$1/md/bitmap/time_base; }}
ssds() {{
    for n in 0 1 2 3 4; do
        ssd=/sys/kernel/config/nullb/nullb$n
        mkdir $ssd
        echo {LEG_MIB} > $ssd/size
        echo 1 > $ssd/memory_backed
        echo 4096 > $ssd/blocksize
        echo 2 > $ssd/irqmode
        echo $1 > $ssd/completion_nsec
        echo 1 > $ssd/power
        echo none > /sys/block/nullb$n/queue/scheduler
    done
    array /dev/md1 --raid-devices=2 --bitmap=none /dev/nullb0 /dev/nullb1
    array /dev/md2 --raid-devices=2 --bitmap=internal --bitmap-chunk=64K /dev/nullb2 /dev/nullb3
    sleeps md2 3600
    for device in /dev/md1 /dev/md2 /dev/nullb4; do filled $device; done
}}
no_ssds() {{
    mdadm --stop --quiet /dev/md1 /dev/md2
    for n in 0 1 2 3 4; do
        echo 0 > /sys/kernel/config/nullb/nullb$n/power
        rmdir /sys/kernel/config/nullb/nullb$n
    done
}}
clean() {{
    sleeps md2 1
    until mdadm -X /dev/nullb2 | grep -q ' 0 dirty'; do sleep 1; done
    sleeps md2 3600
}}
measure() {{ fio --output-format=terse --terse-version=3 /tmp/job; }}
"#
    )
}

/// The script: ours, md's rows, ours again, so that what changes with time falls on both.
pub(super) fn script(rounds: u64) -> String {
    let mut script = functions();
    let add = |script: &mut String, text: String| *script += &(text + "\n");
    add(&mut script, "mount -t configfs none /sys/kernel/config".into());
    add(&mut script, "mdadm --version 2>&1".into());
    add(&mut script, format!("speed - {}", rounds.div_ceil(2)));
    let ram = "array /dev/md0 --raid-devices=3 --bitmap=none /dev/ram0 --write-mostly /dev/ram1 \
               /dev/ram2
array /dev/md3 --raid-devices=1 --bitmap=none /dev/ram3
array /dev/md4 --raid-devices=1 --bitmap=internal --bitmap-chunk=64K /dev/ram4
sleeps md4 3600
for device in /dev/md0 /dev/md3 /dev/md4 /dev/ram5; do filled $device; done";
    add(&mut script, ram.into());
    let mut ssd_nanos_now = None;
    for (number, row) in ROWS.iter().enumerate() {
        let Some(md) = &row.md else { continue };
        if md.devices[0] == SSDS[0] {
            let nanos = ssd_nanos(md.bytes);
            if ssd_nanos_now.is_some_and(|now| now != nanos) {
                add(&mut script, "no_ssds".into());
            }
            if ssd_nanos_now != Some(nanos) {
                add(&mut script, format!("ssds {nanos}"));
            }
            ssd_nanos_now = Some(nanos);
        }
        if md.clean {
            // One program for each turn, since the shell waits between them.
            for round in 0..=rounds {
                for side in order(md, round) {
                    let clean = if SIDES[side] == "bitmap" { "clean\n" } else { "" };
                    let job = global(md) + &job(number, md, side, round);
                    add(&mut script, format!("{clean}cat > /tmp/job <<'.'\n{job}.\nmeasure"));
                }
            }
        } else {
            let mut jobs = global(md);
            for round in 0..=rounds {
                order(md, round).for_each(|side| jobs += &job(number, md, side, round));
            }
            add(&mut script, format!("cat > /tmp/job <<'.'\n{jobs}.\nmeasure"));
        }
    }
    if rounds > 1 {
        add(&mut script, format!("speed - {}", rounds / 2));
    }
    // A leg that was lost would make the rest faster.
    add(&mut script, "! grep '\\[U*_' /proc/mdstat".into());
    script
}

/// Sides in the order of a round: who begins changes.
fn order(md: &Md, round: u64) -> impl Iterator<Item = usize> + '_ {
    let count = SIDES.len();
    // OK to cast: a count of rounds.
    let sides = (0..count).map(move |n| (n + round as usize) % count);
    sides.filter(|side| md.devices[*side].is_some())
}

fn global(md: &Md) -> String {
    let Md { bytes, rw, tasks, requests, .. } = md;
    let io_bytes = bytes * requests;
    format!(
        "[global]\nioengine=psync\ndirect=1\nthread=1\ngtod_reduce=1\nnorandommap=1\n\
         group_reporting\nsize={VOLUME_MIB}m\nrw={rw}\nbs={bytes}\nnumjobs={tasks}\n\
         io_size={io_bytes}\n"
    )
}

/// A job; its name is the row, the side and the round.
fn job(number: usize, md: &Md, side: usize, round: u64) -> String {
    let mut job = String::new();
    let (name, device) = (SIDES[side], md.devices[side].unwrap_or_default());
    // OK to ignore: writing to a string.
    let _ = write!(job, "[{number}+{name}+{round}]\nstonewall\nrandseed={}\n", round + 1);
    let _ = writeln!(job, "filename={device}");
    job
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_does_the_same_in_each_round() {
        let script = script(2);
        let count = |text: &str| script.matches(text).count();
        assert_eq!(count("[0+alone+"), 3);
        assert_eq!(count("[0+md+"), 3);
        assert_eq!(count("[0+bitmap+"), 0);
        assert_eq!(count("[4+bitmap+2]"), 1);
        assert_eq!(count("\nspeed - 1\n"), 2);
        assert_eq!(count("clean\ncat"), 3);
        assert_eq!(count("\nssds 64992\n"), 1, "one set of SSDs for both rows of 4 KiB");
        assert_eq!(count("\nno_ssds\n"), 1);
    }

    #[test]
    fn who_begins_changes() {
        let md = ROWS[3].md.as_ref().unwrap();
        let order = |round| order(md, round).collect::<Vec<_>>();
        assert_eq!([order(0), order(1)], [[0, 1, 2], [1, 2, 0]]);
    }
}
