//! Trials: one state a crash point, drawn. For statistics: each is an independent experiment.

use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::{CutEffect, DeviceId, Moment, Recording};
use steadfast_devices::store::Store;

use super::{SettledContents, State, Unit};

/// What a device may hold at a crash point: the number of writes and discards that are settled, and
/// each later one, by its tick, with what the cut may do to it. Where that is equal, the states
/// that may be left are the same.
type Outlook = (usize, Vec<(u64, CutEffect)>);

/// A device of a run.
struct Device {
    followed: SettledContents,
    /// How many of the settled requests were writes and discards.
    changes: usize,
}

/// Makes the trials of a run.
pub(super) struct Trials {
    devices: Vec<Device>,
    last: Vec<Outlook>,
    place: u64,
}

impl Trials {
    pub fn new(bases: &[Store]) -> Trials {
        let follow = |base: &Store| Device { followed: SettledContents::new(base), changes: 0 };
        Trials { devices: bases.iter().map(follow).collect(), last: Vec::new(), place: 0 }
    }

    /// The trial of this number.
    pub fn make(
        &mut self,
        recording: &Recording,
        number: u64,
        cut: Moment,
        mut choices: Rng,
    ) -> State {
        let (mut in_doubt, mut kept) = (Vec::new(), Vec::new());
        let mut left = |(device, id): (&mut Device, u32)| {
            let mut each = |unit: Unit, keep: bool| {
                in_doubt.push(unit);
                kept.push(keep);
            };
            device.cut(recording, id, cut, &mut choices, &mut each)
        };
        let contents = self.devices.iter_mut().zip(0..).map(&mut left).collect();
        let outlook = |(device, id): (&Device, u32)| device.outlook(recording, id, cut);
        let outlook: Vec<Outlook> = self.devices.iter().zip(0..).map(outlook).collect();
        // What has happened does not un-happen: places that are the same follow one another.
        if outlook != self.last {
            (self.last, self.place) = (outlook, number);
        }
        let place = self.place;
        State { number, cut, place, contents, in_doubt, kept, choices }
    }
}

impl Device {
    /// What the device may hold after the crash point that was just made.
    fn outlook(&self, recording: &Recording, device: u32, cut: Moment) -> Outlook {
        let open = recording.at_moment(DeviceId(device), cut);
        let open =
            open.changes(self.followed.settled).map(|(event, fate)| (event.submitted.tick, fate));
        (self.changes, open.collect())
    }

    /// What the device may hold; `each` gets each unit in doubt and whether it is there. A
    /// third of the time each: nothing in doubt is there, all of it is, each unit is or is not.
    fn cut(
        &mut self,
        recording: &Recording,
        device: u32,
        cut: Moment,
        choices: &mut Rng,
        each: &mut dyn FnMut(Unit, bool),
    ) -> Store {
        let at = recording.at_moment(DeviceId(device), cut);
        self.changes += self.followed.follow(&at).filter(|e| at.fate(e).is_some()).count();
        let keep_percent = match choices.below(3) {
            0 => 0,
            1 => 100,
            _ => choices.below(101),
        };
        at.contents_where(&self.followed.base, self.followed.settled, |event, offset| {
            let keep = choices.percent(keep_percent);
            each(Unit { device, submitted: event.submitted.tick, offset }, keep);
            keep
        })
    }
}
