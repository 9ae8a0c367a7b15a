//! New volumes of any devices: looked at first, then made.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_volume::ondisk::label::LayoutKind;
use steadfast_volume::{
    MirrorOptions, NewLeg, Result, Volume, create_mirror, create_rows, planned_mirror, planned_rows,
};

/// Bytes of each component in turn where a stripe says nothing of it.
const INTERLACE: u32 = 64 << 10;

/// A volume that is to be made.
pub struct NewVolume<'n> {
    /// Its name.
    pub name: &'n str,
    /// What it is.
    pub kind: LayoutKind,
    /// Its members. Of one that is no mirror all or none are overwritten by force.
    pub members: Vec<NewLeg>,
    /// Bytes of each component in turn, of a stripe.
    pub interlace: Option<u32>,
    /// How it is made, of a mirror.
    pub mirror: MirrorOptions,
}

impl NewVolume<'_> {
    /// What is refused is refused here, before anybody has written anything. Also the volume as it
    /// would be; it serves no requests.
    ///
    /// # Errors
    /// A device cannot be a member.
    pub fn look(&self) -> Result<Arc<dyn BlockDevice>> {
        if self.kind == LayoutKind::Mirror {
            return planned_mirror(self.name, &self.members, &self.mirror);
        }
        let (devices, interlace, force) = self.rows();
        planned_rows(self.name, &devices, interlace, force)
    }

    /// Makes it. Refusals change nothing.
    ///
    /// # Errors
    /// A device cannot be a member, or fails.
    pub fn make(&self) -> Result<Volume> {
        if self.kind != LayoutKind::Mirror {
            let (devices, interlace, force) = self.rows();
            return create_rows(self.name, &devices, interlace, force);
        }
        let mirror = create_mirror(self.name, &self.members, &self.mirror)?;
        Ok(Volume {
            uuid: mirror.uuid(),
            name: self.name.to_owned(),
            kind: self.kind,
            device: Arc::new(mirror.clone()),
            mirror: Some(mirror),
            members: self.members.iter().map(|m| m.device.info().name).collect(),
            member_of: None,
        })
    }

    fn rows(&self) -> (Vec<Arc<dyn BlockDevice>>, Option<u32>, bool) {
        let is_stripe = self.kind == LayoutKind::Stripe;
        let interlace = is_stripe.then(|| self.interlace.unwrap_or(INTERLACE));
        let devices = self.members.iter().map(|m| Arc::clone(&m.device)).collect();
        (devices, interlace, self.members.iter().any(|m| m.force))
    }
}
