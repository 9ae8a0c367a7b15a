//! Paths beside the kernel: whatever tree of folders, files and links there is, `resolve` finds the
//! inode that openat2(2) with RESOLVE_IN_ROOT finds, or fails with the same error number.

use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use steadfast_vfs::HostFs;
use steadfast_vfs::path::{place, resolve};

/// Numbers that look random and are the same in every run (xorshift).
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % n as u64).unwrap()
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A path of up to seven names and dots.
fn path(rng: &mut Rng) -> String {
    let mut path = String::from(rng.of(&["", "", "/", "//"]));
    for _ in 0..rng.below(8) {
        let name = match rng.below(9) {
            0 => ".",
            1 | 2 => "..",
            _ => rng.of(&NAMES),
        };
        path.push_str(name);
        path.push_str(rng.of(&["/", "/", "//", "/./"]));
    }
    if rng.below(3) > 0 {
        path.push_str(rng.of(&NAMES));
    }
    path
}

/// Plants a tree; what is in the way of an object stays.
fn plant(root: &Path, rng: &mut Rng) {
    let mut folders = vec![root.to_owned()];
    for _ in 0..25 {
        let at = folders[rng.below(folders.len())].join(rng.of(&NAMES));
        match rng.below(5) {
            0 | 1 => {
                if std::fs::create_dir(&at).is_ok() {
                    folders.push(at);
                }
            }
            2 if !at.exists() => drop(std::fs::write(&at, "x")),
            2 => {}
            // An empty target cannot be made.
            _ => drop(symlink(Some(path(rng)).filter(|p| !p.is_empty()).unwrap_or("b".into()), at)),
        }
    }
}

/// What the kernel finds: the inode's number, or the error's.
fn by_kernel(root: &Path, path: &str, follow: bool) -> Result<u64, i32> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let root = rustix::fs::open(root, flags | OFlags::DIRECTORY, Mode::empty()).unwrap();
    let flags = if follow { flags } else { flags | OFlags::NOFOLLOW };
    // An empty path means the root for us, and nothing for the kernel.
    let path = if path.is_empty() { "." } else { path };
    let found = loop {
        match rustix::fs::openat2(&root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT) {
            // Some other program mounted or renamed something while the kernel went up.
            Err(rustix::io::Errno::AGAIN) => {}
            found => break found.map_err(|e| e.raw_os_error())?,
        }
    };
    Ok(rustix::fs::fstat(&found).unwrap().st_ino)
}

#[test]
fn paths_lead_where_the_kernel_says() {
    let soak: u64 = std::env::var("STEADFAST_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let (mut found, mut loops, mut missing) = (0, 0, 0);
    for seed in 1..=40 * soak {
        let folder = tempfile::tempdir().unwrap();
        let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        plant(folder.path(), &mut rng);
        let host = HostFs::open(folder.path()).unwrap();
        for _ in 0..150 {
            let (path, follow) = (path(&mut rng), rng.below(2) == 0);
            let kernel = by_kernel(folder.path(), &path, follow);
            let ours = resolve(&host, path.as_bytes(), follow);
            let ours = ours.map(|attr| attr.ino.0).map_err(|e| e.errno());
            assert_eq!(ours, kernel, "seed {seed}: {path:?}, follow {follow}");
            match kernel {
                Ok(_) => found += 1,
                Err(40) => loops += 1,
                Err(_) => missing += 1,
            }
            // The path without links is another name of the same.
            if let (Ok(number), Ok(place)) = (kernel, place(&host, path.as_bytes(), follow)) {
                let plain = String::from_utf8(place.path()).unwrap();
                assert_eq!(by_kernel(folder.path(), &plain, false), Ok(number), "{path:?}");
            }
        }
    }
    assert!(found > 500 && loops > 20 && missing > 500, "{found} {loops} {missing}");
}

#[test]
fn forty_links_are_followed_and_one_more_is_not() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("0"), "x").unwrap();
    for n in 1..=42_u32 {
        symlink(format!("{}", n - 1), folder.path().join(n.to_string())).unwrap();
    }
    let host = HostFs::open(folder.path()).unwrap();
    for n in 38..=42_u32 {
        let ours = resolve(&host, n.to_string().as_bytes(), true);
        let ours = ours.map(|attr| attr.ino.0).map_err(|e| e.errno());
        assert_eq!(ours, by_kernel(folder.path(), &n.to_string(), true), "{n} links");
        assert_eq!(ours.is_ok(), n <= 40, "{n} links");
    }
}

#[test]
fn a_path_longer_than_the_kernels_leads_somewhere() {
    let folder = tempfile::tempdir().unwrap();
    let host = HostFs::open(folder.path()).unwrap();
    let name = "n".repeat(200);
    let node = steadfast_vfs::NewNode { mode: 0o755, ..Default::default() };
    let (mut dir, mut path) = (steadfast_vfs::FileSystem::root(&host), String::new());
    // Over 8000 bytes: PATH_MAX is 4096.
    for _ in 0..40 {
        dir = steadfast_vfs::FileSystem::mkdir(&host, dir, name.as_bytes(), node).unwrap().ino;
        path.push('/');
        path.push_str(&name);
    }
    assert_eq!(resolve(&host, path.as_bytes(), true).unwrap().ino, dir);
    assert_eq!(by_kernel(folder.path(), &path, true), Err(36), "the kernel refuses it");
    // A name of more than 255 bytes, anywhere in it, is none.
    let long = "n".repeat(256);
    for path in [format!("/{long}"), format!("/{name}/{long}"), format!("/{long}/x")] {
        assert_eq!(resolve(&host, path.as_bytes(), true).unwrap_err().errno(), 36, "{path:?}");
    }
}
