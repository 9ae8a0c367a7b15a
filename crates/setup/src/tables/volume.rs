//! `[volume.NAME]`: devices made of devices.

use steadfast_devices::model::parameters::Size;
use steadfast_volume::ondisk::label::{LEGS_MAX, LayoutKind, MEMBERS_MAX};
use steadfast_volume::ondisk::{REGION_MAX, REGION_MIN};
use steadfast_volume::{ReadPolicy, WritePolicy};

use crate::form::{Fields, FormValue, Value, did_you_mean, one_of};
use crate::mirrors::Arrangement;
use crate::tables::nesting::{Members, check_nesting};
use crate::{Topology, VolumeSpec, single_values, table};

table! {
    /// A volume, as a file has it.
    pub struct VolumeForm: "[volume.NAME]", check VolumeForm::check {
        /// `mirror`, `stripe` or `concat` (docs/mirrors.md).
        kind: LayoutKind;
        /// Names of devices and other volumes: of a mirror its legs, 1 to 4, in their order.
        members: Vec<String>;
        /// Legs of a mirror that do not count as durable; devices that are volatile anyway, such
        /// as `ram`, need not be named.
        volatile: Vec<String> = [];
        /// The leg of a mirror that may be smaller than it, and holds the regions that are read
        /// most; it does not count as durable. One at most.
        partial: Vec<String> = [];
        /// Size of a mirror (k, m, g).
        size: Option<Size>, else "all that its legs have room for";
        /// Which leg answers a read: `roundrobin`, `geometric`, `first`, `preferred:LEG` or
        /// `adaptive`.
        read: String = "roundrobin";
        /// How a write goes to the legs: `parallel`, `serial`, `write-behind`.
        write: WritePolicy = "parallel";
        /// Region of a mirror in KiB: a power of two.
        region_kb: Option<u32>, else "a 16384th of the size, 64 to 1024", from 4 to 65536;
        /// A model of another software's mirror instead: `svm`, `svm-recreated`, `md`,
        /// `write-back-cache`, `plain`, `control-late-map`, `control-volatile-source`.
        model: Option<Arrangement>, else "Steadfast's own mirror";
        /// What a stripe puts on a member in turn, in KiB: a multiple of 4.
        interlace_kb: u32 = 64, from 4 to 102400;
    }
}

// The bounds of `region_kb`.
const _: () = assert!(REGION_MIN == 4 << 10 && REGION_MAX == 65_536 << 10);

/// Keys that only a mirror has.
const OF_MIRROR: [&str; 7] = ["volatile", "partial", "size", "read", "write", "region_kb", "model"];
/// A key that only a stripe has.
const OF_STRIPE: &str = "interlace_kb";
const READ_POLICIES: [&str; 5] = ["roundrobin", "geometric", "first", "preferred:", "adaptive"];

single_values!(Size);

impl Value for LayoutKind {
    fn read(place: &FormValue<'_>) -> Option<Self> {
        let all = [LayoutKind::Mirror, LayoutKind::Stripe, LayoutKind::Concat];
        one_of(place, "there is no kind of volume", &all.map(|kind| (kind.name(), kind)))
    }
}

impl Value for Arrangement {
    fn read(place: &FormValue<'_>) -> Option<Self> {
        one_of(place, "there is no model", &Arrangement::ALL)
    }
}

impl Value for WritePolicy {
    fn read(place: &FormValue<'_>) -> Option<Self> {
        let all = [WritePolicy::Parallel, WritePolicy::Serial, WritePolicy::WriteBehind];
        one_of(place, "there is no write policy", &all.map(|policy| (policy.name(), policy)))
    }
}

impl Value for VolumeSpec {
    const TITLE: Option<&'static str> = Some(VolumeForm::TITLE);

    fn read(place: &FormValue<'_>) -> Option<Self> {
        let form = VolumeForm::read(place)?;
        Some(VolumeSpec {
            kind: form.kind,
            // Where there is none, the check notes it.
            read: form.read_policy()?,
            members: form.members,
            volatile: form.volatile,
            partial: form.partial,
            size: form.size.map(|size| size.0),
            write: form.write,
            region_bytes: form.region_kb.map(|kb| kb << 10),
            interlace_bytes: form.interlace_kb << 10,
            model: form.model,
        })
    }
}

impl VolumeForm {
    fn read_policy(&self) -> Option<ReadPolicy> {
        match self.read.strip_prefix("preferred:") {
            // A place is not for a file: the leg's name is.
            None => ReadPolicy::named(&self.read),
            Some(leg) => self.members.iter().position(|m| m == leg).map(ReadPolicy::Preferred),
        }
    }

