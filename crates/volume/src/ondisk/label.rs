//! The label: the volume of a member, its role, and its knowledge of the other members.
//!
//! Each member has two copies with the same bytes, written one after the other. The valid copy with
//! the higher generation counts. The newest label of a volume's members counts;
//! `assemble/lineage.rs` says how old another label may be for its data to be trusted.

use uuid::Uuid;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{BLOCK, REGION_MAX, REGION_MIN, REGIONS_MAX, checksum, checksums};

const MAGIC: [u8; 8] = *b"SFVOLUME";
/// The version that is written and read here. Version 1 knew no [`DepartureRange`], and was never
/// released.
pub const VERSION: u32 = 2;
/// What a volume has that who does not know it must not assemble: regions have checksums.
pub(crate) const CHECKSUMS: u32 = 1;
/// All of these that are known here.
const FEATURES: u32 = CHECKSUMS;
/// Most members of a volume, spares included.
pub const MEMBERS_MAX: usize = 32;
/// Most legs of a mirror.
pub const LEGS_MAX: usize = 4;
/// Most spares of a mirror; they follow the legs in the table.
pub const SPARES_MAX: usize = 4;
/// No label says more: it is not written then. Changes of labels do not come so far.
pub const GENERATION_MAX: u64 = i64::MAX as u64;
/// How many earlier identities of the data are recorded.
pub(crate) const HISTORY: usize = 16;
/// Most bytes of a name.
pub const NAME_MAX: usize = 32;

/// What a volume is made as.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Default,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum LayoutKind {
    /// One component after the other.
    Concat = 1,
    /// Components in turn, `interlace` bytes of each.
    Stripe = 2,
    /// The same on every leg.
    #[default]
    Mirror = 3,
}

impl LayoutKind {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            LayoutKind::Concat => "concat",
            LayoutKind::Stripe => "stripe",
            LayoutKind::Mirror => "mirror",
        }
    }
}

/// What the volume knows of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemberState {
    /// No member has this place.
    #[default]
    Empty = 0,
    /// In use: takes writes. The map says which regions it lacks.
    Active = 1,
    /// Taken offline by a person; the map says what it misses since then.
    Offline = 2,
    /// Failed; the map says what it misses since then.
    Failed = 3,
    /// Waits to take a failed leg's place.
    Spare = 4,
    /// Was not there at an assembly; the map says what it misses since then. It is taken into use
    /// again when it is there.
    Missing = 5,
}

/// A place in the table of members; by default one without a member.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Member {
    /// Its own UUID.
    pub uuid: Uuid,
    /// Bytes of data it holds.
    pub bytes: u64,
    /// Its state when the label was written.
    pub state: MemberState,
    /// Its contents do not survive the loss of power, or do not count as if they did.
    pub volatile: bool,
    /// It holds the hottest regions only.
    pub partial: bool,
    /// The device's name when it was last seen, for messages.
    pub name: String,
    /// Of a leg that is out of use: when it left.
    pub left: Option<DepartureRange>,
}

/// When a leg left: it is the same leg, with what it had then, if its label's generation is in this
/// range. An older one is an old copy of the leg, a newer one was used without the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DepartureRange {
    /// The newest generation that was known to be on all legs.
    pub first: u64,
    /// The newest that had been begun.
    pub last: u64,
}

/// An earlier identity of the data, and the generation at which it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ancestor {
    /// The last generation with this identity.
    pub generation: u64,
    /// Identity.
    pub data: Uuid,
}

