//! `metastat -c`: a line for each volume, indented below what it is part of.

use super::rounded;
use crate::state::{Concat, State, SubmirrorState, SvmMirror};

/// Columns of a name.
const NAME: usize = 20;

/// A volume and what it is made of.
pub fn of(state: &State, name: &str, indent: usize) -> String {
    let mirror = state.mirror(name).map(|mirror| mirror_line(mirror, indent));
    let own = mirror.or(state.concat(name).map(|concat| concat_line(state, concat, indent)));
    let parts = state.parts(name).into_iter().flatten().filter(|part| *part != name);
    own.into_iter().chain(parts.map(|part| of(state, part, indent + 4))).collect()
}

fn entry(indent: usize, name: &str, kind: char, bytes: u64) -> String {
    let width = NAME.saturating_sub(indent);
    let size = rounded(bytes).replace(' ', "");
    format!("{:indent$}{name:<width$} {kind} {size:>6}", "")
}

fn mirror_line(mirror: &SvmMirror, indent: usize) -> String {
    let mut line = entry(indent, &mirror.name, 'm', mirror.bytes);
    for submirror in &mirror.submirrors {
        line += &format!(" {}", submirror.name);
        let remark = match submirror.state {
            SubmirrorState::Okay => continue,
            SubmirrorState::Resyncing => match mirror.resync_percent {
                Some(percent) => format!("resync-{percent}%"),
                None => "resync".into(),
            },
            SubmirrorState::Unavailable => "unavail".into(),
            _ => "maint".into(),
        };
        line += &format!(" ({remark})");
    }
    line + "\n"
}

fn concat_line(state: &State, concat: &Concat, indent: usize) -> String {
    let mut line = entry(indent, &concat.name, 's', concat.bytes);
    let over = state.mirrors.iter().flat_map(|m| &m.submirrors).find(|s| s.name == concat.name);
    let remark = match over.map(|s| s.state) {
        Some(SubmirrorState::Erred) => " (maint)",
        Some(SubmirrorState::LastErred) => " (last-erred)",
        Some(SubmirrorState::Resyncing) => " (resyncing)",
        _ if concat.unavailable => " (unavail)",
        _ => "",
    };
    for component in concat.rows.iter().flat_map(|r| &r.components) {
        line += &format!(" {component}{remark}");
    }
    line + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::tests::{mirrored, shown};
    use crate::state::SubmirrorState;

    #[test]
    fn a_line_for_each() {
        let mut state = mirrored(&["d13", "d11", "d12"]);
        let said = "\
d10                  m  225MB d13 d11 d12
    d13              s  225MB c5t0d0s0
    d11              s  227MB c0d1s0
    d12              s  227MB c1d0s0
";
        assert_eq!(shown(&state, "metastat -c"), said);
        state.mirrors[0].resync_percent = Some(15);
        state.mirrors[0].submirrors[0].state = SubmirrorState::Resyncing;
        state.mirrors[0].submirrors[2].state = SubmirrorState::Erred;
        let said = shown(&state, "metastat -c d10");
        assert!(said.contains(" d13 (resync-15%) d11 d12 (maint)\n"), "{said}");
        assert!(said.contains(" c1d0s0 (maint)\n"), "{said}");
    }
}
