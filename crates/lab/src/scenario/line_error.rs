//! What is wrong with the value of a key that has a syntax of its own: a command line, or numbers
//! in a text.

use steadfast_bench::dd::WrongOperand;
use steadfast_bench::dd::place::OWN_DISK;
use steadfast_bench::hdparm::line::HdparmError;
use steadfast_bench::iozone::UsageError;

use crate::size::SizeError;

/// Why a value is none of its key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// A size that is none.
    #[error("size '{size}': {why}")]
    Size {
        /// As given.
        size: String,
        /// What is wrong with it.
        why: SizeError,
    },
    /// IOzone's options do not go with a size.
    #[error("size '{size}': {why}")]
    IozoneOfSize {
        /// As given.
        size: String,
        /// What IOzone says.
        why: UsageError,
    },
    /// IOzone's options in throughput mode.
    #[error("workload.iozone: {0}")]
    Throughput(UsageError),
    /// A matrix where one size is needed.
    #[error("workload.iozone: this is a matrix of sizes, not one size: give -t")]
    MatrixForOneSize,
    /// A command line that only asks for help.
    #[error("workload.iozone asks for help instead of a run")]
    HelpForOneSize,
    /// IOzone's options in single or auto mode.
    #[error("{0}")]
    Matrix(UsageError),
    /// A command line of a matrix that only asks for help.
    #[error("it asks for help instead of a run")]
    HelpForMatrix,
    /// Throughput mode where a matrix is needed.
    #[error("-t is throughput mode: it has sizes, and no matrix of them")]
    OneSizeForMatrix,
    /// An option of IOzone's that means nothing in a simulation.
    #[error("{option} is not for a scenario: {why}")]
    NotForScenario {
        /// The option.
        option: &'static str,
        /// Why not.
        why: &'static str,
    },
    /// dd's operands.
    #[error(transparent)]
    Operands(#[from] WrongOperand),
    /// An operand in quotes.
    #[error("{0}: quotes are not taken away here, as a shell does: leave them out")]
    Quoted(String),
    /// dd would use a standard stream.
    #[error("{0}= is missing: a scenario has no standard streams")]
    NoPath(&'static str),
    /// dd would use a file of this machine.
    #[error("{0}=host: a scenario has no files of this machine")]
    HostPath(&'static str),
    /// The file system cannot be mounted while its disk is copied.
    #[error("a file of the disk while the disk itself, {OWN_DISK}, is copied")]
    FileOfCopiedDisk,
    /// dd would copy without an end.
    #[error("it never ends: give it a count=")]
    Endless,
    /// hdparm's command line.
    #[error(transparent)]
    Hdparm(#[from] HdparmError),
    /// The writer is another command.
    #[error("the command is dd")]
    NotDd,
    /// An operand of the writer that must be a number.
    #[error("{0}: no whole number")]
    NoNumber(String),
    /// An operand that the writer has not.
    #[error("{0}: it is if=/dev/zero of=NAME bs=BYTES count=N")]
    NotOfWriter(String),
    /// An operand that the writer needs.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// The writer's block size.
    #[error("bs= is a power of two from 512 to 4194304")]
    BlockSize,
    /// The writer writes nothing.
    #[error("count=0 writes nothing")]
    NothingWritten,
}
