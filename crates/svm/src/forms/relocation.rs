//! `Device Relocation Information`: what finds a device again when its name has changed.

use super::tabs_expanded;
use crate::name;
use crate::state::State;

/// Of all slices under these volumes.
pub fn of(state: &State, names: &[&str]) -> String {
    let mut drives: Vec<(&str, Option<&str>)> = Vec::new();
    for slice in names.iter().flat_map(|name| state.slices(name)) {
        let id = state.device(slice).and_then(|d| d.id.as_deref());
        let drive = name::drive(slice);
        if !drives.iter().any(|(known, _)| *known == drive) {
            drives.push((drive, id));
        }
    }
    let width = drives.iter().map(|(drive, _)| drive.chars().count()).max().unwrap_or(0) + 2;
    let line = |name: &str, reloc: &str, id: &str| {
        tabs_expanded(&format!("{name:<width$} {reloc:<5}\t{id}")) + "\n"
    };
    let mut text = "Device Relocation Information:\n".to_owned();
    text += &line("Device  ", "Reloc", "Device ID");
    for (drive, id) in drives {
        text += &line(drive, if id.is_some() { "Yes" } else { "No" }, id.unwrap_or("-"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::tests::{mirrored, shown};

    #[test]
    fn as_in_the_transcript() {
        let said = shown(&mirrored(&["d12", "d13", "d11"]), "metastat d10");
        let (_, said) = said.split_at(said.find("Device Relocation").unwrap());
        let expected = "\
Device Relocation Information:
Device   Reloc  Device ID
c1d0     Yes    id1,cmdk@AQEMU_HARDDISK=QM00003
c5t0d0   No     -
c0d1     Yes    id1,cmdk@AQEMU_HARDDISK=QM00002
";
        assert_eq!(said, expected);
        assert!(!shown(&mirrored(&["d11"]), "metastat -q d10").contains("Relocation"));
    }
}
