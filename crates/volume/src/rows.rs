//! Concat and stripe: several components as one device, without redundancy.

use std::sync::Arc;

use steadfast_block::{
    BlockDevice, BlockError, Completion, DeviceInfo, Persistence, Request, check,
};

use crate::joined::{Part, joined, submit_parts};

/// A component: a device, and where its data begins and how long it is.
#[derive(Clone)]
pub(crate) struct Component {
    pub device: Arc<dyn BlockDevice>,
    pub start: u64,
    pub bytes: u64,
}

/// How an offset finds its component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowLayout {
    Concat,
    Stripe { interlace: u64 },
}

/// Components one after the other (concat), or in turn (stripe).
pub(crate) struct Rows {
    name: String,
    components: Vec<Component>,
    way: RowLayout,
    size: u64,
}

/// What is made of such components, as a device.
pub(crate) fn describe(name: &str, is_stripe: bool, size: u64, below: &[DeviceInfo]) -> DeviceInfo {
    let what = if is_stripe { "stripe" } else { "concat" };
    let volatile = below.iter().find_map(|info| match &info.persistence {
        Persistence::Persistent => None,
        Persistence::Volatile { reason } => Some(format!("{}: {reason}", info.name)),
    });
    let most = |of: fn(&DeviceInfo) -> u32| below.iter().map(of).max().unwrap_or(512);
    let logical_block = most(|i| i.logical_block);
    DeviceInfo {
        name: name.to_owned(),
        model: format!("{what} of {}", below.len()),
        size: size - size % u64::from(logical_block),
        logical_block,
        physical_block: most(|i| i.physical_block),
        atomic_write: below.iter().map(|i| i.atomic_write).min().unwrap_or(512),
        volatile_cache: below.iter().any(|i| i.volatile_cache),
        persistence: volatile
            .map_or(Persistence::Persistent, |reason| Persistence::Volatile { reason }),
        rotational: below.iter().any(|i| i.rotational),
        read_only: below.iter().any(|i| i.read_only),
        initialised: below.iter().all(|i| i.initialised),
    }
}

/// A device that is not there: it describes itself, and answers nothing.
pub struct AbsentDevice {
    /// What it was or will be.
    pub info: DeviceInfo,
    /// Why it does not answer.
    pub reason: &'static str,
}

impl AbsentDevice {
    /// A volume that is not made yet.
    pub(crate) fn planned(info: DeviceInfo) -> AbsentDevice {
        AbsentDevice { info, reason: "it is not made yet" }
    }
}

impl BlockDevice for AbsentDevice {
    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn submit(&self, _: Request) -> Completion {
        let (device, reason) = (self.info.name.clone(), self.reason.to_owned());
        Completion::ready(Err(BlockError::Gone { device, reason }))
    }
}

impl Rows {
    pub(crate) fn concat(name: String, components: Vec<Component>, size: u64) -> Rows {
        Rows { name, components, way: RowLayout::Concat, size }
    }

    pub(crate) fn stripe(
        name: String,
        components: Vec<Component>,
        interlace: u64,
        size: u64,
    ) -> Rows {
        Rows { name, components, way: RowLayout::Stripe { interlace }, size }
    }

    /// Where a byte is, and how many follow it there.
    fn place(&self, offset: u64) -> (usize, u64, u64) {
        match self.way {
            RowLayout::Concat => {
                let mut rest = offset;
                for (i, component) in self.components.iter().enumerate() {
                    if rest < component.bytes {
                        return (i, component.start + rest, component.bytes - rest);
                    }
                    rest -= component.bytes;
                }
                // Not reached: requests are inside the size, which is the sum of the components.
                (0, 0, 0)
            }
            RowLayout::Stripe { interlace } => {
                let count = self.components.len() as u64;
                let (unit, inside) = (offset / interlace, offset % interlace);
                let component = (unit % count) as usize;
                let start = self.components[component].start;
                (component, start + unit / count * interlace + inside, interlace - inside)
            }
        }
    }

    fn parts(&self, offset: u64, len: u64) -> Vec<Part<'_>> {
        let mut parts = Vec::new();
        let mut done = 0;
        while done < len {
            let (component, at, room) = self.place(offset + done);
            let bytes = done..done + room.min(len - done);
            done = bytes.end;
            parts.push(Part { device: &self.components[component].device, at, bytes });
        }
        parts
    }

    /// A discard of a stripe is one range on each component, however many units it has.
    fn discards(&self, offset: u64, len: u64) -> Vec<Part<'_>> {
        let mut by_component: Vec<Option<Part<'_>>> =
            self.components.iter().map(|_| None).collect();
        let mut others = Vec::new();
        for part in self.parts(offset, len) {
            let is_its = |c: &Component| Arc::ptr_eq(&c.device, part.device);
            let component = self.components.iter().position(is_its).unwrap_or(0);
            let len = |part: &Part<'_>| part.bytes.end - part.bytes.start;
            match &mut by_component[component] {
                Some(first) if first.at + len(first) == part.at => first.bytes.end += len(&part),
                slot @ None => *slot = Some(part),
                Some(_) => others.push(part),
            }
        }
        by_component.into_iter().flatten().chain(others).collect()
    }
}

impl BlockDevice for Rows {
    fn info(&self) -> DeviceInfo {
        let below: Vec<DeviceInfo> = self.components.iter().map(|c| c.device.info()).collect();
        let is_stripe = self.way != RowLayout::Concat;
        describe(&self.name, is_stripe, self.size, &below)
    }

    fn submit(&self, request: Request) -> Completion {
        if let Err(refused) = check(&self.info(), &request) {
            return Completion::ready(Err(refused));
        }
        match request {
            Request::Discard { offset, len } => submit_parts(&self.discards(offset, len), &request),
            _ => match request.range() {
                Some((offset, len)) => submit_parts(&self.parts(offset, len), &request),
                None => joined(
                    self.components.iter().map(|c| c.device.submit(request.clone())).collect(),
                ),
            },
        }
    }
}
