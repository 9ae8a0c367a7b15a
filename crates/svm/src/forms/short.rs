//! `metastat -p`: command lines of metainit.

use crate::state::{BLOCK, Concat, State, SvmMirror};

/// A volume, and what it is made of.
pub fn of(state: &State, name: &str) -> String {
    let own = state.mirror(name).map(mirror).or(state.concat(name).map(concat));
    let parts = state.parts(name).into_iter().flatten().filter(|part| *part != name);
    let under = parts.map(|part| of(state, part));
    own.into_iter().chain(under).collect()
}

fn mirror(mirror: &SvmMirror) -> String {
    let mut words = vec![mirror.name.as_str(), "-m"];
    words.extend(mirror.submirrors.iter().map(|s| s.name.as_str()));
    words.extend(mirror.read.letter());
    words.extend(mirror.write.letter());
    format!("{} {}\n", words.join(" "), mirror.pass)
}

fn concat(concat: &Concat) -> String {
    let rows = concat.rows.iter().map(|row| {
        let interlace = match row.components.len() {
            0 | 1 => String::new(),
            _ => format!(" -i {}b", row.interlace / BLOCK),
        };
        format!(" {} {}{interlace}", row.components.len(), row.components.join(" "))
    });
    // A row a line, the lines joined as a shell joins them.
    let rows: Vec<String> = rows.collect();
    format!("{} {}{}\n", concat.name, concat.rows.len(), rows.join(" \\\n\t"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{machine, mirrored, shown};
    use crate::command::{ReadOption, WriteOption};
    use crate::state::Row;

    #[test]
    fn as_in_the_transcript() {
        let state = mirrored(&["d11", "d12"]);
        let two = "d10 -m d11 d12 1\nd11 1 1 c0d1s0\nd12 1 1 c1d0s0\n";
        assert_eq!(shown(&state, "metastat -p d10"), two);
        // Without a name also what is in no mirror.
        assert_eq!(shown(&state, "metastat -p"), format!("{two}d13 1 1 c5t0d0s0\n"));
        let mut three = mirrored(&["d13", "d12", "d11"]);
        three.mirrors[0].read = ReadOption::First;
        three.mirrors[0].write = WriteOption::Serial;
        let said = "\
d10 -m d13 d12 d11 -r -S 1
d13 1 1 c5t0d0s0
d12 1 1 c1d0s0
d11 1 1 c0d1s0
";
        assert_eq!(shown(&three, "metastat -p d10"), said);
    }

    #[test]
    fn stripes_and_rows() {
        let mut state = machine();
        let row = |names: &[&str]| Row {
            components: names.iter().map(|n| (*n).to_owned()).collect(),
            interlace: 32 << 10,
        };
        state.concats[0].rows = vec![row(&["a", "b"]), row(&["c"])];
        assert_eq!(shown(&state, "metastat -p d11"), "d11 2 2 a b -i 64b \\\n\t 1 c\n");
    }
}
