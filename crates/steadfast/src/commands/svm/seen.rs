//! A host's status as the volume manager's state.

use steadfast_stack::protocol::{
    Alias, DeviceKind, DeviceStatus, LegStatus, MirrorStatus, StackStatus, VolumeStatus,
};
use steadfast_svm::State;
use steadfast_svm::command::{ReadOption, WriteOption};
use steadfast_svm::state::{
    BLOCK, Concat, Device, Replica, Row, Submirror, SubmirrorState, SvmMirror,
};
use steadfast_volume::ondisk::label::LayoutKind;

/// Where the first label lies on a member, and where the map does; docs/mirrors.md.
const LABEL_AT: u64 = 4096;
const MAP_AT: u64 = 8192;
/// Bytes of a label, and of a slot of the map; a block of the map has two.
const PLACE: u64 = 4096;

/// Everything that the volume manager prints.
pub fn state(status: &StackStatus) -> State {
    let aliases = &status.aliases[..];
    let mut state = State::default();
    for device in &status.devices {
        state.devices.push(Device {
            name: shown(aliases, &device.name),
            bytes: device.bytes,
            ram_disk: (device.kind == DeviceKind::RamDisk).then(|| device.name.clone()),
            id: identity(status, device),
        });
        let on = shown(aliases, &device.name);
        let there = device.problem.is_none();
        let of = (device.used_by.is_some(), device.bytes, device.map_blocks);
        state.replicas.extend(replicas(&on, there, of));
    }
    for volume in &status.volumes {
        match (volume.kind, &volume.mirror) {
            (LayoutKind::Mirror, mirror) => {
                state.mirrors.push(self::mirror(aliases, volume, mirror.as_ref()));
            }
            _ => state.concats.push(concat(aliases, volume)),
        }
        let of = (volume.used_by.is_some(), volume.bytes, volume.map_blocks);
        state.replicas.extend(replicas(&volume.name, volume.problem.is_none(), of));
    }
    state
}

/// The name by which a device is shown: its other one, if it has one.
pub fn shown(aliases: &[Alias], name: &str) -> String {
    let alias = aliases.iter().find(|alias| alias.target == name);
    alias.map_or(name, |alias| &alias.name).to_owned()
}

/// What distinguishes a device from others: the UUID in its label. Memory has none that lasts.
fn identity(status: &StackStatus, device: &DeviceStatus) -> Option<String> {
    if device.volatile {
        return None;
    }
    let volume = status.volumes.iter().find(|v| Some(&v.name) == device.used_by.as_ref())?;
    let legs = volume.mirror.iter().flat_map(|m| &m.legs);
    let leg = legs.into_iter().find(|leg| leg.component == device.name);
    Some(format!("id1,steadfast@{}", leg.map_or(&volume.uuid, |leg| &leg.uuid)))
}

/// The labels, and the map, of a member of so many bytes.
fn replicas(
    on: &str,
    there: bool,
    (member, bytes, map_blocks): (bool, u64, Option<u32>),
) -> Vec<Replica> {
    let replica = |at: u64, bytes: u64| Replica {
        on: on.to_owned(),
        first_block: at / BLOCK,
        blocks: bytes / BLOCK,
        active: there,
    };
    if !member || bytes < MAP_AT + PLACE {
        return Vec::new();
    }
    let map = map_blocks.filter(|blocks| *blocks > 0);
    let map = map.map(|blocks| replica(MAP_AT, u64::from(blocks) * 2 * PLACE));
    let (first, last) = (replica(LABEL_AT, PLACE), replica(bytes - PLACE, PLACE));
    [first].into_iter().chain(map).chain([last]).collect()
}

fn concat(aliases: &[Alias], volume: &VolumeStatus) -> Concat {
    let components = volume.components.iter().map(|name| shown(aliases, name));
    let interlace = volume.interlace.map_or(0, u64::from);
    let rows = match volume.kind {
        LayoutKind::Stripe => vec![Row { components: components.collect(), interlace }],
        _ => components.map(|name| Row { components: vec![name], interlace }).collect(),
    };
    let (name, bytes) = (volume.name.clone(), volume.bytes);
    Concat { name, bytes, rows, unavailable: volume.problem.is_some() }
}

fn mirror(aliases: &[Alias], volume: &VolumeStatus, mirror: Option<&MirrorStatus>) -> SvmMirror {
    let (name, bytes) = (volume.name.clone(), volume.bytes);
    let Some(mirror) = mirror else {
        // It is not assembled: nobody knows what its submirrors hold.
        let submirrors = volume.components.iter().enumerate().map(|(slot, name)| Submirror {
            slot,
            name: shown(aliases, name),
            state: SubmirrorState::Unavailable,
        });
        return SvmMirror { name, bytes, submirrors: submirrors.collect(), ..SvmMirror::default() };
    };
    let attached = mirror.legs.iter().filter(|leg| leg.attached).enumerate();
    let submirrors = attached.map(|(slot, leg)| Submirror {
        slot,
        name: shown(aliases, &leg.component),
        state: leg_state(leg, mirror.resync.is_some()),
    });
    let submirrors: Vec<Submirror> = submirrors.collect();
    let resyncing = submirrors.iter().any(|s| s.state == SubmirrorState::Resyncing);
    let percent = mirror.resync.filter(|_| resyncing).map(|progress| progress.percent().min(100));
    SvmMirror {
        name,
        bytes,
        submirrors,
        read: ReadOption::of(&mirror.read),
        write: WriteOption::of(&mirror.write),
        pass: mirror.pass,
        // OK to truncate: at most 100.
        resync_percent: percent.map(|percent| percent as u8),
        spares: mirror.spares.iter().map(|name| shown(aliases, name)).collect(),
    }
}

