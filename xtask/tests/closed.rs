//! What is printed when nobody reads it any more.

use std::process::{Command, Stdio};

#[test]
fn an_output_that_nobody_reads_is_no_fault() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let ended = command.arg("metrics").stdout(writer).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && said.is_empty(), "{:?}: {said}", ended.status);
}
