//! Labels on devices: reading both copies, writing them one after the other, wiping them.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, BlockError, DeviceInfo};

use crate::error::{Result, VolumeError};
use crate::ondisk::label::{Label, LabelProblem, VERSION};
use crate::ondisk::{BLOCK, LABEL_AT, MAP_AT, second_label_at};

/// A device that carries a label.
#[derive(Clone)]
pub struct LabelledDevice {
    /// The device.
    pub device: Arc<dyn BlockDevice>,
    /// The label that counts.
    pub label: Label,
    /// One of the copies is not there: something else was written to that end of the device, and
    /// what the rest holds is not to be trusted.
    pub overwritten: Option<End>,
}

/// An end of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Its start, where the label's first copy is.
    Start,
    /// Its end, where the second one is.
    End,
}

impl End {
    /// For people: what happened to it.
    pub fn overwritten(self) -> &'static str {
        match self {
            End::Start => {
                "its start was overwritten: only the label's second copy, at its end, is left"
            }
            End::End => {
                "its end was overwritten: only the label's first copy, at its start, is left"
            }
        }
    }
}

impl LabelledDevice {
    /// The device's name.
    pub fn name(&self) -> String {
        self.device.info().name
    }
}

/// Whether a device can hold the labels at all.
fn has_room(info: &DeviceInfo) -> bool {
    info.size >= MAP_AT + 2 * BLOCK && u64::from(info.logical_block) <= BLOCK
}

/// What is in the place of a copy: a label, or why not.
type Copy = std::result::Result<Label, LabelProblem>;

/// Looks for a label; `None` where there seems never to have been one.
///
/// # Errors
/// A label that was damaged or cut off, of a newer version, or a device that cannot be read.
pub fn read_label(device: &Arc<dyn BlockDevice>) -> Result<Option<LabelledDevice>> {
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
        // A member has both copies. Of a volume, who holds the start may be missing.
        (Err(_), Ok(Err(LabelProblem::None))) | (Ok(Err(LabelProblem::None)), Err(_)) => {
            return Ok(None);
        }
        // What cannot be read is as good as damaged.
        (first, second) => (first.unwrap_or(UNREADABLE), second.unwrap_or(UNREADABLE)),
    };
    let Some((label, overwritten)) = chosen(&info.name, first, second)? else { return Ok(None) };
    if label.device_bytes > info.size {
        let (then, now) = (label.device_bytes, info.size);
        let what = format!(
            "is cut off: it had {then} bytes when it became a member of volume '{}', and has \
             {now} now",
            label.name
        );
        return Err(VolumeError::Corrupt { device: info.name, what });
    }
    Ok(Some(LabelledDevice { device: Arc::clone(device), label, overwritten }))
}

/// Which of the copies counts, and which end of the device is not the member's any more. They are
/// written one after the other, so a power cut leaves one of them old or damaged, and none missing.
fn chosen(device: &str, first: Copy, second: Copy) -> Result<Option<(Label, Option<End>)>> {
    use LabelProblem::{Damaged, Features, Newer, None as Nothing};
    let name = || device.to_owned();
    Ok(Some(match (first, second) {
        (Ok(a), Ok(b)) if !same_member(&a, &b) || is_old(&b, &a) => (a, Some(End::End)),
        (Ok(a), Ok(b)) if a.generation < b.base => (b, Some(End::Start)),
        (Ok(a), Ok(b)) if b.generation > a.generation => (b, None),
        (Ok(a), Ok(_) | Err(Damaged(_))) => (a, None),
        (Ok(a), Err(Nothing | Newer(_) | Features(_))) => (a, Some(End::End)),
        (Err(Damaged(_)), Ok(b)) => (b, None),
        (Err(Nothing), Ok(b)) => (b, Some(End::Start)),
        (Err(Newer(version)), _) | (Err(Nothing), Err(Newer(version))) => {
            return Err(VolumeError::Newer { device: name(), version, known: VERSION });
        }
        (Err(Features(bits)), _) | (Err(Nothing), Err(Features(bits))) => {
            return Err(VolumeError::Features { device: name(), bits });
        }
        (Err(Damaged(what)), Err(_)) => {
            let what =
                format!("{what}, and the label's second copy at the device's end is not there");
            return Err(VolumeError::Corrupt { device: name(), what });
        }
        (Err(Nothing), Err(_)) => return Ok(None),
    }))
}

const UNREADABLE: Copy = Err(LabelProblem::Damaged("the label cannot be read"));

/// Whether no interrupted change explains that the second copy is older than the first: it is what
/// was there before the last change but one. A leg that comes back has that from when it left.
fn is_old(second: &Label, first: &Label) -> bool {
    let back = first.members[first.slot].left.is_some_and(|left| second.generation >= left.first);
    second.generation < first.base && !back
}

fn same_member(a: &Label, b: &Label) -> bool {
    let uuid = |label: &Label| label.members[label.slot].uuid;
    a.volume == b.volume && uuid(a) == uuid(b)
}

fn copy_at(device: &Arc<dyn BlockDevice>, at: u64) -> std::result::Result<Copy, BlockError> {
    Ok(Label::decode(&device.read(at, BLOCK)?))
}

/// Writes both copies, durable on return; a power cut leaves one of them whole.
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
    let mut ends = vec![second_label_at(info.size)];
    if let Ok(Ok(label)) = copy_at(device, LABEL_AT) {
        // The device has grown since.
        ends.push(second_label_at(label.device_bytes.min(info.size)));
    }
    ends.dedup();
    // The second copy first: with the first alone it is known whose it was.
    for at in ends {
        device.write_fua(at, zeros.clone().into())?;
    }
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
        refuse!("{name}: is read-only, a member is written");
    }
    if u64::from(info.logical_block) > BLOCK {
        refuse!("{name}: has blocks of {} bytes, at most {BLOCK}", info.logical_block);
    }
    if !has_room(&info) {
        let (size, least) = (info.size, MAP_AT + 2 * BLOCK);
        refuse!("{name}: is too small: it has {size} bytes, a member at least {least}");
    }
    if force {
        return Ok(info);
    }
    if let Some(found) = read_label(device)? {
        let (volume, slot) = (&found.label.name, found.label.slot);
        refuse!(
            "{name}: is member {slot} of volume '{volume}' ({}); destroy that volume first, or \
             overwrite the label with --force",
            found.label.volume
        );
    }
    Ok(info)
}