/// What a valid label says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Label {
    /// The volume's UUID.
    pub volume: Uuid,
    /// The volume's name.
    pub name: String,
    /// What the volume is.
    pub kind: LayoutKind,
    /// This member's place in the table.
    pub slot: usize,
    /// Grows with every change of the label.
    pub generation: u64,
    /// The newest generation that was known to be on all members in use, in both copies.
    pub base: u64,
    /// Identity of the data: a new one whenever the volume goes on without a leg that it had.
    pub data: Uuid,
    /// Stamp of the assembly that wrote it.
    pub incarnation: Uuid,
    /// The volume was closed, with nothing in flight.
    pub closed: bool,
    /// Bytes of the volume.
    pub size: u64,
    /// Bytes of a region (mirrors).
    pub region_bytes: u32,
    /// Bytes of each component in turn (stripes).
    pub interlace: u32,
    /// Where data begins on this member.
    pub data_start: u64,
    /// Bytes of the device when the label was written.
    pub device_bytes: u64,
    /// Blocks of the map on this member.
    pub map_blocks: u32,
    /// Read policy and preferred leg, write policy, pass: as `mirror::policy` numbers them.
    pub policies: [u8; 4],
    /// Regions have checksums, in an area between map and data.
    pub checksums: bool,
    /// Earlier identities, newest first.
    pub history: Vec<Ancestor>,
    /// The newest generation of an identity that `history` had no room for; 0: all are there.
    pub forgotten: u64,
    /// All members; those after the last are left out.
    pub members: Vec<Member>,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawMember {
    uuid: [u8; 16],
    bytes: U64,
    state: u8,
    /// Bit 0: volatile; bit 1: partial.
    flags: u8,
    reserved: [u8; 6],
    name: [u8; NAME_MAX],
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawAncestor {
    generation: U64,
    data: [u8; 16],
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawLeft {
    first: U64,
    /// 0: the leg is in use, or there is none.
    last: U64,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    magic: [u8; 8],
    version: U32,
    checksum: U32,
    volume: [u8; 16],
    name: [u8; NAME_MAX],
    generation: U64,
    data: [u8; 16],
    incarnation: [u8; 16],
    size: U64,
    data_start: U64,
    device_bytes: U64,
    region_bytes: U32,
    interlace: U32,
    map_blocks: U32,
    kind: u8,
    slot: u8,
    /// Bit 0: closed.
    flags: u8,
    ancestors: u8,
    policies: [u8; 4],
    /// What must be known to use the volume; bit 0: checksums.
    features: U32,
    base: U64,
    forgotten: U64,
    left: [RawLeft; LEGS_MAX],
    more: [u8; 280],
    history: [RawAncestor; HISTORY],
    members: [RawMember; MEMBERS_MAX],
    unused: [u8; 1152],
}

const _: () = {
    assert!(size_of::<RawMember>() == 64);
    assert!(size_of::<Raw>() == BLOCK as usize);
    assert!(std::mem::offset_of!(Raw, checksum) == CHECKSUM_AT);
    assert!(std::mem::offset_of!(Raw, generation) == 64);
    assert!(std::mem::offset_of!(Raw, size) == 104);
    assert!(std::mem::offset_of!(Raw, kind) == 140);
    assert!(std::mem::offset_of!(Raw, features) == 148);
    assert!(std::mem::offset_of!(Raw, base) == 152);
    assert!(std::mem::offset_of!(Raw, left) == 168);
    assert!(std::mem::offset_of!(Raw, history) == 512);
    assert!(std::mem::offset_of!(Raw, members) == 896);
};
const CHECKSUM_AT: usize = 12;

/// Why bytes are no label that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelProblem {
    /// There seems never to have been a label here.
    None,
    /// A label, but not as it was written.
    Damaged(&'static str),
    /// Of a version that is not known here.
    Newer(u32),
    /// The volume has something that is not known here: these bits.
    Features(u32),
}

impl Label {
    /// The label's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let text = |of: &str| {
            let mut out = [0; NAME_MAX];
            let of = truncated(of);
            out[..of.len()].copy_from_slice(of.as_bytes());
            out
        };
        let member = |m: &Member| RawMember {
            uuid: m.uuid.into_bytes(),
            bytes: m.bytes.into(),
            state: m.state as u8,
            flags: u8::from(m.volatile) | u8::from(m.partial) << 1,
            reserved: [0; 6],
            name: text(&m.name),
        };
        let mut members = [member(&Member::default()); MEMBERS_MAX];
        for (raw, m) in members.iter_mut().zip(&self.members) {
            *raw = member(m);
        }
        let mut left = [RawLeft { first: U64::ZERO, last: U64::ZERO }; LEGS_MAX];
        for (raw, m) in left.iter_mut().zip(&self.members) {
            if let Some(DepartureRange { first, last }) = m.left {
                *raw = RawLeft { first: first.into(), last: last.into() };
            }
        }
        let none = RawAncestor { generation: U64::ZERO, data: [0; 16] };
        let mut history = [none; HISTORY];
        for (raw, a) in history.iter_mut().zip(&self.history) {
            *raw = RawAncestor { generation: a.generation.into(), data: a.data.into_bytes() };
        }
        let mut raw = Raw {
            magic: MAGIC,
            version: VERSION.into(),
            checksum: U32::ZERO,
            volume: self.volume.into_bytes(),
            name: text(&self.name),
            generation: self.generation.into(),
            data: self.data.into_bytes(),
            incarnation: self.incarnation.into_bytes(),
            size: self.size.into(),
            data_start: self.data_start.into(),
            device_bytes: self.device_bytes.into(),
            region_bytes: self.region_bytes.into(),
            interlace: self.interlace.into(),
            map_blocks: self.map_blocks.into(),
            kind: self.kind as u8,
            // OK to truncate: less than MEMBERS_MAX.
            slot: self.slot as u8,
            flags: u8::from(self.closed),
            ancestors: self.history.len().min(HISTORY) as u8,
            policies: self.policies,
            features: if self.checksums { CHECKSUMS } else { 0 }.into(),
            base: self.base.into(),
            forgotten: self.forgotten.into(),
            left,
            more: [0; 280],
            history,
            members,
            unused: [0; 1152],
        };
        raw.checksum = checksum(raw.as_bytes(), CHECKSUM_AT).into();
        raw.as_bytes().to_vec()
    }

    /// What 4096 bytes say.
    ///
    /// # Errors
    /// If they are no label, or an invalid one.
    pub fn decode(bytes: &[u8]) -> Result<Label, LabelProblem> {
        let raw = Raw::ref_from_bytes(bytes).map_err(|_| LabelProblem::None)?;
        if raw.magic != MAGIC {
            return Err(LabelProblem::None);
        }
        if raw.version.get() > VERSION {
            // Where a newer version keeps its checksum is not known. But a label of ours whose
            // version alone is wrong has ours.
            let ours = Raw { version: VERSION.into(), ..*raw };
            if raw.checksum.get() == checksum(ours.as_bytes(), CHECKSUM_AT) {
                return Err(LabelProblem::Damaged("the label's version is wrong"));
            }
            return Err(LabelProblem::Newer(raw.version.get()));
        }
        if raw.checksum.get() != checksum(bytes, CHECKSUM_AT) {
            return Err(LabelProblem::Damaged("the label's checksum is wrong"));
        }
        if raw.version.get() < VERSION {
            let what = "the label has a version from before the first release";
            return Err(LabelProblem::Damaged(what));
        }
        let unknown = raw.features.get() & !FEATURES;
        if unknown != 0 {
            return Err(LabelProblem::Features(unknown));
        }
        raw.validated().map_err(LabelProblem::Damaged)
    }
}

