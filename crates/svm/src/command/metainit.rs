//! metainit(1M): makes concats, stripes and mirrors of one submirror.

use super::error::{CommandError, Misuse, usage, wrong};
use super::mirror_options::{ReadOption, WriteOption, pass};
use super::scaled;
use crate::getopt::options;
use crate::name;
use crate::state::BLOCK;

const USAGE: &str = "\
usage:  metainit [-n] [-f] concat/stripe numstripes
                width component... [-i interlace]
                [width component... [-i interlace]]
        metainit [-n] [-f] mirror -m submirror
                [read_options] [write_options] [pass_num]

Options:
-n      check only, make nothing
-f      also over a file system, or the label of another volume
-i      interlace: 16 blocks to 100 megabytes (b, k or m); 512k without it

Mirror options:
-g | -r geometric, or the first submirror; all in turn without them
-S      serial writes
0-9     pass number
";

/// Interlace that is not said.
const INTERLACE: u64 = 512 << 10;
/// The smallest and the largest.
const INTERLACES: std::ops::RangeInclusive<u64> = 16 * BLOCK..=100 << 20;

/// A volume that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Init {
    /// Its name.
    pub name: String,
    /// Also over what is on the components.
    pub force: bool,
    /// Only see whether it could be made.
    pub check_only: bool,
    /// What it is.
    pub what: InitVolume,
}

/// A new volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InitVolume {
    /// Rows, one after the other.
    Concat(Vec<NewRow>),
    /// A mirror.
    Mirror {
        /// The first submirror.
        submirror: String,
        /// How it reads.
        read: ReadOption,
        /// How it writes.
        write: WriteOption,
        /// When it is resynced.
        pass: u8,
    },
}

/// Components of which pieces are taken in turn, or one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRow {
    /// Their names.
    pub components: Vec<String>,
    /// Bytes of a piece.
    pub interlace: u64,
}

pub(super) fn parse(words: &[String]) -> Result<Init, Misuse> {
    let (given, rest) = options("hfnrs:a", USAGE, words)?;
    let (mut force, mut check_only) = (false, false);
    for option in given {
        match option.letter {
            'f' => force = true,
            'n' => check_only = true,
            // Volumes are assembled when the host starts, and it keeps no table that a person
            // writes.
            letter => refuse!(
                format!("-{letter}"),
                "there is no md.tab here: a host keeps its volumes, and assembles them \
                            when it starts"
            ),
        }
    }
    let Some((first, rest)) = rest.split_first() else { return Err(usage(USAGE)) };
    let name = name::plain(first)?;
    let what = match rest.split_first() {
        None => refuse!(name, "there is no md.tab here: say what it is to be made of"),
        Some((option, rest)) if option == "-m" => mirror(&name, rest)?,
        Some((option, _)) if option == "-r" => refuse!(name, "RAID-5 volumes are not supported"),
        Some((option, _)) if option == "-p" => refuse!(name, "soft partitions are not supported"),
        Some((number, _)) if is_too_large(number) => refuse!(name, "{number}: too many stripes"),
        Some((number, rest)) => match number.parse::<u32>() {
            Ok(rows) => concat(&name, rows, rest)?,
            Err(_) if number.starts_with('-') => return Err(usage(USAGE)),
            Err(_) => refuse!(
                name,
                "hot spare pools are not supported: a hot spare is given to a mirror \
                            (metahs -a MIRROR COMPONENT)"
            ),
        },
    };
    Ok(Init { name, force, check_only, what })
}

