//! `[volume.NAME]`: devices made of devices.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_setup::mirrors::Arrangement;
use steadfast_setup::{VolumeKind, VolumeSpec};
use steadfast_volume::ondisk::label::{LEGS_MAX, MEMBERS_MAX};
use steadfast_volume::ondisk::{REGION_MAX, REGION_MIN};
use steadfast_volume::{ReadPolicy, WritePolicy};

use super::fields::Fields;
use super::read::count;
use super::wrong::did_you_mean;
use crate::size;

/// Keys that only a mirror has.
const OF_MIRROR: [&str; 7] = ["volatile", "partial", "size", "read", "write", "region_kb", MODEL];
const MODEL: &str = "model";
/// A key that only a stripe has.
const OF_STRIPE: &str = "interlace_kb";
const READ_POLICIES: [&str; 5] = ["roundrobin", "geometric", "first", "preferred:", "adaptive"];
const WRITE_POLICIES: [&str; 3] = ["parallel", "serial", "write-behind"];

/// Reads one; `known`: the names of all devices and volumes, `devices`: those of the devices.
pub(super) fn volume(
    fields: &Fields<'_, '_>,
    known: &BTreeSet<String>,
    devices: &BTreeSet<String>,
) -> Option<VolumeSpec> {
    let kind = kind(fields);
    let members: Option<Vec<String>> = fields.take("members");
    let members = members.filter(|m| members_are_there(fields, m, known, kind));
    let volatile: Option<Vec<String>> = fields.take("volatile");
    let partial: Option<Vec<String>> = fields.take("partial");
    let legs = members.as_deref();
    if let (Some(partial), Some(legs)) = (&partial, legs) {
        for name in partial.iter().filter(|name| !legs.contains(name)) {
            let help = did_you_mean(name, legs.iter().map(String::as_str));
            fields.wrong_word("partial", name, format!("`{name}` is none of the members{help}"));
        }
        if partial.len() > 1 {
            fields.wrong("partial", "a mirror has one partial leg at most", "name one of them");
        }
    }
    if let (Some(volatile), Some(legs)) = (&volatile, legs) {
        for name in volatile.iter().filter(|name| !legs.contains(name)) {
            let help = did_you_mean(name, legs.iter().map(String::as_str));
            fields.wrong_word("volatile", name, format!("`{name}` is none of the members{help}"));
        }
        if legs
            .iter()
            .all(|leg| volatile.contains(leg) || partial.iter().flatten().any(|p| p == leg))
        {
            let help = "nothing would survive a power cut: leave one leg out";
            fields.wrong("volatile", "no leg counts as durable", help);
        }
    }
    let (read, write) = (read_policy(fields, legs), write_policy(fields));
    let model = model(fields, legs, devices);
    let region = fields.value("region_kb").map(|_| region_bytes(fields));
    let size = fields.value("size").map(|_| size_of_mirror(fields));
    let interlace = count(fields, OF_STRIPE, 4, 100 << 10);
    if interlace.is_some_and(|kb| !kb.is_multiple_of(4)) {
        fields.wrong(OF_STRIPE, "an interlace is whole blocks of 4 KiB", "");
    }
    Some(VolumeSpec {
        kind: kind?,
        members: members?,
        volatile: volatile?,
        partial: partial?,
        size: size.map_or(Some(None), |size| size.map(Some))?,
        read: read?,
        write: write?,
        region_bytes: region.map_or(Some(None), |region| region.map(Some))?,
        // OK to cast: bounded just above.
        interlace_bytes: (interlace? << 10) as u32,
        model: model?,
    })
}

fn kind(fields: &Fields<'_, '_>) -> Option<VolumeKind> {
    let name: String = fields.take("kind")?;
    let Some((_, kind)) = VolumeKind::ALL.iter().find(|(known, _)| *known == name) else {
        let help = did_you_mean(&name, VolumeKind::ALL.map(|(name, _)| name));
        fields.wrong("kind", format!("there is no kind of volume `{name}`"), help);
        return None;
    };
    let others: &[&str] = match kind {
        VolumeKind::Mirror => &[OF_STRIPE],
        VolumeKind::Stripe => &OF_MIRROR,
        VolumeKind::Concat => {
            &["volatile", "partial", "size", "read", "write", "region_kb", MODEL, OF_STRIPE]
        }
    };
    for key in others.iter().filter(|key| fields.value(key).is_some()) {
        let of = if *key == OF_STRIPE { "stripes" } else { "mirrors" };
        fields.wrong(key, format!("`{key}` is for {of}"), format!("this is a {name}"));
    }
    Some(*kind)
}

/// Notes members that are not there, or there twice, and too many or too few.
fn members_are_there(
    fields: &Fields<'_, '_>,
    members: &[String],
    known: &BTreeSet<String>,
    kind: Option<VolumeKind>,
) -> bool {
    let most = if kind == Some(VolumeKind::Mirror) { LEGS_MAX } else { MEMBERS_MAX };
    let mut good = (1..=most).contains(&members.len());
    if !good {
        let name = kind.map_or("volume", VolumeKind::name);
        let what = format!("a {name} has 1 to {most} members, not {}", members.len());
        fields.wrong("members", what, "");
    }
    for (n, name) in members.iter().enumerate() {
        if !known.contains(name) {
            let help = did_you_mean(name, known.iter().map(String::as_str));
            let help = if help.is_empty() { help } else { format!(": {help}") };
            fields.wrong_word("members", name, format!("there is no device `{name}`{help}"));
            good = false;
        } else if members[..n].contains(name) {
            fields.wrong("members", format!("`{name}` is a member twice"), "");
            good = false;
        }
    }
    good
}

