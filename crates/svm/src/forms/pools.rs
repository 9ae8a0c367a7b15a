//! `metahs -i`: the hot spares of mirrors.

use super::tabs_expanded;
use crate::state::{BLOCK, State, SvmMirror};

/// Hot spares of these mirrors.
pub fn pools(state: &State, mirrors: &[&SvmMirror]) -> String {
    mirrors.iter().map(|mirror| pool(state, mirror)).collect()
}

fn pool(state: &State, mirror: &SvmMirror) -> String {
    let name = &mirror.name;
    let count = mirror.spares.len();
    if count == 0 {
        return format!("{name}: is empty\n\n");
    }
    let plural = if count == 1 { "" } else { "s" };
    let longest = mirror.spares.iter().map(|s| s.chars().count()).max().unwrap_or(0);
    let width = longest.max("Device".len()) + 2;
    let mut text = format!("{name}: {count} hot spare{plural}\n");
    let head = format!("\t{:<width$} {:<11} {:<16} {}", "Device", "Status", "Length", "Reloc");
    text += &(tabs_expanded(&head) + "\n");
    for spare in &mirror.spares {
        let device = state.device(spare);
        let (status, blocks) = match device {
            Some(device) => ("Available", format!("{} blocks", device.bytes / BLOCK)),
            None => ("Unavailable", "-".to_owned()),
        };
        let reloc = if device.is_some_and(|d| d.id.is_some()) { "Yes" } else { "No" };
        let line = format!("\t{spare:<width$} {status:<11} {blocks:<16} {reloc}");
        text += &(tabs_expanded(&line) + "\n");
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::tests::mirrored;
    use super::*;

    #[test]
    fn spares_and_none() {
        let mut state = mirrored(&["d11"]);
        assert_eq!(pools(&state, &[&state.mirrors[0]]), "d10: is empty\n\n");
        state.mirrors[0].spares = vec!["c1d0s0".into(), "gone".into()];
        let said = "\
d10: 2 hot spares
        Device   Status      Length           Reloc
        c1d0s0   Available   465885 blocks    Yes
        gone     Unavailable -                No

";
        assert_eq!(pools(&state, &[&state.mirrors[0]]), said);
    }
}
