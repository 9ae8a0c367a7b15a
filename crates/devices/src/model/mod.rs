//! Models of real hardware.
