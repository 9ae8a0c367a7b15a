//! Metadata blocks and the operations that change them.
