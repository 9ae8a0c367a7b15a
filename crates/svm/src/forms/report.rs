//! `metastat` whole: a mirror with its submirrors, or a concat or stripe.

use super::{mirror_options, size_line, tabs_expanded};
use crate::state::{BLOCK, Concat, Row, State, Submirror, SubmirrorState, SvmMirror};

/// A volume and what it is made of.
pub fn of(state: &State, name: &str) -> String {
    if let Some(mirror) = state.mirror(name) {
        return mirror_report(state, mirror);
    }
    let Some(concat) = state.concat(name) else { return String::new() };
    format!("{name}: Concat/Stripe\n{}", concat_report(state, concat))
}

fn mirror_report(state: &State, mirror: &SvmMirror) -> String {
    let mut text = format!("{}: Mirror\n", mirror.name);
    for submirror in &mirror.submirrors {
        text += &format!("    Submirror {}: {}\n", submirror.slot, submirror.name);
        text += &format!("      State: {:<12} \n", submirror.state.of_submirror());
    }
    if let Some(percent) = mirror.resync_percent {
        text += &format!("    Resync in progress: {percent} % done\n");
    }
    text += &mirror_options(mirror);
    text += &size_line(mirror.bytes);
    for submirror in &mirror.submirrors {
        text += &submirror_report(state, mirror, submirror);
    }
    text + "\n"
}

fn submirror_report(state: &State, mirror: &SvmMirror, submirror: &Submirror) -> String {
    let name = &submirror.name;
    let mut text = format!("\n{name}: Submirror of {}\n", mirror.name);
    let concat = state.concat(name);
    if submirror.state != SubmirrorState::Unavailable || concat.is_none() {
        text += &format!("    State: {:<12} \n", submirror.state.of_submirror());
    }
    if let Some(what) = invocation(state, mirror, submirror) {
        text += &format!("    Invoke: {what}\n");
    }
    match (concat, state.mirror(name)) {
        (Some(concat), _) => text += &concat_report(state, concat),
        (None, Some(inner)) if inner.name != mirror.name => {
            text += &size_line(inner.bytes);
            text += &format!("\n{}", mirror_report(state, inner));
        }
        _ => text += &state.device(name).map(|d| size_line(d.bytes)).unwrap_or_default(),
    }
    text
}

/// What a person is to do.
fn invocation(state: &State, mirror: &SvmMirror, submirror: &Submirror) -> Option<String> {
    let name = &mirror.name;
    let slices = state.slices(&submirror.name);
    let slice = slices.first().copied().unwrap_or(&submirror.name);
    match submirror.state {
        SubmirrorState::Erred => Some(format!("metareplace {name} {slice} <new device>")),
        SubmirrorState::LastErred => Some(format!(
            "after replacing \"Maintenance\" components:\n                metareplace {name} \
             {slice} <new device>"
        )),
        SubmirrorState::ResyncPending => Some(format!("metasync {name}")),
        SubmirrorState::Offline => Some(format!("metaonline {name} {}", submirror.name)),
        _ => None,
    }
}

fn concat_report(state: &State, concat: &Concat) -> String {
    let over = state.mirrors.iter().flat_map(|m| &m.submirrors).find(|s| s.name == concat.name);
    let over = over.map(|submirror| submirror.state);
    let unavailable = concat.unavailable || over == Some(SubmirrorState::Unavailable);
    let mut text = String::new();
    if unavailable {
        text += "    State: Unavailable\n    Reconnect disk and invoke: metastat -i\n";
    }
    text += &size_line(concat.bytes);
    for (number, row) in concat.rows.iter().enumerate() {
        text += &match row.components.len() {
            0 | 1 => format!("    Stripe {number}:\n"),
            _ => {
                let blocks = row.interlace / BLOCK;
                format!("    Stripe {number}: (interlace: {blocks} blocks)\n")
            }
        };
        text +=
            &row_report(state, row, over.map(|s| if unavailable { "-" } else { s.of_component() }));
    }
    text += "\n";
    let parts = concat.rows.iter().flat_map(|r| &r.components);
    let volumes = parts.filter(|p| state.has_volume(p) && **p != concat.name);
    text + &volumes.map(|part| of(state, part)).collect::<String>()
}

