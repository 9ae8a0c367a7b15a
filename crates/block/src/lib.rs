//! The block-device interface, its requests, and the conformance suite every device runs.
