//! One request after the other, each so long after the answer to the one before as in the trace.

use steadfast_block::{BlockDevice, Request};
use steadfast_devices::model::{Hdd, HddParams};
use steadfast_runtime::{Sim, now, sleep};

use super::Times;
use super::trace::TraceRequest;

const SECTOR: u64 = 512;

/// The times of the model, in virtual time.
pub(super) fn replay(p: &HddParams, requests: &[TraceRequest]) -> Result<Times, String> {
    let (p, all) = (p.clone(), requests.to_vec());
    let model = Sim::new(1).run(move || {
        let disk = Hdd::new("drive", &p).map_err(|e| e.to_string())?;
        all.iter().map(|request| respond(&disk, request)).collect::<Result<Vec<f64>, String>>()
    });
    let model = model.map_err(|e| e.to_string())??;
    Ok(Times {
        writes: requests.iter().map(|r| r.writes).collect(),
        drive: requests.iter().map(|r| r.response.as_secs_f64() * 1e3).collect(),
        model,
    })
}

/// Milliseconds that the model takes for a request; then the host thinks.
fn respond(disk: &Hdd, request: &TraceRequest) -> Result<f64, String> {
    let (offset, len) = (request.sector * SECTOR, request.sectors * SECTOR);
    let start = now();
    let request_of = match request.writes {
        true => Request::Write { offset, data: vec![0; len as usize].into(), fua: false },
        false => Request::Read { offset, len },
    };
    disk.submit(request_of).wait().map_err(|e| e.to_string())?;
    let took = now().since(start).as_secs_f64() * 1e3;
    sleep(request.think);
    Ok(took)
}
