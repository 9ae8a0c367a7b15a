//! Labels on devices: reading both copies, writing them one after the other, wiping them.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, BlockError, DeviceInfo};

use crate::error::{Result, VolumeError};
use crate::ondisk::label::{Label, Unlabelled, VERSION};
use crate::ondisk::{BLOCK, LABEL_AT, MAP_AT, second_label_at};

/// A device that carries a label.
#[derive(Clone)]
pub struct Labelled {
    /// The device.
    pub device: Arc<dyn BlockDevice>,
    /// The label that counts.
    pub label: Label,
    /// The start of the device holds something else by now: only the second copy of the label was
    /// found. What the rest holds is not to be believed.
    pub overwritten: bool,
}

impl Labelled {
    /// The device's name.
    pub fn name(&self) -> String {
        self.device.info().name
    }
}

/// Whether a device can hold the labels at all.
fn has_room(info: &DeviceInfo) -> bool {
    info.size >= MAP_AT + 2 * BLOCK && u64::from(info.logical_block) <= BLOCK
}

/// Looks for a label; `None` where none ever was, as far as can be told.
///
/// # Errors
/// A label that was damaged or cut off, of a newer version, or a device that cannot be read.
pub fn read_label(device: &Arc<dyn BlockDevice>) -> Result<Option<Labelled>> {
    let info = device.info();
    if !has_room(&info) {
        return Ok(None);
    }
    let first = copy_at(device, LABEL_AT);
    let end = match &first {
        Ok(Ok(label)) => label.device_bytes.min(info.size),
        _ => info.size,
    };
    let second = copy_at(device, second_label_at(end));
    let (first, second) = match (first, second) {
        (Err(error), Err(_)) => return Err(error.into()),
        // What cannot be read is as good as damaged.
        (first, second) => (first.unwrap_or(UNREADABLE), second.unwrap_or(UNREADABLE)),
    };
    let corrupt = |what: String| VolumeError::Corrupt { device: info.name.clone(), what };
    let newer = |version| {
        let device = info.name.clone();
        VolumeError::Newer { device, version, known: VERSION }
    };
    let (label, overwritten) = match (first, second) {
        (Ok(a), Ok(b)) if same_member(&a, &b) && b.generation > a.generation => (b, false),
        (Ok(a), _) => (a, false),
        (Err(Unlabelled::Newer(version)), _) => return Err(newer(version)),
        (Err(Unlabelled::Damaged(_)), Ok(b)) => (b, false),
        (Err(Unlabelled::Damaged(what)), Err(_)) => {
            return Err(corrupt(format!(
                "{what}, and the label's second copy at the device's end is not there either"
            )));
        }
        (Err(Unlabelled::None), Ok(b)) => (b, true),
        (Err(Unlabelled::None), Err(Unlabelled::Newer(version))) => return Err(newer(version)),
        (Err(Unlabelled::None), Err(_)) => return Ok(None),
    };
    if label.device_bytes > info.size {
        let (then, now) = (label.device_bytes, info.size);
        return Err(corrupt(format!(
            "is cut off: it had {then} bytes when it became a member of volume '{}', and has \
             {now} now",
            label.name
        )));
    }
    Ok(Some(Labelled { device: Arc::clone(device), label, overwritten }))
}

const UNREADABLE: std::result::Result<Label, Unlabelled> =
    Err(Unlabelled::Damaged("the label cannot be read"));

fn same_member(a: &Label, b: &Label) -> bool {
    let uuid = |label: &Label| label.members[label.slot].uuid;
    a.volume == b.volume && uuid(a) == uuid(b)
}

fn copy_at(
    device: &Arc<dyn BlockDevice>,
    at: u64,
) -> std::result::Result<std::result::Result<Label, Unlabelled>, BlockError> {
    Ok(Label::decode(&device.read(at, BLOCK)?))
}

/// Writes both copies, durable on return; a cut leaves one of them whole.
///
/// # Errors
/// Of the device: one copy may be the new one then.
pub fn write_label(
    device: &Arc<dyn BlockDevice>,
    label: &Label,
) -> std::result::Result<(), BlockError> {
    let bytes = Bytes::from(label.encode());
    device.write_fua(LABEL_AT, bytes.clone().into())?;
    device.write_fua(second_label_at(label.device_bytes), bytes.into())
}

/// Makes a member a device without a label.
///
/// # Errors
/// Of the device.
pub fn wipe_label(device: &Arc<dyn BlockDevice>) -> Result<()> {
    let info = device.info();
    let zeros = Bytes::from(vec![0; BLOCK as usize]);
    // The second copy first: with the first alone it is still a member, and not an overwritten one.
    device.write_fua(second_label_at(info.size), zeros.clone().into())?;
    device.write_fua(LABEL_AT, zeros.into())?;
    Ok(())
}

/// Refuses a device that cannot be a new member: read-only, never initialised, with blocks that
/// are too large, or a member already.
///
/// # Errors
/// Says why. With `force` a label does not matter.
pub fn check_new(device: &Arc<dyn BlockDevice>, force: bool) -> Result<DeviceInfo> {
    let info = device.info();
    let name = &info.name;
    if info.read_only {
        return Err(VolumeError::refused(format!("{name}: is read-only, a member is written")));
    }
    if u64::from(info.logical_block) > BLOCK {
        let what = format!("{name}: has blocks of {} bytes, at most {BLOCK}", info.logical_block);
        return Err(VolumeError::refused(what));
    }
    if force {
        return Ok(info);
    }
    if let Some(found) = read_label(device)? {
        let (volume, slot) = (&found.label.name, found.label.slot);
        return Err(VolumeError::refused(format!(
            "{name}: is member {slot} of volume '{volume}' ({}); destroy that volume first, or \
             overwrite the label with --force",
            found.label.volume
        )));
    }
    Ok(info)
}
