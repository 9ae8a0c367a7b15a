//! The keys of DiskSim's blocks, and what may stand behind them.
//!
//! From the `.modspec` files of DiskSim 4.0 (`src/modules/disk`, `diskmodel/modules/disk`,
//! `mech_g1`, `layout_g1`, `layout_g1_zone`), which its own reader is made from.

use steadfast_vfs::options::closest;

use super::syntax::{Block, Value};

/// What stands behind a key.
#[derive(Debug, Clone, Copy)]
enum ValueForm {
    /// A number from 0 to this.
    Number(f64),
    /// Any number.
    Any,
    Word,
    List,
    Block,
}

use ValueForm::{Any, List, Number, Word};

/// Times and counts.
const FREE: ValueForm = Number(f64::MAX);
const SWITCH: ValueForm = Number(1.0);
const LEVEL: ValueForm = Number(2.0);

const DISK: &[(&str, ValueForm)] = &[
    ("Model", ValueForm::Block),
    ("Scheduler", ValueForm::Block),
    ("Max queue length", FREE),
    ("Bulk sector transfer time", FREE),
    ("Segment size (in blks)", FREE),
    ("Number of buffer segments", FREE),
    ("Print stats", SWITCH),
    ("Per-request overhead time", FREE),
    ("Time scale for overheads", FREE),
    ("Hold bus entire read xfer", SWITCH),
    ("Hold bus entire write xfer", SWITCH),
    ("Allow almost read hits", SWITCH),
    ("Allow sneaky full read hits", SWITCH),
    ("Allow sneaky partial read hits", SWITCH),
    ("Allow sneaky intermediate read hits", SWITCH),
    ("Allow read hits on write data", SWITCH),
    ("Allow write prebuffering", SWITCH),
    ("Preseeking level", LEVEL),
    ("Never disconnect", SWITCH),
    ("Avg sectors per cylinder", FREE),
    ("Maximum number of write segments", FREE),
    ("Use separate write segment", SWITCH),
    ("Low (write) water mark", SWITCH),
    ("High (read) water mark", SWITCH),
    ("Set watermark by reqsize", SWITCH),
    ("Calc sector by sector", SWITCH),
    ("Enable caching in buffer", LEVEL),
    ("Buffer continuous read", Number(4.0)),
    ("Minimum read-ahead (blks)", FREE),
    ("Maximum read-ahead (blks)", FREE),
    ("Read-ahead over requested", Any),
    ("Read-ahead on idle hit", SWITCH),
    ("Read any free blocks", SWITCH),
    ("Fast write level", LEVEL),
    ("Combine seq writes", SWITCH),
    ("Stop prefetch in sector", SWITCH),
    ("Disconnect write if seek", SWITCH),
    ("Write hit stop prefetch", SWITCH),
    ("Read directly to buffer", SWITCH),
    ("Immed transfer partial hit", SWITCH),
    ("Read hit over. after read", FREE),
    ("Read hit over. after write", FREE),
    ("Read miss over. after read", FREE),
    ("Read miss over. after write", FREE),
    ("Write hit over. after read", FREE),
    ("Write hit over. after write", FREE),
    ("Write miss over. after read", FREE),
    ("Write miss over. after write", FREE),
    ("Read completion overhead", FREE),
    ("Write completion overhead", FREE),
    ("Data preparation overhead", FREE),
    ("First reselect overhead", FREE),
    ("Other reselect overhead", FREE),
    ("Read disconnect afterread", FREE),
    ("Read disconnect afterwrite", FREE),
    ("Write disconnect overhead", FREE),
    ("Extra write disconnect", SWITCH),
    ("Extradisc command overhead", FREE),
    ("Extradisc disconnect overhead", FREE),
    ("Extradisc inter-disconnect delay", FREE),
    ("Extradisc 2nd disconnect overhead", FREE),
    ("Extradisc seek delta", FREE),
    ("Minimum seek delay", FREE),
    ("Immediate buffer read", LEVEL),
    ("Immediate buffer write", LEVEL),
];