    fn check(fields: &Fields<'_>, form: Option<&VolumeForm>) {
        let Some(form) = form else { return };
        let name = form.kind.name();
        let (others, most): (&[&[&str]], _) = match form.kind {
            LayoutKind::Mirror => (&[&[OF_STRIPE]], LEGS_MAX),
            LayoutKind::Stripe => (&[&OF_MIRROR], MEMBERS_MAX),
            LayoutKind::Concat => (&[&OF_MIRROR, &[OF_STRIPE]], MEMBERS_MAX),
        };
        for key in others.iter().copied().flatten().filter(|key| fields.has(key)) {
            let of = if *key == OF_STRIPE { "stripes" } else { "mirrors" };
            fields.wrong(key, format!("`{key}` is for {of}"), format!("this is a {name}"));
        }
        let legs = &form.members;
        if !(1..=most).contains(&legs.len()) {
            let what = format!("a {name} has 1 to {most} members, not {}", legs.len());
            fields.wrong("members", what, "");
        }
        for (n, name) in legs.iter().enumerate() {
            if legs[..n].contains(name) {
                fields.wrong("members", format!("`{name}` is a member twice"), "");
            }
        }
        for (key, names) in [("volatile", &form.volatile), ("partial", &form.partial)] {
            for name in names.iter().filter(|name| !legs.contains(name)) {
                let help = did_you_mean(name, legs.iter().map(String::as_str));
                fields.wrong_word(key, name, format!("`{name}` is none of the members: {help}"));
            }
        }
        if form.partial.len() > 1 {
            fields.wrong("partial", "a mirror has one partial leg at most", "name one of them");
        }
        let (volatile, partial) = (&form.volatile, &form.partial);
        let is_durable = |leg: &String| !volatile.contains(leg) && !partial.contains(leg);
        if !legs.is_empty() && !legs.iter().any(is_durable) {
            let help = "nothing would survive a power cut: leave one leg out";
            fields.wrong("volatile", "no leg counts as durable", help);
        }
        if form.read_policy().is_none() {
            let (what, help) = match form.read.strip_prefix("preferred:") {
                Some(leg) => (
                    format!("`{leg}` is none of the members"),
                    did_you_mean(leg, legs.iter().map(String::as_str)),
                ),
                None => (
                    format!("there is no read policy `{}`", form.read),
                    did_you_mean(&form.read, READ_POLICIES),
                ),
            };
            fields.wrong("read", what, help);
        }
        for key in ["read", "write", "volatile", "partial"] {
            if form.model.is_some() && fields.has(key) {
                fields.wrong(key, format!("`{key}` is not for a model: it has its own rules"), "");
            }
        }
        if let Some(kb) = form.region_kb.filter(|kb| !kb.is_power_of_two()) {
            fields.wrong("region_kb", format!("a region of {kb} KiB is no power of two"), "");
        }
        if !form.interlace_kb.is_multiple_of(4) {
            fields.wrong(OF_STRIPE, "an interlace is whole blocks of 4 KiB", "");
        }
    }
}

/// Notes members that are not there, volumes that are called as a device is or made of themselves,
/// and devices that are in one twice.
pub(crate) fn check_members(top: &Fields<'_>, _: Option<&Topology>) {
    let devices = top.names("device");
    let tables = top.tables_by_name("volume");
    let names = tables.iter().map(|(name, _)| name);
    let known: Vec<&str> = devices.iter().chain(names).map(String::as_str).collect();
    let members: Members<'_> = (tables.iter())
        .map(|(name, fields)| (name.as_str(), fields.get("members").unwrap_or_default()))
        .collect();
    for (name, fields) in &tables {
        for member in members[name.as_str()].iter() {
            if !known.contains(&member.as_str()) {
                let help = did_you_mean(member, known.iter().copied());
                let what = format!("there is no device `{member}`: {help}");
                fields.wrong_word("members", member, what.trim_end_matches(": "));
            } else if fields.has("model") && !devices.contains(member) {
                let what = format!("`{member}` is no device, as a model's legs are");
                fields.wrong_word("members", member, what);
            }
        }
        if devices.contains(name) {
            let what = format!("a device is called `{name}` too");
            fields.wrong("", what, "variants name both: call one of them otherwise");
        }
    }
    check_nesting(&tables, "members", &members);
}
