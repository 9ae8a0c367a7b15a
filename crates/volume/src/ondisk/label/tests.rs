use super::*;
use proptest::prelude::*;

pub(crate) fn sample() -> Label {
    let member = |n: u8| Member {
        uuid: Uuid::from_bytes([n; 16]),
        bytes: 1 << 20,
        state: MemberState::Active,
        volatile: n == 2,
        partial: false,
        name: format!("disk{n}"),
        left: (n == 2).then_some(DepartureRange { first: 3, last: 4 }),
    };
    Label {
        volume: Uuid::from_bytes([9; 16]),
        name: "d10".into(),
        kind: LayoutKind::Mirror,
        slot: 1,
        generation: 7,
        base: 6,
        data: Uuid::from_bytes([5; 16]),
        incarnation: Uuid::from_bytes([6; 16]),
        closed: true,
        size: 1 << 20,
        region_bytes: 65536,
        interlace: 0,
        data_start: 65536,
        device_bytes: 2 << 20,
        map_blocks: 1,
        policies: [1, 2, 3, 4],
        checksums: false,
        history: vec![Ancestor { generation: 3, data: Uuid::from_bytes([4; 16]) }],
        forgotten: 2,
        members: vec![member(1), member(2)],
    }
}

#[test]
fn a_label_comes_back() {
    let label = sample();
    let bytes = label.encode();
    assert_eq!(Label::decode(&bytes), Ok(label));
    assert_eq!(Label::decode(&[0; 4096]), Err(LabelProblem::None));
    assert_eq!(Label::decode(&bytes[1..]), Err(LabelProblem::None));
}

#[test]
fn a_newer_version_is_named_whatever_its_checksum() {
    let mut bytes = sample().encode();
    bytes[8] = 3;
    bytes[4000] = 1;
    assert_eq!(Label::decode(&bytes), Err(LabelProblem::Newer(3)));
}

#[test]
fn a_version_that_alone_is_wrong_is_damage() {
    for bit in 0..32 {
        let mut bytes = sample().encode();
        bytes[8 + bit / 8] ^= 1 << (bit % 8);
        let damaged = matches!(Label::decode(&bytes), Err(LabelProblem::Damaged(_)));
        assert!(damaged, "bit {bit}");
    }
}

#[test]
fn what_is_not_known_here_is_named_by_its_bits() {
    let mut bytes = sample().encode();
    bytes[148] = 0b110;
    let sum = checksum(&bytes, CHECKSUM_AT);
    bytes[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&sum.to_le_bytes());
    assert_eq!(Label::decode(&bytes), Err(LabelProblem::Features(0b110)));
}

#[test]
fn checksums_need_room_before_the_data() {
    let with = |data_start| Label { checksums: true, size: 512 << 10, data_start, ..sample() };
    // Map: one block of two slots. Eight regions have a block of the area each.
    assert_eq!(Label::decode(&with(48 << 10).encode()), Ok(with(48 << 10)));
    let refused = Label::decode(&with(44 << 10).encode());
    assert!(matches!(refused, Err(LabelProblem::Damaged(_))));
    let stripe = Label { kind: LayoutKind::Stripe, interlace: 4096, ..with(48 << 10) };
    assert!(matches!(Label::decode(&stripe.encode()), Err(LabelProblem::Damaged(_))));
}

#[test]
fn an_earlier_version_is_not_taken_for_this_one() {
    let mut bytes = sample().encode();
    bytes[8] = 1;
    let sum = checksum(&bytes, CHECKSUM_AT);
    bytes[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&sum.to_le_bytes());
    assert!(matches!(Label::decode(&bytes), Err(LabelProblem::Damaged(_))));
}

#[test]
fn a_long_name_keeps_its_end() {
    let mut label = sample();
    label.members[0].name = "/dev/disk/by-id/ata-something-very-long-é-part1".into();
    let got = Label::decode(&label.encode()).unwrap();
    assert!(got.members[0].name.ends_with("-é-part1"), "{}", got.members[0].name);
}

proptest! {
    /// With a right checksum too, which a fuzzer would have to guess.
    #[test]
    fn hostile_labels_are_refused_or_sane(
        changes in prop::collection::vec((0usize..4096, any::<u8>()), 1..40)
    ) {
        let mut bytes = sample().encode();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        let sum = checksum(&bytes, CHECKSUM_AT);
        bytes[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&sum.to_le_bytes());
        if let Ok(label) = Label::decode(&bytes) {
            prop_assert!(label.slot < label.members.len());
            prop_assert!(label.members.len() <= MEMBERS_MAX);
            if label.kind == LayoutKind::Mirror {
                let regions = label.size.div_ceil(u64::from(label.region_bytes));
                prop_assert!(regions <= REGIONS_MAX);
            }
            prop_assert_eq!(Label::decode(&label.encode()), Ok(label));
        }
    }
}
