//! Sparse contents, cheap to keep and to copy.
