use super::*;

fn written(ops: &[(u64, u64)]) -> Content {
    let mut c = Content::new(1);
    for (i, (offset, len)) in ops.iter().enumerate() {
        c.write(i, *offset, *len);
    }
    c
}

#[test]
fn what_was_promised_must_be_there() {
    let mut c = written(&[(0, 100)]);
    assert_eq!(c.judge(&[], false), Ok(()));
    assert_eq!(c.judge(&[0; 50], false), Ok(()));
    c.promise_all();
    let data = c.data.clone();
    assert_eq!(c.judge(&data, false), Ok(()));
    assert!(matches!(c.judge(&data[..99], false), Err(Fault::Broken(_))));
    let mut hole = data.clone();
    hole[5] = 0;
    assert!(matches!(c.judge(&hole, true), Err(Fault::Broken(_))));
    // Overwritten since: either will do, zeros will not.
    c.write(1, 0, 10);
    assert_eq!(c.judge(&data, false), Ok(()));
    let new = c.data.clone();
    assert_eq!(c.judge(&new, false), Ok(()));
    assert!(c.judge(&hole, false).is_err());
}

#[test]
fn stale_bytes_are_reported() {
    let c = written(&[(0, 8)]);
    let mut found = c.data.clone();
    found[3] ^= 0x40;
    assert!(matches!(c.judge(&found, false), Err(Fault::Stale(_))));
    assert_eq!(c.judge(&found, true), Ok(()));
}

#[test]
fn a_truncation_allows_zeros_and_a_promised_one_demands_them() {
    let mut c = written(&[(0, 100)]);
    c.promise_all();
    let old = c.data.clone();
    c.truncate(10);
    c.truncate(100);
    let new = c.data.clone();
    assert_eq!(c.judge(&old, false), Ok(()));
    assert_eq!(c.judge(&new, false), Ok(()));
    c.promise_all();
    assert!(c.judge(&old, false).is_err());
    assert_eq!(c.judge(&new, false), Ok(()));
}

/// The size says that the file was cut: what was there before must not be seen.
#[test]
fn bytes_older_than_a_truncation_whose_size_shows_are_reported() {
    let mut c = written(&[(0, 100)]);
    c.promise_all();
    let old = c.data.clone();
    c.truncate(10);
    c.truncate(200);
    let mut found = c.data.clone();
    assert_eq!(c.judge(&found, false), Ok(()));
    found[10..100].copy_from_slice(&old[10..]);
    assert!(c.judge(&found, false).is_err());
    assert_eq!(c.judge(&found, true), Ok(()));
    // Not cut, or not yet.
    assert_eq!(c.judge(&old, false), Ok(()));
    assert_eq!(c.judge(&old[..10], false), Ok(()));
    // A size that the file had before says nothing.
    c.truncate(100);
    assert_eq!(c.judge(&old, false), Ok(()));
}

#[test]
fn a_range_that_comes_out_is_there_whole_or_not_at_all() {
    let mut c = written(&[(0, 3000)]);
    c.promise_all();
    let old = c.data.clone();
    c.fallocate(Fallocate::CollapseRange, 0, 1024);
    assert_eq!(c.data, old[1024..]);
    for good in [&old[..], &old[1024..]] {
        assert_eq!(c.judge(good, false), Ok(()));
    }
    assert!(c.judge(&old[..1976], false).is_err());
    assert!(c.judge(&old[1..], false).is_err());
    c.write(1, 100, 100);
    let newer = c.data.clone();
    assert_eq!(c.judge(&newer, false), Ok(()));
    assert_eq!(c.judge(&old, false), Ok(()));
    // Written in place, and the range has not come out.
    let in_place = [&old[..1124], &newer[100..200], &old[1224..]].concat();
    assert_eq!(c.judge(&in_place, false), Ok(()));
    let mixed = [&old[..100], &newer[100..200], &old[200..]].concat();
    assert!(c.judge(&mixed, false).is_err());
    c.promise_all();
    assert!(c.judge(&old, false).is_err() && c.judge(&old[1024..], false).is_err());
    assert_eq!(c.judge(&newer, false), Ok(()));
}

#[test]
fn a_hole_that_goes_in_moves_what_is_behind_it() {
    let mut c = written(&[(0, 3000)]);
    c.promise_all();
    let old = c.data.clone();
    c.fallocate(Fallocate::InsertRange, 1024, 2048);
    let new = [&old[..1024], &[0; 2048], &old[1024..]].concat();
    assert_eq!(c.data, new);
    assert_eq!(c.judge(&new, false), Ok(()));
    assert_eq!(c.judge(&old, false), Ok(()));
    let mut wrong = new.clone();
    wrong[3072] ^= 1;
    assert!(c.judge(&wrong, false).is_err());
    c.fallocate(Fallocate::PunchHole, 0, 100);
    let mut holed = new.clone();
    holed[..100].fill(0);
    for good in [&holed, &new, &old] {
        assert_eq!(c.judge(good, false), Ok(()));
    }
    c.promise_all();
    assert_eq!(c.judge(&holed, false), Ok(()));
    assert!(c.judge(&new, false).is_err());
}