const MODEL: &[(&str, ValueForm)] = &[
    ("Block count", FREE),
    ("Number of data surfaces", FREE),
    ("Number of cylinders", FREE),
    ("Mechanical Model", ValueForm::Block),
    ("Layout Model", ValueForm::Block),
];

const MECHANICS: &[(&str, ValueForm)] = &[
    ("Access time type", Word),
    ("Constant access time", FREE),
    ("Seek type", Word),
    ("Average seek time", FREE),
    ("Constant seek time", FREE),
    ("Single cylinder seek time", FREE),
    ("Full strobe seek time", FREE),
    // The manual's other spelling.
    ("Full stroke seek time", FREE),
    ("Full seek curve", Word),
    ("Add. write settling delay", Any),
    ("Head switch time", FREE),
    ("Rotation speed (in rpms)", FREE),
    ("Percent error in rpms", Number(100.0)),
    ("First ten seek times", List),
    ("HPL seek equation values", List),
];

const LAYOUT: &[(&str, ValueForm)] = &[
    ("LBN-to-PBN mapping scheme", Number(2.0)),
    ("Sparing scheme used", Number(10.0)),
    ("Rangesize for sparing", FREE),
    ("Skew units", Word),
    ("Zones", List),
];

const ZONE: &[(&str, ValueForm)] = &[
    ("First cylinder number", FREE),
    ("Last cylinder number", FREE),
    ("Blocks per track", FREE),
    ("Offset of first block", FREE),
    ("Skew units", Word),
    ("Empty space at zone front", FREE),
    ("Skew for track switch", FREE),
    ("Skew for cylinder switch", FREE),
    ("Number of spares", FREE),
    ("slips", List),
    ("defects", List),
];

/// Refuses what DiskSim would not know, in a disk and all that is in it.
pub(super) fn check(disk: &Block, model: &Block) -> Result<(), String> {
    of_block(disk, DISK)?;
    of_block(model, MODEL)?;
    let inner = |key: &str| match model.values.get(key) {
        Some(Value::Block(block)) => Some(block),
        _ => None,
    };
    if let Some(mechanics) = inner("Mechanical Model") {
        of_block(mechanics, MECHANICS)?;
        ["First ten seek times", "HPL seek equation values"]
            .into_iter()
            .try_for_each(|key| numbers(mechanics, key))?;
    }
    let Some(layout) = inner("Layout Model") else { return Ok(()) };
    of_block(layout, LAYOUT)?;
    for zone in layout.list("Zones") {
        let Value::Block(zone) = zone else { return Err("a zone is no block".into()) };
        of_block(zone, ZONE)?;
        ["slips", "defects"].into_iter().try_for_each(|key| numbers(zone, key))?;
    }
    Ok(())
}

/// A list of nothing but numbers.
fn numbers(block: &Block, key: &str) -> Result<(), String> {
    let is_number = |value: &Value| matches!(value, Value::Number(_));
    match block.list(key).iter().all(is_number) {
        true => Ok(()),
        false => Err(format!("'{key}' in {}: holds what is no number", block.kind)),
    }
}

fn of_block(block: &Block, known: &[(&str, ValueForm)]) -> Result<(), String> {
    for (key, value) in &block.values {
        let wrong = |what: String| Err(format!("'{key}' in {}: {what}", block.kind));
        let Some((_, kind)) = known.iter().find(|(name, _)| name == key) else {
            let near = closest(key, known.iter().map(|(name, _)| *name));
            let hint = near.map_or(String::new(), |near| format!("; did you mean '{near}'?"));
            return wrong(format!("is no key of DiskSim's{hint}"));
        };
        match (kind, value) {
            (Number(most), Value::Number(n)) if !(0.0..=*most).contains(n) => {
                let most = if *most == f64::MAX { String::new() } else { format!(" to {most}") };
                return wrong(format!("is {n}, but goes from 0{most}"));
            }
            (Number(_) | Any, Value::Number(_))
            | (Word, Value::Word(_))
            | (List, Value::List(_))
            | (ValueForm::Block, Value::Block(_) | Value::Source(_)) => {}
            // Names of files and models may begin with digits only.
            (Word, Value::Number(_)) => {}
            _ => return wrong("has the wrong form".into()),
        }
    }
    Ok(())
}
