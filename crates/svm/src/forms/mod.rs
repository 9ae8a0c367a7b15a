//! Output forms, as Solaris 10 printed them: columns, words, and blanks at the ends of lines, so
//! that what reads them there reads them here.

mod concise;
mod pools;
mod relocation;
mod replicas;
mod report;
mod short;

use crate::command::Metastat;
use crate::name;
use crate::state::{BLOCK, State, SvmMirror};

pub use pools::pools;
pub use replicas::{ramdisks, replicas};

/// A terabyte, from which on `metastat -B` shows a volume.
const LARGE: u64 = 1 << 40;

/// What `metastat` prints for these names, or for everything; and the names that are no volumes.
pub fn stat(state: &State, stat: &Metastat) -> (String, Vec<String>) {
    let (tops, unknown): (Vec<&str>, Vec<&str>) = match stat.names.is_empty() {
        true => (tops(state), Vec::new()),
        false => stat.names.iter().map(String::as_str).partition(|name| state.has_volume(name)),
    };
    let shown: Vec<&str> = tops.into_iter().filter(|name| is_shown(state, stat, name)).collect();
    let mut text = String::new();
    for name in &shown {
        text += &match (stat.short, stat.concise) {
            (true, _) => short::of(state, name),
            (_, true) => concise::of(state, name, 0),
            _ => report::of(state, name),
        };
    }
    if !(stat.short || stat.concise || stat.quiet || shown.is_empty() || !unknown.is_empty()) {
        text += &relocation::of(state, &shown);
    }
    (text, unknown.into_iter().map(str::to_owned).collect())
}

/// Volumes that are no part of another one: mirrors first.
fn tops(state: &State) -> Vec<&str> {
    let mirrors: Vec<&str> = state.mirrors.iter().map(|m| m.name.as_str()).collect();
    let concats: Vec<&str> = state.concats.iter().map(|c| c.name.as_str()).collect();
    let mut tops: Vec<&str> = Vec::new();
    for mut names in [mirrors, concats] {
        names.retain(|name| state.parent(name).is_none());
        names.sort_by_key(|name| name::order(name));
        tops.append(&mut names);
    }
    tops
}

fn is_shown(state: &State, stat: &Metastat, name: &str) -> bool {
    let bytes = state.mirror(name).map(|m| m.bytes).or(state.concat(name).map(|c| c.bytes));
    let large = bytes.is_some_and(|bytes| bytes > LARGE);
    (large || !stat.large_only) && !(stat.named_only && name::is_numbered(name))
}

/// What `metaparam` prints of a mirror.
pub fn params(mirror: &SvmMirror) -> String {
    format!("{}: Mirror current parameters are:\n{}", mirror.name, mirror_options(mirror))
}

/// Pass, read option, write option.
fn mirror_options(mirror: &SvmMirror) -> String {
    let (read, write) = (&mirror.read, &mirror.write);
    let of = |letter: Option<&'static str>, ours: bool| match letter {
        _ if ours => "Steadfast",
        Some(letter) => letter,
        None => "default",
    };
    let read_is_ours = matches!(read, crate::command::ReadOption::Other(_));
    let write_is_ours = matches!(write, crate::command::WriteOption::Other(_));
    format!(
        "    Pass: {}\n    Read option: {} ({})\n    Write option: {} ({})\n",
        mirror.pass,
        read.name(),
        of(read.letter(), read_is_ours),
        write.name(),
        of(write.letter(), write_is_ours),
    )
}

/// `    Size: 471000 blocks (229 MB)`.
fn size_line(bytes: u64) -> String {
    format!("    Size: {} blocks ({})\n", bytes / BLOCK, rounded(bytes))
}

/// Bytes in the largest unit that is not more than they are; with a digit behind the point below
/// ten.
fn rounded(bytes: u64) -> String {
    const UNITS: [&str; 7] = [" ", "K", "M", "G", "T", "P", "E"];
    let (mut unit, mut whole, mut before) = (0, bytes, 0);
    while whole >= 1024 && unit + 1 < UNITS.len() {
        unit += 1;
        before = whole;
        whole /= 1024;
    }
    match before > 0 && whole < 10 {
        true => format!("{:.1} {}B", before as f64 / 1024.0, UNITS[unit]),
        false => format!("{whole} {}B", UNITS[unit]),
    }
}