/// The table of a row; with states where the concat is a submirror.
fn row_report(state: &State, row: &Row, component_state: Option<&str>) -> String {
    let longest = row.components.iter().map(|c| c.chars().count()).max().unwrap_or(0);
    let width = longest.max("Device".len()) + 2;
    let mut lines = vec![match component_state {
        Some(_) => format!(
            "\t{:<width$} {:<12} {:>5} {:>12} {:>5} {}",
            "Device", "Start Block", "Dbase", "State", "Reloc", "Hot Spare"
        ),
        None => format!("\t{:<width$} {:<12} {:<5}\t{}", "Device", "Start Block", "Dbase", "Reloc"),
    }];
    for component in &row.components {
        let device = state.device(component);
        let reloc = if device.is_some_and(|d| d.id.is_some()) { "Yes" } else { "No " };
        lines.push(match component_state {
            Some(state) => {
                format!("\t{component:<width$} {:>8}     {:<5} {state:>12} {reloc:>5} ", 0, "No")
            }
            None => format!("\t{component:<width$} {:>8}     {:<5}\t{reloc}", 0, "No"),
        });
    }
    lines.iter().map(|line| tabs_expanded(line) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{machine, mirrored, shown};
    use crate::command::ReadOption;
    use crate::state::SubmirrorState;

    /// Blanks at the ends of lines do not show, and the page has lost some of them.
    fn trimmed(text: &str) -> String {
        text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
    }

    #[test]
    fn a_concat_as_in_the_transcript() {
        let mut state = machine();
        state.concats[2].bytes = 471_000 * 512;
        let said = "\
d13: Concat/Stripe
    Size: 471000 blocks (229 MB)
    Stripe 0:
        Device     Start Block  Dbase   Reloc
        c5t0d0s0          0     No      No

Device Relocation Information:
Device   Reloc  Device ID
c5t0d0   No     -
";
        assert_eq!(trimmed(&shown(&state, "metastat d13")), said);
    }

    #[test]
    fn a_mirror_that_needs_maintenance_as_in_the_transcript() {
        let mut state = mirrored(&["d13", "d11", "d12"]);
        state.mirrors[0].read = ReadOption::First;
        state.mirrors[0].submirrors[0].state = SubmirrorState::Erred;
        let said = "\
d10: Mirror
    Submirror 0: d13
      State: Needs maintenance
    Submirror 1: d11
      State: Okay
    Submirror 2: d12
      State: Okay
    Pass: 1
    Read option: first (-r)
    Write option: parallel (default)
    Size: 460800 blocks (225 MB)

d13: Submirror of d10
    State: Needs maintenance
    Invoke: metareplace d10 c5t0d0s0 <new device>
    Size: 460800 blocks (225 MB)
    Stripe 0:
        Device     Start Block  Dbase        State Reloc Hot Spare
        c5t0d0s0          0     No     Maintenance   No


d11: Submirror of d10
    State: Okay
    Size: 465885 blocks (227 MB)
    Stripe 0:
        Device   Start Block  Dbase        State Reloc Hot Spare
        c0d1s0          0     No            Okay   Yes


d12: Submirror of d10
    State: Okay
    Size: 465885 blocks (227 MB)
    Stripe 0:
        Device   Start Block  Dbase        State Reloc Hot Spare
        c1d0s0          0     No            Okay   Yes


Device Relocation Information:
Device   Reloc  Device ID
c5t0d0   No     -
c0d1     Yes    id1,cmdk@AQEMU_HARDDISK=QM00002
c1d0     Yes    id1,cmdk@AQEMU_HARDDISK=QM00003
";
        assert_eq!(trimmed(&shown(&state, "metastat")), said);
        // The blanks that terminals do not show are as there, too.
        assert!(shown(&state, "metastat").contains("      State: Okay         \n"));
    }

    #[test]
    fn what_to_do_depends_on_the_state() {
        let mut state = mirrored(&["d11", "d12"]);
        let mut said = |of: SubmirrorState| {
            state.mirrors[0].submirrors[1].state = of;
            trimmed(&shown(&state, "metastat -q d10"))
        };
        let last = said(SubmirrorState::LastErred);
        assert!(
            last.contains("\"Maintenance\" components:\n                metareplace d10 c1d0s0")
        );
        assert!(last.contains("  Last Erred   Yes\n"), "{last}");
        assert!(said(SubmirrorState::ResyncPending).contains("    Invoke: metasync d10\n"));
        assert!(said(SubmirrorState::Offline).contains("    Invoke: metaonline d10 d12\n"));
        let gone = said(SubmirrorState::Unavailable);
        let expected =
            "    State: Unavailable\n    Reconnect disk and invoke: metastat -i\n    Size";
        assert!(gone.contains("    Submirror 1: d12\n      State: Unavailable\n"), "{gone}");
        assert!(gone.contains(expected), "{gone}");
        state.mirrors[0].submirrors[1].state = SubmirrorState::Resyncing;
        state.mirrors[0].resync_percent = Some(15);
        let busy = trimmed(&shown(&state, "metastat -q d10"));
        let expected = "      State: Resyncing\n    Resync in progress: 15 % done\n    Pass: 1\n";
        assert!(busy.contains(expected), "{busy}");
        assert!(!busy.contains("Invoke"), "{busy}");
    }

    #[test]
    fn a_stripe_prints_its_interlace() {
        let mut state = machine();
        state.concats[0].rows[0].components.push("c1d0s0".into());
        state.concats[0].rows[0].interlace = 64 << 10;
        let said = shown(&state, "metastat -q d11");
        assert!(said.contains("    Stripe 0: (interlace: 128 blocks)\n"), "{said}");
        assert!(said.contains("        c1d0s0          0     No        Yes\n"), "{said}");
    }
}
