//! A new journal that begins with a transaction.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_ext4::Clock;
use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{Features, Incompat};
use steadfast_journal::{self as jbd2, FsBlock, Journal, Log};

/// Commits one transaction to an empty log and leaves it there, to be replayed.
pub(super) fn commit_only(
    log: Log,
    device: &Arc<dyn BlockDevice>,
    features: Features,
    images: BTreeMap<u64, Bytes>,
) -> Result<()> {
    let config = jbd2::Config {
        checksums: features.metadata_csum().then_some(jbd2::Checksums::V3),
        wide: features.incompat.contains(Incompat::BIT64),
        accept_volatile: true,
        // Nothing is written home behind our back.
        checkpoint_start_fraction: 1.0,
        commit_interval: Duration::from_secs(3600),
        simulated_epoch_ns: Clock::new(steadfast_ext4::MountOptions::default().simulated_epoch)
            .simulated_epoch_ns(),
        ..jbd2::Config::default()
    };
    let journal = Journal::open(log, Arc::clone(device), config)?;
    let writes = images.into_iter().map(|(block, image)| (FsBlock(block), image)).collect();
    let done = journal
        .submit(jbd2::Update { writes, ..jbd2::Update::default() })
        .and_then(|tid| journal.commit(tid));
    journal.abandon();
    journal.log().device().flush()?;
    Ok(done?)
}