/// What follows `NAME -m`.
fn mirror(name: &str, words: &[String]) -> Result<InitVolume, Misuse> {
    let (mut submirrors, mut numbers) = (Vec::new(), Vec::new());
    let (mut read, mut write) = (ReadOption::RoundRobin, WriteOption::Parallel);
    for word in words {
        match word.strip_prefix('-') {
            Some("") | None if word.len() == 1 && word.as_bytes()[0].is_ascii_digit() => {
                numbers.push(pass(word)?);
            }
            Some(letters) if !letters.is_empty() => {
                for letter in letters.chars() {
                    let reads = match letter {
                        'g' => ReadOption::Geometric,
                        'r' => ReadOption::First,
                        'S' => {
                            write = WriteOption::Serial;
                            continue;
                        }
                        _ => {
                            let hint = CommandError::of(format!("illegal option -- {letter}"));
                            return Err(wrong(hint, USAGE));
                        }
                    };
                    if read != ReadOption::RoundRobin && read != reads {
                        refuse!(name, "-g and -r exclude each other");
                    }
                    read = reads;
                }
            }
            _ if numbers.is_empty() => submirrors.push(name::plain(word)?),
            // Behind the pass number nothing follows.
            _ => return Err(usage(USAGE)),
        }
    }
    let pass = match numbers[..] {
        [] => 1,
        [pass] => pass,
        _ => return Err(usage(USAGE)),
    };
    match <[String; 1]>::try_from(submirrors) {
        Ok([submirror]) => Ok(InitVolume::Mirror { submirror, read, write, pass }),
        Err(none) if none.is_empty() => refuse!(name, "not enough submirrors specified"),
        Err(several) => refuse!(
            name,
            "a mirror is made with one submirror: nothing says that {} hold the same; attach \
                 the others (metattach {name} {})",
            several.join(", "),
            several[1]
        ),
    }
}

/// A number that is too large to be one of stripes.
fn is_too_large(word: &str) -> bool {
    name::is_number(word) && word.parse::<u32>().is_err()
}

/// What follows `NAME NUMSTRIPES`.
fn concat(name: &str, rows: u32, words: &[String]) -> Result<InitVolume, Misuse> {
    let refused = |what: &str| Misuse::from(CommandError::about(name, what));
    if rows == 0 {
        return Err(refused("not enough stripes specified"));
    }
    let (mut found, mut rest) = (Vec::new(), words);
    while let Some((width, behind)) = rest.split_first() {
        if found.len() == rows as usize {
            break;
        }
        let Some(width) = width.parse::<usize>().ok().filter(|w| *w > 0) else {
            return Err(refused(&format!("{width}: invalid width: how many components?")));
        };
        if behind.len() < width || behind[..width].iter().any(|word| word.starts_with('-')) {
            return Err(refused("not enough components specified"));
        }
        let components = name::all_plain(&behind[..width])?;
        rest = &behind[width..];
        let mut interlace = INTERLACE;
        if let [option, size, behind @ ..] = rest
            && option == "-i"
        {
            interlace = bytes(name, size)?;
            rest = behind;
        }
        found.push(NewRow { components, interlace });
    }
    if found.len() < rows as usize {
        return Err(refused("not enough stripes specified"));
    }
    match rest.first().map(String::as_str) {
        None => {}
        Some("-h") => {
            let what = "hot spare pools are not supported: a hot spare is given to a mirror \
                        (metahs -a MIRROR COMPONENT)";
            return Err(refused(what));
        }
        Some("-i") => return Err(usage(USAGE)),
        Some(word) => {
            return Err(refused(&format!("{word}: more than {rows} stripes were described")));
        }
    }
    twice(name, &found)?;
    Ok(InitVolume::Concat(found))
}

/// Nothing is a component twice.
fn twice(name: &str, rows: &[NewRow]) -> Result<(), CommandError> {
    let all: Vec<&String> = rows.iter().flat_map(|row| &row.components).collect();
    for (at, component) in all.iter().enumerate() {
        if all[..at].contains(component) {
            refuse!(
                component.as_str(),
                "has appeared more than once in the specification of {name}"
            );
        }
    }
    Ok(())
}

/// An interlace: `32k`, `16b`, `1m`; blocks without a letter.
fn bytes(name: &str, text: &str) -> Result<u64, CommandError> {
    let bytes = scaled(text, BLOCK).filter(|bytes| INTERLACES.contains(bytes));
    bytes.ok_or_else(|| {
        let what = format!("{text}: invalid interlace: 16b to 100m, with b, k or m");
        CommandError::about(name, what)
    })
}

#[cfg(test)]
mod tests {
    use super::super::Command;
    use super::super::tests::{is_usage, line, refusal};
    use super::*;

