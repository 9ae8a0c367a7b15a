//! Concats and stripes from their components: all of them, or nothing.

use std::sync::Arc;

use super::{Volume, lineage};
use crate::error::{Result, VolumeError};
use crate::member::LabelledDevice;
use crate::ondisk::label::{Label, LayoutKind};
use crate::rows::{Component, Rows};

pub(super) fn assemble(members: Vec<LabelledDevice>) -> Result<Volume> {
    // OK to unwrap by default: the caller gives at least one.
    let Some(newest) = members.iter().map(|m| &m.label).max_by_key(|l| l.generation).cloned()
    else {
        refuse!("no members were given");
    };
    let mut components = Vec::new();
    for (slot, wanted) in newest.members.iter().enumerate() {
        let found = members.iter().find(|m| lineage::own_uuid(&m.label) == wanted.uuid);
        let Some(found) = found else {
            return Err(VolumeError::incomplete(format!(
                "volume '{}': component {slot}, last seen as {}, is missing; a {} needs all of \
                 its {}",
                newest.name,
                wanted.name,
                newest.kind.name(),
                newest.members.len()
            )));
        };
        refuse_damaged(found, &newest)?;
        components.push(Component {
            device: Arc::clone(&found.device),
            start: found.label.data_start,
            bytes: wanted.bytes,
        });
    }
    let (rows, names) = (rows(&newest, components.clone())?, components);
    let members = names.iter().map(|c| c.device.info().name).collect();
    Ok(Volume {
        uuid: newest.volume,
        name: newest.name,
        kind: newest.kind,
        device: Arc::new(rows),
        mirror: None,
        members,
        member_of: None,
    })
}

fn refuse_damaged(found: &LabelledDevice, newest: &Label) -> Result<()> {
    let device = found.name();
    if let Some(end) = found.overwritten {
        let what = format!(
            "{} that it is a component of volume '{}', and its contents cannot be trusted",
            end.overwritten(),
            newest.name
        );
        return Err(VolumeError::Corrupt { device, what });
    }
    if found.label.generation + 1 < newest.generation {
        let what = format!("is an old copy of a component of volume '{}'", newest.name);
        return Err(VolumeError::Corrupt { device, what });
    }
    Ok(())
}

/// The device of a label's volume.
pub(crate) fn rows(label: &Label, components: Vec<Component>) -> Result<Rows> {
    let corrupt =
        |what: &str| VolumeError::Corrupt { device: label.name.clone(), what: what.to_owned() };
    for component in &components {
        let end = component.start.checked_add(component.bytes);
        if end.is_none_or(|end| end > component.device.info().size) || component.bytes == 0 {
            return Err(corrupt("a label gives a component more bytes than its device has"));
        }
    }
    match label.kind {
        LayoutKind::Concat => {
            let all = components.iter().map(|c| c.bytes).fold(0, u64::saturating_add);
            if all < label.size {
                return Err(corrupt("the components are smaller than the volume"));
            }
            Ok(Rows::concat(label.name.clone(), components, label.size))
        }
        _ => {
            let interlace = u64::from(label.interlace);
            let least = components.iter().map(|c| c.bytes).min().unwrap_or(0);
            let all = (least - least % interlace).checked_mul(components.len() as u64);
            if all.is_none_or(|all| all < label.size) {
                return Err(corrupt("the components are smaller than the volume"));
            }
            Ok(Rows::stripe(label.name.clone(), components, interlace, label.size))
        }
    }
}
