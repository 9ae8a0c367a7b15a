//! The kinds of devices that can be created by name: scenarios, the command line and the documents
//! use this list. A new kind needs its module and a line here.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use super::parameters::{Describe, ModelKind, ParameterTable};
use super::{
    Emmc, EmmcParams, Hdd, HddParams, Model, ModelError, Nvdimm, NvdimmParams, Nvram, NvramParams,
    Ssd, SsdParams,
};
use crate::source::ram::{Ram, RamParams};

/// The list, and what all in it have in common by delegation.
macro_rules! kinds {
    ($($(#[doc = $text:literal])+ $variant:ident($params:ty) = $make:path,)*) => {
        /// The parameters of a device of any kind, as a scenario gives them: `kind = "hdd"` and so
        /// on, with any of the parameters that differ from the defaults.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        pub enum ModelParams {
            $($(#[doc = $text])+ $variant($params),)*
        }

        /// Every kind of device.
        pub static KINDS: &[ModelKind] = &[$(<$params as Describe>::KIND),*];

        impl ModelParams {
            /// The name of its kind.
            pub fn kind_name(&self) -> &'static str {
                match self {
                    $(ModelParams::$variant(_) => <$params as Describe>::KIND.name,)*
                }
            }

            /// Gives the parameter `name` a value; `None` if there is no such parameter.
            pub fn set<'de, D: Deserializer<'de>>(
                &mut self,
                name: &str,
                value: D,
            ) -> Option<Result<(), D::Error>> {
                match self { $(ModelParams::$variant(p) => p.set(name, value),)* }
            }

            /// Gives the parameter `name` its default again.
            pub fn reset(&mut self, name: &str) {
                match self { $(ModelParams::$variant(p) => p.reset(name),)* }
            }

            /// What it is, for people.
            pub fn description(&self) -> String {
                match self { $(ModelParams::$variant(p) => p.description(),)* }
            }

            /// Whether the values make sense, each and together.
            ///
            /// # Errors
            /// [`ModelError::Parameter`] names the first that makes none.
            pub fn check(&self) -> Result<(), ModelError> {
                match self { $(ModelParams::$variant(p) => p.check(),)* }
            }

            /// What is possible but hardly meant, each in words.
            pub fn warnings(&self) -> Vec<String> {
                match self { $(ModelParams::$variant(p) => p.warnings(),)* }
            }

            /// Makes the device, empty, in the caller's world.
            ///
            /// # Errors
            /// [`ModelError::Parameter`] names the parameter that makes no sense.
            pub fn build(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
                Ok(match self { $(ModelParams::$variant(p) => Arc::new($make(name, p)?),)* })
            }

            /// Its size in bytes.
            pub fn bytes(&self) -> u64 {
                match self { $(ModelParams::$variant(p) => p.bytes(),)* }
            }

            /// As the disk of a power-cut test: of this size, with a volatile cache.
            #[must_use]
            pub fn test_disk(self, bytes: u64) -> ModelParams {
                match self {
                    $(ModelParams::$variant(p) => ModelParams::$variant(p.test_disk(bytes)),)*
                }
            }

            /// For a run whose files have `part / whole` of their size: a scale model, where
            /// distances matter.
            #[must_use]
            pub fn scaled(&self, part: u64, whole: u64) -> ModelParams {
                match self {
                    $(ModelParams::$variant(p) => ModelParams::$variant(p.scaled(part, whole)),)*
                }
            }

            /// The size in bytes of a cache that it has and that ignores flushes.
            pub fn lying_cache_bytes(&self) -> Option<u64> {
                match self { $(ModelParams::$variant(p) => p.lying_cache_bytes(),)* }
            }

            /// Whether a reset of the machine, in which it keeps its power, takes its cache.
            pub fn forgets_at_reset(&self) -> bool {
                match self { $(ModelParams::$variant(p) => p.forgets_at_reset(),)* }
            }
        }
    };
}

kinds! {
    /// A disk drive.
    Hdd(HddParams) = Hdd::new,
    /// A battery-backed memory card.
    Nvram(NvramParams) = Nvram::new,
    /// A memory module that saves itself.
    Nvdimm(NvdimmParams) = Nvdimm::new,
    /// A solid-state disk.
    Ssd(SsdParams) = Ssd::new,
    /// An embedded flash chip.
    Emmc(EmmcParams) = Emmc::new,
    /// Memory of the program's own, which takes no time.
    Ram(RamParams) = Ram::described,
}

impl ModelParams {
    /// Its kind.
    pub fn kind(&self) -> &'static ModelKind {
        // OK to expect: the list and the enumeration are written by one macro.
        ModelKind::of_name(self.kind_name()).expect("a kind of the list")
    }

    /// Whether requests take the time that hardware would take.
    pub fn takes_time(&self) -> bool {
        !matches!(self, ModelParams::Ram(_))
    }
}

impl ModelKind {
    /// The kind of this name.
    pub fn of_name(name: &str) -> Option<&'static ModelKind> {
        KINDS.iter().find(|kind| kind.name == name)
    }
}
