//! Devices that are memory: the two ways to the same bytes.

use super::{Device, Verdict, block, data, expect, same, write};
use crate::{BlockError, DeviceInfo};

pub(super) fn same_bytes(device: &Device, info: &DeviceInfo) -> Verdict {
    let Some(memory) = device.direct_memory() else { return Ok(()) };
    let b = block(info);
    let text = |e: BlockError| format!("direct memory: {e}");
    let mut model = data(1, 0, 4 * b);
    write(device, 0, &model)?;
    let mut got = vec![0; model.len()];
    memory.load(0, &mut got).map_err(text)?;
    same(&got, &model, 0, "loaded after a block write")?;

    let piece = b"bytes that begin and end anywhere";
    for at in [3, b as usize - 5, 2 * b as usize + 8] {
        memory.store(at as u64, piece).map_err(text)?;
        memory.persist(at as u64, piece.len() as u64).map_err(text)?;
        memory.fence().map_err(text)?;
        model[at..at + piece.len()].copy_from_slice(piece);
        expect(device, 0, &model, "read by blocks after a store")?;
        let mut got = vec![0; piece.len()];
        memory.load(at as u64, &mut got).map_err(text)?;
        same(&got, piece, at as u64, "loaded after a store")?;
    }

    let mut out = [0; 16];
    for at in [info.size, info.size - 8, u64::MAX - 7] {
        if memory.load(at, &mut out).is_ok() || memory.store(at, &[9; 16]).is_ok() {
            return Err(format!("direct memory: 16 bytes at byte {at} were accepted"));
        }
    }
    expect(device, 0, &model, "after refused stores")
}
