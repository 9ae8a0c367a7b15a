//! The programs of `examples/`, each run to its end.

#[path = "../examples/copy_folder.rs"]
mod copy_folder;
#[path = "../examples/external_journal.rs"]
mod external_journal;
#[path = "../examples/power_cut.rs"]
mod power_cut;
#[path = "../examples/transaction_points.rs"]
mod transaction_points;
#[path = "../examples/virtual_time.rs"]
mod virtual_time;

#[test]
fn an_image_with_an_external_journal() {
    external_journal::main().unwrap();
}

#[test]
fn a_folder_is_copied_into_an_image() {
    copy_folder::main().unwrap();
}

#[test]
fn a_modelled_disk_in_virtual_time() {
    virtual_time::main().unwrap();
}

#[test]
fn a_power_cut_between_transaction_points() {
    transaction_points::main().unwrap();
}

#[test]
fn a_program_of_ones_own_under_power_cuts() {
    power_cut::main().unwrap();
}
