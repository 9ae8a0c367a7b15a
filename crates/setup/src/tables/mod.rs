//! The tables of a description, one file each.

mod device;
mod fault;
mod file_system;
pub mod nesting;
mod scheduler;
mod volume;

pub use device::DeviceForm;
pub use fault::FaultForm;
pub use file_system::{StackForm, check_file_system};
pub use scheduler::SchedulerForm;
pub use volume::VolumeForm;
pub(crate) use volume::check_members;
