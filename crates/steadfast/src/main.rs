//! steadfast: glue only.
fn main() {}
