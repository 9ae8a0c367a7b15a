use proptest::prelude::*;
use steadfast_block::pattern;

use super::*;

const SIZE: u64 = 3 * CHUNK + 3 * 4096 + 512;

#[derive(Debug, Clone)]
enum Op {
    Write { sector: u64, kinds: Vec<Kind>, how: u8 },
    Discard { sector: u64, sectors: u64 },
    Snapshot,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Zero,
    Fill(u8),
    Stamped(u64),
    Raw(u8),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let sectors = SIZE / 512;
    let kind = prop_oneof![
        Just(Kind::Zero),
        any::<u8>().prop_map(Kind::Fill),
        (1u64..3).prop_map(Kind::Stamped),
        any::<u8>().prop_map(Kind::Raw),
    ];
    // Runs of one kind, so that whole pages of it are common.
    let kinds = prop::collection::vec((kind, 1usize..20), 1..5).prop_map(|runs| {
        runs.into_iter().flat_map(|(k, n)| std::iter::repeat_n(k, n)).collect::<Vec<_>>()
    });
    let op = prop_oneof![
        8 => (0..sectors, kinds, any::<u8>())
            .prop_map(|(sector, kinds, how)| Op::Write { sector, kinds, how }),
        2 => (0..sectors, 1..3000u64).prop_map(|(sector, sectors)| Op::Discard { sector, sectors }),
        1 => Just(Op::Snapshot),
    ];
    prop::collection::vec(op, 1..40)
}

fn bytes_of(sector: u64, kinds: &[Kind]) -> Vec<u8> {
    let mut out = vec![0; kinds.len() * 512];
    for (i, (kind, s)) in kinds.iter().zip(out.chunks_exact_mut(512)).enumerate() {
        match kind {
            Kind::Zero => {}
            Kind::Fill(b) => s.fill(*b),
            Kind::Stamped(tag) => pattern::fill(*tag, (sector + i as u64) * 512, s),
            Kind::Raw(b) => {
                s.iter_mut().enumerate().for_each(|(j, x)| *x = b.wrapping_add((j * 7) as u8));
            }
        }
    }
    out
}

