//! Concat and stripe: several components as one device, without redundancy.

use std::sync::Arc;

use steadfast_block::{
    BlockDevice, BlockError, Completion, DeviceInfo, Payload, Persistence, Request, check,
};

use crate::joined::{Piece, joined, joined_read};

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

/// A piece of a request: on which component, where there, how long, where in the request.
struct Part {
    component: usize,
    offset: u64,
    len: u64,
    at: u64,
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

/// A concat or stripe that is not made yet: it describes itself, and answers nothing.
pub(crate) struct PlannedRows(pub DeviceInfo);

impl BlockDevice for PlannedRows {
    fn info(&self) -> DeviceInfo {
        self.0.clone()
    }

    fn submit(&self, _: Request) -> Completion {
        let (device, reason) = (self.0.name.clone(), "it is not made yet".to_owned());
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

    fn parts(&self, offset: u64, len: u64) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        let mut at = 0;
        while at < len {
            let (component, offset, room) = self.place(offset + at);
            let piece = room.min(len - at);
            parts.push(Part { component, offset, len: piece, at });
            at += piece;
        }
        parts
    }

    /// A discard of a stripe is one range on each component, however many units it has.
    fn discards(&self, offset: u64, len: u64) -> Vec<Part> {
        let mut by_component: Vec<Option<Part>> = self.components.iter().map(|_| None).collect();
        let mut others = Vec::new();
        for part in self.parts(offset, len) {
            match &mut by_component[part.component] {
                Some(first) if first.offset + first.len == part.offset => first.len += part.len,
                slot @ None => *slot = Some(part),
                Some(_) => others.push(part),
            }
        }
        by_component.into_iter().flatten().chain(others).collect()
    }

    fn to_component(&self, part: &Part, request: Request) -> Completion {
        self.components[part.component].device.submit(request)
    }

    fn read_parts(&self, offset: u64, len: u64) -> Completion {
        let parts = self.parts(offset, len);
        let read = |part: &Part| {
            self.to_component(part, Request::Read { offset: part.offset, len: part.len })
        };
        if let [only] = &parts[..] {
            return read(only);
        }
        let pieces = parts.iter().map(|p| Piece { at: p.at as usize, completion: read(p) });
        joined_read(len as usize, pieces.collect())
    }

    fn write_parts(&self, offset: u64, data: &Payload, fua: bool) -> Completion {
        let parts = self.parts(offset, data.len() as u64);
        let write = |part: &Part| {
            let data = data.slice(part.at as usize, part.len as usize);
            self.to_component(part, Request::Write { offset: part.offset, data, fua })
        };
        joined(parts.iter().map(write).collect())
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
            Request::Read { offset, len } => self.read_parts(offset, len),
            Request::Write { offset, data, fua } => self.write_parts(offset, &data, fua),
            Request::Discard { offset, len } => {
                let discard = |p: &Part| {
                    self.to_component(p, Request::Discard { offset: p.offset, len: p.len })
                };
                joined(self.discards(offset, len).iter().map(discard).collect())
            }
            Request::Flush => {
                joined(self.components.iter().map(|c| c.device.submit(Request::Flush)).collect())
            }
        }
    }
}