impl Raw {
    fn validated(&self) -> Result<Label, &'static str> {
        let kind = match self.kind {
            1 => LayoutKind::Concat,
            2 => LayoutKind::Stripe,
            3 => LayoutKind::Mirror,
            _ => return Err("the label names a kind of volume that there is not"),
        };
        let mut members = Vec::new();
        for raw in &self.members {
            members.push(raw.validated()?);
        }
        while members.last().is_some_and(|m| m.state == MemberState::Empty) {
            members.pop();
        }
        for (member, left) in members.iter_mut().zip(&self.left) {
            let (first, last) = (left.first.get(), left.last.get());
            member.left = (last != 0).then_some(DepartureRange { first, last });
        }
        if self.generation.get() > GENERATION_MAX || self.base.get() > self.generation.get() {
            return Err("the label's generation cannot be");
        }
        let own = members.get(usize::from(self.slot));
        let Some(own) = own.filter(|m| m.state != MemberState::Empty) else {
            return Err("the label's own place in its table of members is empty");
        };
        let used = |m: &&Member| m.state != MemberState::Empty;
        let twice = |(n, a): (usize, &Member)| {
            used(&a) && members[n + 1..].iter().filter(used).any(|b| b.uuid == a.uuid)
        };
        if members.iter().enumerate().any(twice) {
            return Err("the label names a member twice");
        }
        if own.partial && (!own.volatile || kind != LayoutKind::Mirror) {
            return Err("the label is of a partial leg that is not volatile");
        }
        if members.len() > LEGS_MAX + SPARES_MAX && kind == LayoutKind::Mirror {
            return Err("the label names more legs than a mirror can have");
        }
        let (size, region) = (self.size.get(), self.region_bytes.get());
        if size == 0 || !size.is_multiple_of(BLOCK) {
            return Err("the label's size of the volume is not whole blocks");
        }
        let good_region = region.is_power_of_two() && (REGION_MIN..=REGION_MAX).contains(&region);
        if kind == LayoutKind::Mirror
            && (!good_region || size.div_ceil(u64::from(region)) > self.regions_max(own))
        {
            return Err("the label's regions do not fit in its map");
        }
        let interlace = self.interlace.get();
        if kind == LayoutKind::Stripe
            && (interlace == 0 || !u64::from(interlace).is_multiple_of(BLOCK))
        {
            return Err("the label's interlace is not whole blocks");
        }
        let (start, device) = (self.data_start.get(), self.device_bytes.get());
        if !start.is_multiple_of(BLOCK) || start >= device || device > i64::MAX as u64 {
            return Err("the label's data does not begin on its device");
        }
        // What a program allocates for a volume is bounded by the device that names it. Nothing is
        // for what a partial leg's label says: it is not trusted of the volume.
        let end = start.checked_add(size).and_then(|end| end.checked_add(BLOCK));
        if kind == LayoutKind::Mirror && !own.partial && end.is_none_or(|end| end > device) {
            return Err("the label's volume is larger than its device");
        }
        let map_end = super::MAP_AT + 2 * BLOCK * u64::from(self.map_blocks.get());
        if map_end > start {
            return Err("the label's map runs into the data");
        }
        let checksums = self.features.get() & CHECKSUMS != 0;
        self.check_area(checksums && !own.partial, kind)?;
        Ok(Label {
            volume: Uuid::from_bytes(self.volume),
            name: text(&self.name)?,
            kind,
            slot: usize::from(self.slot),
            generation: self.generation.get(),
            base: self.base.get(),
            data: Uuid::from_bytes(self.data),
            incarnation: Uuid::from_bytes(self.incarnation),
            closed: self.flags & 1 != 0,
            size,
            region_bytes: region,
            interlace,
            data_start: start,
            device_bytes: device,
            map_blocks: self.map_blocks.get(),
            policies: self.policies,
            checksums,
            history: self.ancestors(),
            forgotten: self.forgotten.get(),
            members,
        })
    }

    /// Only mirrors have checksums, and those of all regions lie before the data.
    fn check_area(&self, checksums: bool, kind: LayoutKind) -> Result<(), &'static str> {
        if !checksums {
            return Ok(());
        }
        let region = self.region_bytes.get();
        if kind != LayoutKind::Mirror || region < checksums::REGION_MIN {
            return Err("the label gives checksums to a volume that cannot have them");
        }
        let room = checksums::room(self.map_blocks.get(), self.data_start.get(), region.into());
        match self.size.get().div_ceil(region.into()) <= room {
            true => Ok(()),
            false => Err("the label's checksums run into the data"),
        }
    }

    fn regions_max(&self, own: &Member) -> u64 {
        if own.partial {
            return REGIONS_MAX;
        }
        (u64::from(self.map_blocks.get()) * super::map::RECORDS as u64).min(REGIONS_MAX)
    }

    fn ancestors(&self) -> Vec<Ancestor> {
        let one = |a: &RawAncestor| Ancestor {
            generation: a.generation.get(),
            data: Uuid::from_bytes(a.data),
        };
        self.history.iter().take(usize::from(self.ancestors)).map(one).collect()
    }
}

