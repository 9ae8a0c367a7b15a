//! A judge that takes too little for a promise finds nothing wrong, and nobody else notices.

use steadfast_runtime::Nanos;
use steadfast_suite::names::NodeView;
use steadfast_suite::operation::fill;

use super::*;

const LEN: u64 = 4096;

fn moment(tick: u64) -> Moment {
    Moment { tick, at: Nanos(tick) }
}

/// What these make of a state, of which each was acknowledged before the next began: "a" is made,
/// its folder synced, it is written (operation 2), and then what `then` says is done. The file
/// holds `data`.
fn verdict(how: WriteKind, then: Option<Operation>, data: Vec<u8>) -> StateFigures {
    let name = || "a".to_owned();
    let write = Operation::Write { name: name(), offset: 0, len: LEN, how };
    let made = Operation::Create { name: name() };
    let all = [made, Operation::FsyncDir { name: String::new() }, write].into_iter().chain(then);
    let done = |(n, op): (usize, Operation)| {
        let tick = 2 * n as u64;
        OperationAck { op, started: moment(tick), acknowledged: moment(tick + 1) }
    };
    let history = History { tasks: vec![all.enumerate().map(done).collect()] };
    let judge = MixedJudge::new(history, Promises { stale_allowed: false, points: None });
    let seen = |kind, ino, mode, links, data| NodeView {
        kind,
        ino,
        mode,
        links,
        target: String::new(),
        attribute: Vec::new(),
        data,
    };
    let folder = seen(NodeKind::Folder, 2, 0o755, 2, Vec::new());
    let tree = [(String::new(), folder), (name(), seen(NodeKind::File, 12, 0o644, 1, data))];
    let mut figures = StateFigures::default();
    judge.judge_view(&JudgeView::Trees(vec![tree.into()]), moment(100), &mut figures);
    figures
}

#[test]
fn every_way_to_make_a_write_durable_is_a_promise() {
    let fsync = |data_only| Some(Operation::Fsync { name: "a".to_owned(), data_only });
    let promised = [
        (WriteKind::Sync, None),
        (WriteKind::DataSync, None),
        (WriteKind::Buffered, fsync(false)),
        (WriteKind::Buffered, fsync(true)),
        (WriteKind::Direct, fsync(true)),
        (WriteKind::Mapped, fsync(true)),
        (WriteKind::Buffered, Some(Operation::Sync)),
    ];
    let not = [WriteKind::Buffered, WriteKind::Direct, WriteKind::Mapped].map(|how| (how, None));
    let cases = promised.into_iter().map(|case| (case, 1)).chain(not.map(|case| (case, 0)));
    for ((how, then), broken) in cases {
        let what = format!("{how:?}, {then:?}");
        let lost = verdict(how, then.clone(), Vec::new());
        assert_eq!(lost.broken_promises, broken, "{what}: {:?}", lost.findings);
        let mut data = vec![0; LEN as usize];
        fill(0, 2, 0, &mut data);
        let kept = verdict(how, then, data);
        assert_eq!(kept.broken_promises, 0, "{what}: {:?}", kept.findings);
        assert!(kept.damage.is_empty() && lost.damage.is_empty(), "{what}");
    }
}
