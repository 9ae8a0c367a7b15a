//! `Device Relocation Information`: what finds a device again when its name has changed.

use super::tabs_expanded;
use crate::name;
use crate::state::State;

/// Of all slices under these volumes, by drive; of several slices of one drive, each has its own.
pub fn of(state: &State, names: &[&str]) -> String {
    let known: Vec<&str> = state.devices.iter().map(|device| device.name.as_str()).collect();
    let mut drives: Vec<(&str, Option<&str>)> = Vec::new();
    for slice in names.iter().flat_map(|name| state.slices(name)) {
        let id = state.device(slice).and_then(|d| d.id.as_deref());
        let of_slice = (name::drive_or_slice(slice, &known), id);
        if !drives.contains(&of_slice) {
            drives.push(of_slice);
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
    use crate::state::Device;

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

    /// One line of the drive would have the identity of its first slice only.
    #[test]
    fn slices_of_one_drive_keep_their_identities() {
        let mut state = mirrored(&["d11", "d12"]);
        for (slice, old, id) in [("c0d1s3", "c0d1s0", "id1,a"), ("c0d1s4", "c1d0s0", "id1,b")] {
            let device = state.devices.iter_mut().find(|d| d.name == old).unwrap();
            *device = Device { name: slice.into(), id: Some(id.into()), ..device.clone() };
            let mut concats = state.concats.iter_mut().flat_map(|c| &mut c.rows);
            concats.find(|row| row.components == [old]).unwrap().components = vec![slice.into()];
        }
        let lines = "\
Device   Reloc  Device ID
c0d1s3   Yes    id1,a
c0d1s4   Yes    id1,b
";
        assert!(shown(&state, "metastat d10").ends_with(lines));
        assert!(shown(&state, "metastat d12").ends_with("ID\nc0d1s4   Yes    id1,b\n"));
    }
}
