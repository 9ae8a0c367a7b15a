//! Devices that hold bytes.
