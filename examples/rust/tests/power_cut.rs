//! What must hold when the power is cut at any instant: no number is handed out twice.

use std::env;
use std::path::Path;
use std::process::Command;

#[test]
fn no_number_is_handed_out_twice() {
    // Both scripts run in folders of the test: the PATH says where they find what.
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let built = Path::new(env!("CARGO_BIN_EXE_invoice")).parent().unwrap();
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = [tests, built.into()].into_iter().chain(env::split_paths(&path));

    let done = Command::new(env::var_os("STEADFAST").unwrap_or("steadfast".into()))
        .args(["crash", "run", "--linger", "0.2"])
        .args(["--record", "invoice.crash", "--sarif", "invoice.sarif"])
        .args(["--judge", "handed-out-once", "--", "tests/three-invoices"])
        .env("PATH", env::join_paths(folders).unwrap())
        .output()
        .expect("is `steadfast` in the PATH, or named by $STEADFAST?");
    let said = [done.stdout, done.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(done.status.success(), "crash run: {}\n{said}", done.status);
    // Of a program that has failed at once there is nothing to lose.
    assert!(said.contains("the program ended with status 0"), "{said}");
}