    fn init(text: &str) -> Init {
        match line(text) {
            Ok(Command::Init(init)) => init,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn row(components: &[&str], interlace: u64) -> NewRow {
        NewRow { components: components.iter().map(|c| (*c).to_owned()).collect(), interlace }
    }

    #[test]
    fn concats_and_stripes() {
        let one = init("metainit d11 1 1 c0d1s0");
        assert_eq!(one.name, "d11");
        assert_eq!(one.what, InitVolume::Concat(vec![row(&["c0d1s0"], 512 << 10)]));
        let path = init("metainit -fn d11 1 1 /dev/dsk/c0d1s0");
        assert!(path.force && path.check_only && path.what == one.what);
        let stripe = init("metainit d1 1 2 a b -i 32K");
        assert_eq!(stripe.what, InitVolume::Concat(vec![row(&["a", "b"], 32 << 10)]));
        let both = init("metainit d1 2 2 a b -i 16b 1 c");
        let rows = vec![row(&["a", "b"], 8192), row(&["c"], 512 << 10)];
        assert_eq!(both.what, InitVolume::Concat(rows));
    }

    #[test]
    fn mirrors() {
        let made = |text| match init(text).what {
            InitVolume::Mirror { submirror, read, write, pass } => {
                format!("{submirror} {} {} {pass}", read.name(), write.name())
            }
            InitVolume::Concat(_) => panic!("{text}"),
        };
        assert_eq!(made("metainit d10 -m d11"), "d11 roundrobin parallel 1");
        assert_eq!(made("metainit d10 -m d11 -r -S 4"), "d11 first serial 4");
        assert_eq!(made("metainit d10 -m d11 -gS 0"), "d11 geometric serial 0");
        assert_eq!(made("metainit d10 -m /dev/md/dsk/d11 9"), "d11 roundrobin parallel 9");
    }

    #[test]
    fn what_cannot_be_made_is_said() {
        for (text, said) in [
            ("metainit d10 -m", "d10: not enough submirrors specified"),
            ("metainit d10 -m d11 -g -r", "d10: -g and -r exclude each other"),
            ("metainit d1 1 2 a", "d1: not enough components specified"),
            ("metainit d1 1 2 a -i 16k", "d1: not enough components specified"),
            ("metainit d1 2 1 a", "d1: not enough stripes specified"),
            ("metainit d1 0", "d1: not enough stripes specified"),
            ("metainit d1 99999999999999999999 1 c", "d1: 99999999999999999999: too many stripes"),
            ("metainit d1 1 0 a", "d1: 0: invalid width: how many components?"),
            ("metainit d1 1 1 a b", "d1: b: more than 1 stripes were described"),
            ("metainit d1 1 2 a a", "a: has appeared more than once in the specification of d1"),
            ("metainit d1 -r a b c", "d1: RAID-5 volumes are not supported"),
            ("metainit d1 -p c0d0s0 1g", "d1: soft partitions are not supported"),
            ("metainit d\u{e9} 1 1 a", "d\u{e9}: illegal name"),
        ] {
            assert_eq!(refusal(text), said);
        }
        for bad in ["15b", "101m", "k", "-1k", "+16k", "99999999999999999999m", "1\u{e9}", ""] {
            let words = ["d1", "1", "2", "a", "b", "-i", bad].map(str::to_owned);
            let Err(Misuse::Refused(said)) = parse(&words) else { panic!("{bad}") };
            assert!(said.text.contains("invalid interlace"), "{said}");
        }
        assert!(refusal("metainit d10 -m d11 d12").contains("metattach d10 d12"));
        assert!(refusal("metainit hsp001 c1d0s0").contains("metahs -a"));
        assert!(refusal("metainit d1 1 1 a -h hsp001").contains("metahs -a"));
        for text in ["metainit d10", "metainit -a", "metainit -r"] {
            assert!(refusal(text).contains("md.tab"), "{text}");
        }
        for text in ["metainit", "metainit d10 -m d11 -x", "metainit d10 -m d11 1 d12"] {
            assert!(is_usage(text), "{text}");
        }
    }
}