/// A line in which tabulators stand at every eighth column.
fn tabs_expanded(line: &str) -> String {
    let mut text = String::new();
    for piece in line.split_inclusive('\t') {
        match piece.strip_suffix('\t') {
            Some(before) => {
                text += before;
                let columns = text.chars().count();
                text.extend(std::iter::repeat_n(' ', 8 - columns % 8));
            }
            None => text += piece,
        }
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::command::{Command, parse};
    use crate::state::{Concat, Device, Row, Submirror, SubmirrorState};

    /// The transcript's machine: two disks and a RAM disk of these sizes in blocks.
    pub fn machine() -> State {
        let device = |name: &str, blocks: u64, id: Option<&str>| Device {
            name: name.into(),
            bytes: blocks * BLOCK,
            ram_disk: id.is_none().then(|| "testdisk".to_owned()),
            id: id.map(str::to_owned),
        };
        let concat = |name: &str, component: &str, blocks: u64| Concat {
            name: name.into(),
            bytes: blocks * BLOCK,
            rows: vec![Row { components: vec![component.into()], interlace: 512 << 10 }],
            unavailable: false,
        };
        State {
            devices: vec![
                device("c0d1s0", 465_885, Some("id1,cmdk@AQEMU_HARDDISK=QM00002")),
                device("c1d0s0", 465_885, Some("id1,cmdk@AQEMU_HARDDISK=QM00003")),
                device("c5t0d0s0", 471_040, None),
            ],
            concats: vec![
                concat("d11", "c0d1s0", 465_885),
                concat("d12", "c1d0s0", 465_885),
                concat("d13", "c5t0d0s0", 460_800),
            ],
            ..State::default()
        }
    }

    /// A mirror over it, in this order.
    pub fn mirrored(submirrors: &[&str]) -> State {
        let of = |(slot, name): (usize, &&str)| Submirror {
            slot,
            name: (*name).into(),
            state: SubmirrorState::Okay,
        };
        let mirror = SvmMirror {
            name: "d10".into(),
            bytes: 460_800 * BLOCK,
            submirrors: submirrors.iter().enumerate().map(of).collect(),
            pass: 1,
            ..SvmMirror::default()
        };
        State { mirrors: vec![mirror], ..machine() }
    }

    /// What a command line of metastat prints.
    pub fn shown(state: &State, line: &str) -> String {
        let words: Vec<String> = line.split_whitespace().skip(1).map(str::to_owned).collect();
        match parse("metastat", &words) {
            Ok(Command::Stat(stat)) => super::stat(state, &stat).0,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn sizes_are_rounded_as_metastat_does() {
        for (blocks, said) in [
            (471_000, "229 MB"),
            (460_800, "225 MB"),
            (8_392_080, "4.0 GB"),
            (1_027_216, "501 MB"),
            (51_314_418, "24 GB"),
            (1, "512  B"),
            (2, "1.0 KB"),
        ] {
            assert_eq!(rounded(blocks * BLOCK), said);
        }
        assert_eq!(rounded(u64::MAX), "15 EB");
    }

    #[test]
    fn parameters_as_in_the_transcript() {
        let mut state = mirrored(&["d11", "d12"]);
        let default = "\
d10: Mirror current parameters are:
    Pass: 1
    Read option: roundrobin (default)
    Write option: parallel (default)
";
        assert_eq!(params(&state.mirrors[0]), default);
        state.mirrors[0].read = crate::command::ReadOption::First;
        state.mirrors[0].write = crate::command::WriteOption::Serial;
        let said = params(&state.mirrors[0]);
        assert!(said.contains("    Read option: first (-r)\n    Write option: serial (-S)\n"));
        state.mirrors[0].read = crate::command::ReadOption::Other("preferred:2".into());
        assert!(params(&state.mirrors[0]).contains("Read option: preferred:2 (Steadfast)"));
    }

    #[test]
    fn names_that_are_no_volumes_are_distinguished() {
        let state = mirrored(&["d11", "d12"]);
        let names = vec!["d12".to_owned(), "c0d1s0".to_owned(), "d99".to_owned()];
        let (text, unknown) = stat(&state, &Metastat { names, ..Metastat::default() });
        assert!(text.starts_with("d12: Concat/Stripe\n"), "{text}");
        assert!(!text.contains("Relocation"), "{text}");
        assert_eq!(unknown, ["c0d1s0", "d99"]);
    }

    #[test]
    fn large_and_named_volumes_only() {
        let mut state = mirrored(&["d11", "d12"]);
        assert_eq!(shown(&state, "metastat -B"), "");
        assert_eq!(shown(&state, "metastat -D"), "");
        state.mirrors[0].bytes = (1 << 40) + 1;
        state.concats[2].name = "fast".into();
        assert!(shown(&state, "metastat -pB").starts_with("d10 -m"));
        assert_eq!(shown(&state, "metastat -pD"), "fast 1 1 c5t0d0s0\n");
    }
}
