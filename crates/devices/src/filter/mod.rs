//! Filters: devices over a device.