fn write(store: &mut Store, offset: u64, data: &[u8], how: u8) {
    let bytes = Bytes::copy_from_slice(data);
    match how % 5 {
        0 => store.write_slice(offset, data),
        1 => store.write(offset, &bytes.into()),
        2 => {
            let cut = data.len() / 3;
            store.write(offset, &[bytes.slice(..cut), bytes.slice(cut..)].into_iter().collect());
        }
        3 => store.write_packed(offset, &PackedBytes::pack(&bytes)),
        _ => {
            let packed = PackedBytes::pack(&bytes);
            let cut = data.len() / 2 / 512 * 512;
            store.write_packed_parts(offset, &packed, [0..cut, cut..data.len()]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn behaves_as_a_vector_of_bytes(ops in ops()) {
        let mut store = Store::new(SIZE);
        let mut model = vec![0u8; SIZE as usize];
        let mut frozen: Vec<(Store, Vec<u8>)> = Vec::new();
        for op in ops {
            match op {
                Op::Write { sector, kinds, how } => {
                    let room = (SIZE / 512 - sector) as usize;
                    let data = bytes_of(sector, &kinds[..kinds.len().min(room)]);
                    let at = sector as usize * 512;
                    write(&mut store, at as u64, &data, how);
                    model[at..at + data.len()].copy_from_slice(&data);
                }
                Op::Discard { sector, sectors } => {
                    let end = (sector + sectors).min(SIZE / 512);
                    store.discard(sector * 512, (end - sector) * 512);
                    model[sector as usize * 512..end as usize * 512].fill(0);
                }
                Op::Snapshot => frozen.push((store.snapshot(), model.clone())),
            }
        }
        frozen.push((store, model));
        for (store, model) in frozen {
            prop_assert!(store.read(0, SIZE) == model);
            for (at, len) in [(512, 512), (3 * 512, 4096), (CHUNK - 4096, 8192)] {
                let range = at as usize..(at + len) as usize;
                prop_assert!(store.read(at, len) == model[range]);
            }
            let mut covered = vec![true; SIZE as usize];
            for (at, len) in store.populated() {
                covered[at as usize..(at + len) as usize].fill(false);
            }
            prop_assert!(covered.iter().zip(&model).all(|(hole, b)| !hole || *b == 0));
            // The packed form follows from the bytes: written at once, it is the same.
            let mut again = Store::new(SIZE);
            again.write(0, &model.into());
            prop_assert!(again == store);
            prop_assert_eq!(again.digest(), store.digest());
        }
    }

    #[test]
    fn packed_bytes_unpack(kinds in prop::collection::vec(0u8..4, 0..40), tail in 0usize..600) {
        let kinds: Vec<Kind> = kinds
            .into_iter()
            .map(|k| match k {
                0 => Kind::Zero,
                1 => Kind::Stamped(9),
                2 => Kind::Fill(3),
                _ => Kind::Raw(1),
            })
            .collect();
        let mut data = bytes_of(100, &kinds);
        data.extend(std::iter::repeat_n(1, tail));
        let packed = PackedBytes::pack(&Bytes::from(data.clone()));
        prop_assert!(packed.unpack() == data);
        let half = data.len() / 2;
        let mut part = vec![0; data.len() - half];
        packed.copy_to(half, &mut part);
        prop_assert!(part == data[half..]);
        let cut = data.len() / 3;
        let parts = [&data[..cut], &data[cut..]].into_iter().map(Bytes::copy_from_slice);
        prop_assert!(PackedBytes::pack_payload(&parts.collect()).unpack() == data);
    }
}

#[test]
fn stamped_contents_take_a_hundredth_of_their_size() {
    let mut store = Store::new(1 << 30);
    for i in 0..256u64 {
        store.write(i << 18, &pattern::bytes(5 << 48 | i, i << 18, 1 << 18).into());
    }
    assert!(store.footprint() < (64 << 20) / 90, "{}", store.footprint());
    let one = PackedBytes::pack(&pattern::bytes(1, 0, 1 << 20));
    assert_eq!(one.segments().len(), 1);
    assert!(one.footprint() < 128);
}

#[test]
fn a_change_of_one_bit_in_a_stamped_sector_is_kept() {
    let mut data = pattern::bytes(7, 4096, 8192).to_vec();
    data[5000] ^= 1;
    let mut store = Store::new(1 << 20);
    store.write(4096, &data.clone().into());
    assert_eq!(store.read(4096, 8192), data);
}

#[test]
fn a_stamp_at_the_end_of_the_number_range_wraps() {
    let mut data = vec![0; 4096];
    for (i, s) in data.chunks_exact_mut(512).enumerate() {
        let position = u64::MAX.wrapping_sub(1023).wrapping_add(i as u64 * 512);
        pattern::fill_sector(pattern::Stamp { tag: 1, position }, s);
    }
    let mut store = Store::new(4096);
    store.write(0, &data.clone().into());
    assert_eq!(store.read(0, 4096), data);
}

#[test]
fn raw_pages_share_the_memory_of_the_write() {
    let data: Bytes =
        (0..8192u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let mut store = Store::new(1 << 20);
    store.write(8192, &data.clone().into());
    let page = store.read(8192, 4096);
    assert_eq!(page.as_ptr(), data.as_ptr());
}

#[test]
fn holes_are_read_without_memory_of_their_own() {
    let mut store = Store::new(4 << 20);
    store.write(8192, &pattern::bytes(1, 0, 512).into());
    // A chunk that has nothing any more but zeros.
    store.write(3 << 20, &pattern::bytes(1, 0, 4096).into());
    store.discard(3 << 20, 4096);
    let shared = store.read(1 << 20, 4096).as_ptr();
    for (offset, len) in [(0, 8192), (512, 1024), (2 << 20, 1 << 20), (3 << 20, 8192)] {
        let read = store.read(offset, len);
        assert!(read.len() as u64 == len && steadfast_block::is_zero(&read));
        assert_eq!(read.as_ptr(), shared, "{len} bytes at {offset}");
    }
    let mixed = store.read(4096, 8192);
    assert!(mixed[..4096] == [0; 4096] && mixed[4096..4608] == pattern::bytes(1, 0, 512)[..]);
}

#[test]
fn files_keep_contents_and_holes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image");
    let mut store = Store::new(64 << 20);
    store.write(1 << 20, &pattern::bytes(1, 0, 1 << 20).into());
    store.write_slice(40 << 20, b"hello");
    store.export(&path).unwrap();
    let back = Store::import(&path).unwrap();
    assert!(back == store);
    assert_eq!(back.populated().collect::<Vec<_>>(), [(1 << 20, 1 << 20), (40 << 20, 4096)]);
    let empty = folder.path().join("empty");
    Store::new(1 << 30).export(&empty).unwrap();
    assert!(Store::import(&empty).unwrap() == Store::new(1 << 30));
}

#[test]
#[should_panic(expected = "end beyond the store")]
fn a_range_beyond_the_end_is_a_bug_of_the_caller() {
    Store::new(4096).read(4096, 512);
}