fn leg_state(leg: &LegStatus, resync_runs: bool) -> SubmirrorState {
    match leg.state.as_str() {
        "Okay" => SubmirrorState::Okay,
        "Resyncing" if resync_runs => SubmirrorState::Resyncing,
        "Resyncing" => SubmirrorState::ResyncPending,
        "Last Erred" => SubmirrorState::LastErred,
        "Offline" => SubmirrorState::Offline,
        "Unavailable" => SubmirrorState::Unavailable,
        _ => SubmirrorState::Erred,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use steadfast_svm::forms;

    use super::*;

    fn device(name: &str, kind: &str, used_by: &str) -> Value {
        json!({ "name": name, "kind": kind, "path": null, "bytes": 8 << 20,
            "volatile": kind == "ram-disk", "problem": null, "used_by": used_by,
            "data_start": 8192, "map_blocks": 0, "open": 0, "kernel": null })
    }

    fn volume(name: &str, kind: &str, components: &[&str], mirror: Value) -> Value {
        let used_by = (kind == "concat").then_some("d10");
        json!({ "name": name, "uuid": format!("uuid-of-{name}"), "kind": kind,
            "bytes": 7 << 20, "components": components, "interlace": null, "volatile": false,
            "problem": null, "used_by": used_by, "data_start": 1 << 16, "map_blocks": 1,
            "open": 0, "kernel": null, "mirror": mirror })
    }

    fn leg(slot: usize, component: &str, state: &str, attached: bool) -> Value {
        json!({ "slot": slot, "uuid": "u", "component": component, "state": state,
            "volatile": false, "attached": attached, "lacking_bytes": 0, "error": null,
            "reads": 0, "read_bytes": 0, "writes": 0, "written_bytes": 0, "errors": 0,
            "read_latency_ns": 0 })
    }

    /// A mirror of two concats, one over memory, with a leg that nobody has attached.
    fn status(resync: &Value) -> StackStatus {
        let legs = [
            leg(2, "d13", "Resyncing", true),
            leg(0, "d11", "Okay", true),
            leg(1, "d12", "Okay", false),
        ];
        let mirror = json!({ "legs": legs, "spares": [], "read": "first", "write": "parallel",
            "pass": 1, "region_bytes": 65536, "generation": 3, "resync": resync, "whole": true,
            "regions": { "unwritten": 1, "filling": 0, "dirty": 0, "clean": 1 },
            "failed": null });
        let status = json!({ "version": "0", "pid": 1, "up_ns": 1, "config": "c", "tree": null,
            "devices": [device("c0d1s0", "file", "d11"), device("testdisk", "ram-disk", "d13")],
            "volumes": [volume("d11", "concat", &["c0d1s0"], Value::Null),
                volume("d13", "concat", &["testdisk"], Value::Null),
                volume("d10", "mirror", &["d13", "d11"], mirror)],
            "aliases": [{ "name": "c5t0d0s0", "target": "testdisk" }], "retired": [] });
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn what_a_host_has_is_printed_as_by_the_volume_manager() {
        let seen = state(&status(&json!({ "done_bytes": 3, "total_bytes": 20 })));
        let short = steadfast_svm::command::Metastat { short: true, ..Default::default() };
        let text = "d10 -m d13 d11 -r 1\nd13 1 1 c5t0d0s0\nd11 1 1 c0d1s0\n";
        assert_eq!(forms::stat(&seen, &short).0, text);
        let (whole, _) = forms::stat(&seen, &steadfast_svm::command::Metastat::default());
        assert!(whole.contains("    Resync in progress: 15 % done\n"), "{whole}");
        assert!(whole.contains("c5t0d0   No     -\n"), "{whole}");
        assert!(whole.contains("c0d1     Yes    id1,steadfast@uuid-of-d11\n"), "{whole}");
        assert_eq!(seen.devices[1].ram_disk.as_deref(), Some("testdisk"));
    }

    #[test]
    fn a_leg_that_lacks_something_waits_where_no_resync_runs() {
        let seen = state(&status(&Value::Null));
        let states: Vec<_> = seen.mirrors[0].submirrors.iter().map(|s| s.state).collect();
        assert_eq!(states, [SubmirrorState::ResyncPending, SubmirrorState::Okay]);
        assert_eq!(seen.mirrors[0].resync_percent, None);
    }

    #[test]
    fn labels_and_maps_lie_where_the_documentation_says() {
        let seen = state(&status(&Value::Null));
        let of = |on: &str| -> Vec<(u64, u64)> {
            let places = seen.replicas.iter().filter(|replica| replica.on == on);
            places.map(|replica| (replica.first_block, replica.blocks)).collect()
        };
        assert_eq!(of("c0d1s0"), [(8, 8), (16_376, 8)]);
        assert_eq!(of("c5t0d0s0"), [(8, 8), (16_376, 8)]);
        assert_eq!(of("d11"), [(8, 8), (16, 16), (14_328, 8)]);
        assert_eq!(of("d10"), []);
    }

    #[test]
    fn a_mirror_that_is_not_assembled_has_nothing_that_is_known() {
        let mut status = status(&Value::Null);
        status.volumes[2].mirror = None;
        status.volumes[2].problem = Some("a leg is missing".into());
        let seen = state(&status);
        let unavailable = |s: &Submirror| s.state == SubmirrorState::Unavailable;
        assert!(seen.mirrors[0].submirrors.iter().all(unavailable));
        assert_eq!(seen.mirrors[0].submirrors.len(), 2);
    }
}
