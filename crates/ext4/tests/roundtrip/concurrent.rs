//! Several tasks at work in the same directories.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_runtime::spawn;
use steadfast_vfs::{FileSystem, Ino, NewNode, OpenFlags, RenameFlags, SetAttr};

use crate::image::Image;
use crate::sequence::{assert_same, tree_of};
use crate::stage::{Kernel, Ours, Stage};

const TASKS: u64 = 4;
const STEPS: u32 = 1500;

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn name(&mut self) -> Vec<u8> {
        format!("name{}", self.below(40)).into_bytes()
    }
}

/// One task's steps. Most of them fail in some way; what must not happen is that they leave
/// anything broken, or block each other.
fn work(fs: &dyn FileSystem, dirs: &[Ino], task: u64) {
    let mut dice = Dice(task);
    for _ in 0..STEPS {
        let dir = dirs[dice.below(dirs.len() as u64) as usize];
        let other = dirs[dice.below(dirs.len() as u64) as usize];
        let (name, second) = (dice.name(), dice.name());
        match dice.below(10) {
            0..3 => {
                drop(fs.create(dir, &name, NewNode::default(), OpenFlags::WRITE).map(|(_, fh)| {
                    let _ =
                        fs.write(fh, dice.below(20_000), Bytes::from(vec![task as u8 + 1; 3000]));
                    fs.release(fh)
                }))
            }
            3 => drop(fs.mkdir(dir, &name, NewNode { mode: 0o755, uid: 0, gid: 0, umask: 0 })),
            4 => drop(fs.unlink(dir, &name)),
            5 => drop(fs.rmdir(dir, &name)),
            6 => drop(fs.rename((dir, &name), (other, &second), RenameFlags::empty())),
            7 => drop(fs.rename((dir, &name), (other, &second), RenameFlags::EXCHANGE)),
            8 => drop(fs.lookup(dir, &name).and_then(|found| fs.link(found.ino, other, &second))),
            _ => drop(fs.lookup(dir, &name).and_then(|found| {
                let size = Some(dice.below(30_000));
                fs.setattr(found.ino, SetAttr { size, ..SetAttr::default() })
            })),
        }
    }
}

#[test]
fn tasks_leave_a_sound_tree() {
    let mut ours = Ours::mount(Image::mke2fs(64 << 20, &["-b", "1024"]));
    let fs = ours.shared();
    let folder = |name: &[u8]| fs.mkdir(fs.root(), name, NewNode::default()).unwrap().ino;
    let dirs: Arc<Vec<Ino>> = Arc::new(vec![fs.root(), folder(b"a"), folder(b"b")]);
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (fs, dirs) = (Arc::clone(&fs), Arc::clone(&dirs));
            spawn(format!("task {task}"), move || work(&*fs, &dirs, task))
        })
        .collect();
    tasks.into_iter().for_each(|task| task.join().unwrap());
    drop(fs);
    let seen = tree_of(ours.fs());
    ours.remount();
    assert_same(&tree_of(ours.fs()), &seen, "we, mounted again");
    let image = ours.unmount();
    image.assert_clean();
    assert_same(&tree_of(Kernel::mount(image).fs()), &seen, "the kernel");
}
