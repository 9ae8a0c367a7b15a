//! `metadb`, where the state is kept; and the list of RAM disks.

use super::tabs_expanded;
use crate::state::State;

/// What the flags mean, behind `metadb -i`.
const FLAGS: &str = "\
 a - replica is active: changes of the state are written to it
 u - replica is up to date
 W - the device it is on is not there, or not believed
";

/// The places on the devices where labels and region maps lie, as `metadb` lists its replicas.
pub fn replicas(state: &State, explain: bool) -> String {
    let mut text = String::new();
    for replica in &state.replicas {
        if text.is_empty() {
            text += &(tabs_expanded("\tflags\t\tfirst blk\tblock count") + "\n");
        }
        let flags = if replica.active { "     a    u " } else { "          W" };
        let line =
            format!("{flags}\t{}\t\t{}\t\t{}", replica.first_block, replica.blocks, replica.on);
        text += &(tabs_expanded(&line) + "\n");
    }
    if explain && !text.is_empty() {
        text += FLAGS;
    }
    text
}

/// RAM disks, as `ramdiskadm` lists them. `folder` is where they are files.
pub fn ramdisks(state: &State, folder: &str) -> String {
    let mut text = String::new();
    for device in &state.devices {
        let Some(name) = &device.ram_disk else { continue };
        if text.is_empty() {
            text += &format!("{:<50} {:>15}  Removable\n", "Block Device", "Size");
        }
        let path = format!("{folder}/{name}");
        text += &format!("{path:<50} {:>15}    Yes\n", device.bytes);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::tests::machine;
    use super::*;
    use crate::state::Replica;

    #[test]
    fn places_of_labels() {
        let mut state = machine();
        assert_eq!(replicas(&state, true), "");
        let replica = |on: &str, first_block, active| Replica {
            on: on.into(),
            first_block,
            blocks: 8,
            active,
        };
        state.replicas = vec![
            replica("c0d1s0", 8, true),
            replica("c0d1s0", 465_877, true),
            replica("c1d0s0", 8, false),
        ];
        let said = "        flags           first blk       block count
     a    u     8               8               c0d1s0
     a    u     465877          8               c0d1s0
          W     8               8               c1d0s0
";
        assert_eq!(replicas(&state, false), said);
        assert_eq!(replicas(&state, true), format!("{said}{FLAGS}"));
    }

    #[test]
    fn ram_disks() {
        let said = ramdisks(&machine(), "/dev/ramdisk");
        let head = "Block Device                                                  Size  Removable";
        let line = "/dev/ramdisk/testdisk                                    241172480    Yes";
        assert_eq!(said, format!("{head}\n{line}\n"));
        assert_eq!(ramdisks(&State::default(), "/dev/ramdisk"), "");
    }
}
