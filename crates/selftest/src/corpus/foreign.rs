//! Bytes of a file that it never held.

use steadfast_crash::program::Node;

/// Bytes that a device writes whole at the least.
const UNIT: u64 = 512;

/// The first unit of a file, of 512 bytes, that is not zeros and that none of the others holds in
/// this place. What follows an end of theirs counts as zeros. Of the file's own last unit only what
/// its size shows counts: it may be the beginning of a unit that another one holds whole.
pub(super) fn first_foreign(found: &Node, others: &[&Node]) -> Option<u64> {
    let held_by = |other: &Node, at: u64, held: &[u8]| {
        let mut bytes = other.bytes(at, held.len() as u64);
        bytes.resize(held.len(), 0);
        bytes == held
    };
    (0..found.contents().size).step_by(UNIT as usize).find(|at| {
        let held = found.bytes(*at, UNIT);
        held.iter().any(|byte| *byte != 0) && !others.iter().any(|other| held_by(other, *at, &held))
    })
}

#[cfg(test)]
mod tests {
    use steadfast_crash::program::Tree;
    use steadfast_vfs::HostFs;

    use super::*;

    /// A size that is older than the bytes shows the beginning of a unit, and no zeros behind it.
    #[test]
    fn of_a_last_unit_the_size_shows_the_beginning() {
        let from = tempfile::tempdir().unwrap();
        let make =
            |name: &str, bytes: &[u8]| std::fs::write(from.path().join(name), bytes).unwrap();
        make("old", &[1; 700]);
        make("new", &[2; 1024]);
        make("cut", &[&[1; 512][..], &[2; 188]].concat());
        make("torn", &[&[1; 512][..], &[2; 100], &[1; 88]].concat());
        make("zeros", &[&[1; 512][..], &[2; 200], &[0; 100]].concat());
        make("grown", &[&[2; 512][..], &[1; 188], &[0; 324]].concat());
        let tree = Tree::read(&HostFs::open(from.path()).unwrap()).unwrap();
        let node = |name: &str| tree.get(name.as_bytes()).unwrap();
        let foreign = |name: &str| first_foreign(node(name), &[node("old"), node("new")]);
        assert_eq!([foreign("cut"), foreign("grown")], [None, None]);
        assert_eq!([foreign("torn"), foreign("zeros")], [Some(512), Some(512)]);
    }
}
