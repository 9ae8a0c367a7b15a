//! Operations on names.
