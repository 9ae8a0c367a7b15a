//! Legs whose queue is full: whoever submits waits then, and must hold nothing that the answers of
//! others need.

use std::sync::Arc;

use steadfast_block::{BlockDevice, Request};
use steadfast_devices::model::{Model, ModelParams, SsdParams};
use steadfast_runtime::{sleep, spawn};
use steadfast_volume::{NewLeg, ResyncThrottle, create_mirror};

use crate::bench::{BLOCK, REGION, options, simulated};
use crate::campaign::truth::bytes_of;

/// A leg that takes one request at a time.
fn narrow(name: &str) -> NewLeg {
    let params = SsdParams { sectors: 8192, queue_depth: 1, ..SsdParams::default() };
    let device: Arc<dyn Model> = ModelParams::Ssd(params).build(name).unwrap();
    NewLeg { force: true, ..NewLeg::new(device as Arc<dyn BlockDevice>) }
}

#[test]
fn a_leg_that_takes_one_request_at_a_time_holds_nobody_up() {
    simulated(|| {
        let legs = [narrow("a"), narrow("b")];
        let mirror = create_mirror("m", &legs, &options()).unwrap();
        mirror.keep(std::time::Duration::from_millis(3), ResyncThrottle::default());
        let tasks: Vec<_> = (0..8)
            .map(|task| {
                let mirror = mirror.clone();
                spawn("writer", move || {
                    for n in 0..30 {
                        let block = (n * 8 + task) % 256;
                        mirror.write(block * BLOCK, bytes_of(n + 1, block).into()).unwrap();
                        match (n + task) % 10 {
                            3 => mirror.flush().unwrap(),
                            7 => sleep(std::time::Duration::from_millis(10)),
                            9 => {
                                let offset = block * BLOCK / REGION * REGION;
                                let discard = Request::Discard { offset, len: REGION };
                                mirror.submit(discard).wait().map(drop).unwrap();
                            }
                            _ => {}
                        }
                    }
                })
            })
            .collect();
        // A leg is given what it lacks meanwhile.
        mirror.replace(1, Some(&narrow("c"))).unwrap();
        while !mirror.resync(ResyncThrottle::default()).unwrap().complete {
            sleep(std::time::Duration::from_millis(1));
        }
        tasks.into_iter().for_each(|task| task.join().unwrap());
        mirror.close().unwrap();
    });
}
