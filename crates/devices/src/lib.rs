//! Block devices: files, memory, models of real hardware, and filters over any of them.
