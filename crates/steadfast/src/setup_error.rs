//! Why a stack or a path could not be opened, in the command line's form.

use steadfast_setup::SetupError;

use crate::Usage;

/// The error that it passes on, or what the caller has to say otherwise: the exit status goes by
/// its type.
pub fn to_anyhow(error: SetupError) -> anyhow::Error {
    match error {
        SetupError::Block(e) => e.into(),
        SetupError::Model(e) => e.into(),
        SetupError::Namespace(e) => e.into(),
        SetupError::Namespaces { ref source, .. } => {
            let what = error.to_string();
            anyhow::Error::from(source.clone()).context(what)
        }
        SetupError::Simulation(e) => e.into(),
        SetupError::Open(e) => e.into(),
        SetupError::Volume(e) => e.into(),
        SetupError::Ext4(e) => e.into(),
        e @ SetupError::Unmount(_) => e.into(),
        SetupError::Refused(what) => Usage(what).into(),
        e @ (SetupError::Options(_) | SetupError::NoDevice { .. } | SetupError::Path { .. }) => {
            Usage(e.to_string()).into()
        }
        e @ (SetupError::VolumeMissing { .. } | SetupError::LegFailed { .. }) => e.into(),
    }
}
