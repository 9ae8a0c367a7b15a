//! What a mirror does, in the points that decide what a power cut takes.

/// When a write is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AckRule {
    /// When every leg has it.
    EveryLeg,
    /// When the legs in memory have it, as long as at most so many are behind. A flush goes to all
    /// legs, and waits for no write that is behind.
    Memory {
        /// Writes that the others may be behind by.
        behind: usize,
    },
}

/// When the map of dirty regions is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapWritten {
    /// Before the data.
    Before,
    /// After them.
    After,
}

/// What becomes of a leg in memory at a boot: it is blank then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterBoot {
    /// It is missing, until somebody adds it; then it is copied whole.
    AddedByHand,
    /// It is there again before anybody has seen an error, and taken for what it was.
    Believed,
    /// It is known to be blank, and is filled by itself.
    Refilled,
}

/// What dirty regions are copied from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The leg that reads go to: the first one in use.
    First,
    /// The first one in use that is not memory.
    Disk,
}

/// A mirror's rules. Reads go to the first leg in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// When a write is acknowledged.
    pub acknowledged: AckRule,
    /// When the map is durable.
    pub map: MapWritten,
    /// What becomes of memory at a boot.
    pub after_boot: AfterBoot,
    /// What dirty regions are copied from.
    pub source: Source,
}

impl Rules {
    /// A mirror that does all of it right: what a control must not find anything in.
    pub const PLAIN: Rules = Rules {
        acknowledged: AckRule::EveryLeg,
        map: MapWritten::Before,
        after_boot: AfterBoot::Refilled,
        source: Source::Disk,
    };

    /// Solaris Volume Manager with the RAM disk as first leg and reads from the first, as the
    /// article sets it up. Writes go to all submirrors; dirty regions are in the state database
    /// before the write and are resynced after a boot (Solaris Volume Manager Administration Guide,
    /// "RAID-1 Volume (Mirror) Resynchronization"). After a boot the RAM disk is not there, and the
    /// submirror needs maintenance until somebody makes it and calls metareplace -e (the article).
    pub(crate) const SVM: Rules = Rules {
        acknowledged: AckRule::EveryLeg,
        map: MapWritten::Before,
        after_boot: AfterBoot::AddedByHand,
        source: Source::First,
    };

    /// The same with a script that makes the RAM disk at boot, before the mirror is used: nothing
    /// on it says what it is, and the state database says that it is Okay.
    pub(crate) const SVM_RECREATED: Rules = Rules { after_boot: AfterBoot::Believed, ..Rules::SVM };

    /// Linux md, RAID 1: disks that are write-mostly, with write-behind and its bitmap. A write is
    /// acknowledged when the members that are not write-mostly have it (md(4), "WRITE-BEHIND
    /// MODE"; 256 may be behind by default). Bits are written before the data, and cleared when
    /// all members have it (drivers/md/md-bitmap.c). A flush is sent to all members and waits for
    /// their answers only (drivers/md/md.c, md_flush_request). The new RAM disk has no superblock:
    /// it is added by hand, and rebuilt.
    pub(crate) const MD: Rules = Rules {
        acknowledged: AckRule::Memory { behind: 256 },
        map: MapWritten::Before,
        after_boot: AfterBoot::AddedByHand,
        source: Source::First,
    };

    /// A control: the map is written after the data.
    pub(crate) const LATE_MAP: Rules = Rules { map: MapWritten::After, ..Rules::PLAIN };

    /// A control: memory is believed after a boot, and may be a source.
    pub(crate) const VOLATILE_SOURCE: Rules =
        Rules { after_boot: AfterBoot::Believed, source: Source::First, ..Rules::PLAIN };
}