impl RawMember {
    fn validated(&self) -> Result<Member, &'static str> {
        let state = match self.state {
            0 => MemberState::Empty,
            1 => MemberState::Active,
            2 => MemberState::Offline,
            3 => MemberState::Failed,
            4 => MemberState::Spare,
            5 => MemberState::Missing,
            _ => return Err("the label gives a member a state that there is not"),
        };
        Ok(Member {
            uuid: Uuid::from_bytes(self.uuid),
            bytes: self.bytes.get(),
            state,
            volatile: self.flags & 1 != 0,
            partial: self.flags & 2 != 0,
            name: text(&self.name)?,
            left: None,
        })
    }
}

fn text(raw: &[u8; NAME_MAX]) -> Result<String, &'static str> {
    let end = raw.iter().position(|b| *b == 0).unwrap_or(NAME_MAX);
    let text = std::str::from_utf8(&raw[..end]).map_err(|_| "a name in the label is no text")?;
    if text.chars().any(char::is_control) {
        return Err("a name in the label has control characters");
    }
    Ok(text.to_owned())
}

/// The last so many bytes that fit, on a character's border: the end of a path says most.
pub(crate) fn truncated(name: &str) -> &str {
    let mut from = name.len().saturating_sub(NAME_MAX);
    while !name.is_char_boundary(from) {
        from += 1;
    }
    &name[from..]
}

#[cfg(test)]
mod tests;