fn read_policy(fields: &Fields<'_, '_>, legs: Option<&[String]>) -> Option<ReadPolicy> {
    let name: String = fields.take("read")?;
    let Some(leg) = name.strip_prefix("preferred:") else {
        // A place is not for a file: the leg's name is.
        return ReadPolicy::named(&name).or_else(|| {
            let help = did_you_mean(&name, READ_POLICIES);
            fields.wrong("read", format!("there is no read policy `{name}`"), help);
            None
        });
    };
    let legs = legs?;
    let slot = legs.iter().position(|name| name == leg);
    if slot.is_none() {
        let help = did_you_mean(leg, legs.iter().map(String::as_str));
        fields.wrong("read", format!("`{leg}` is none of the members"), help);
    }
    slot.map(ReadPolicy::Preferred)
}

fn write_policy(fields: &Fields<'_, '_>) -> Option<WritePolicy> {
    let name: String = fields.take("write")?;
    let policy = WritePolicy::named(&name);
    if policy.is_none() {
        let help = did_you_mean(&name, WRITE_POLICIES);
        fields.wrong("write", format!("there is no write policy `{name}`"), help);
    }
    policy
}

/// Whose mirror it is: a model has devices as legs, and policies of its own.
fn model(
    fields: &Fields<'_, '_>,
    legs: Option<&[String]>,
    devices: &BTreeSet<String>,
) -> Option<Option<Arrangement>> {
    if fields.value(MODEL).is_none() {
        return Some(None);
    }
    let name: String = fields.take(MODEL)?;
    let Some(model) = Arrangement::of_name(&name) else {
        let help = did_you_mean(&name, Arrangement::ALL.map(|(name, _)| name));
        fields.wrong(MODEL, format!("there is no model `{name}`"), help);
        return None;
    };
    for key in
        ["read", "write", "volatile", "partial"].into_iter().filter(|k| fields.value(k).is_some())
    {
        fields.wrong(key, format!("`{key}` is not for a model: it has its own rules"), "");
    }
    for leg in legs.unwrap_or_default().iter().filter(|leg| !devices.contains(*leg)) {
        fields.wrong_word("members", leg, format!("`{leg}` is no device, as a model's legs are"));
    }
    Some(Some(model))
}

fn size_of_mirror(fields: &Fields<'_, '_>) -> Option<u64> {
    let text: String = fields.take("size")?;
    size::parse(&text).map_err(|what| fields.wrong("size", what.to_string(), "")).ok()
}

fn region_bytes(fields: &Fields<'_, '_>) -> Option<u32> {
    let kb = |bytes: u32| u64::from(bytes >> 10);
    let (least, most) = (kb(REGION_MIN), kb(REGION_MAX));
    let region = count(fields, "region_kb", least, most)?;
    if !region.is_power_of_two() {
        fields.wrong("region_kb", format!("a region of {region} KiB is no power of two"), "");
        return None;
    }
    // OK to cast: bounded just above.
    Some((region << 10) as u32)
}

/// The volumes of a file by name, with their tables for messages.
pub(super) type VolumeFields<'f, 't, 'i> =
    BTreeMap<String, (&'f Fields<'t, 'i>, Option<VolumeSpec>)>;

/// Notes volumes that are made of themselves, and devices that are in one twice; true if there are
/// none.
pub(super) fn trees_are_trees(volumes: &VolumeFields<'_, '_, '_>) -> bool {
    let mut good = true;
    for (name, (fields, _)) in volumes {
        let mut walk = Walk::default();
        walk.down(name, volumes);
        if let Some(around) = walk.around {
            let what = format!("[volume.{name}] is made of itself: {}", around.join(" > "));
            fields.wrong("members", what, "");
            good = false;
        }
        for twice in walk.twice {
            let what = format!("`{twice}` is in [volume.{name}] twice");
            fields.wrong("members", what, "each place needs a device of its own");
            good = false;
        }
    }
    good
}

/// A way down from a volume to its devices. Each volume is gone into once, however often it is
/// named.
#[derive(Default)]
struct Walk {
    above: Vec<String>,
    seen: BTreeSet<String>,
    twice: BTreeSet<String>,
    around: Option<Vec<String>>,
}

impl Walk {
    fn down(&mut self, name: &str, volumes: &VolumeFields<'_, '_, '_>) {
        if self.above.iter().any(|n| n == name) {
            let around = self.above.iter().cloned().chain([name.to_owned()]);
            self.around.get_or_insert_with(|| around.collect());
            return;
        }
        if !self.seen.insert(name.to_owned()) {
            self.twice.insert(name.to_owned());
            return;
        }
        let Some((_, spec)) = volumes.get(name) else { return };
        self.above.push(name.to_owned());
        spec.iter().flat_map(|spec| &spec.members).for_each(|m| self.down(m, volumes));
        self.above.pop();
    }
}
