//! A host without a process: asked directly, with its tree at hand and with mounts that are none.

mod members;
mod mounts;
mod names;
mod refused;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use steadfast_block::BlockDevice;
use steadfast_stack::protocol::{Answer, Create, NewComponent, Refusal, Request};
use steadfast_stack::{Host, HostConfig, MountedFs, Mounter, Options, ToMount, Tree};
use steadfast_vfs::{Fh, FileSystem, FsError, Ino, OpenFlags};
use tempfile::TempDir;

type Device = Arc<dyn BlockDevice>;

/// Bytes of an image.
const IMAGE: u64 = 16 << 20;

/// A mounter for tests without mounts.
struct Nowhere;

impl Mounter for Nowhere {
    fn mount(&self, _: &ToMount) -> Result<Arc<dyn MountedFs>, Refusal> {
        unreachable!("nothing is mounted here")
    }
}

/// A host with images.
struct Desk {
    host: Arc<Host>,
    tree: Tree,
    folder: TempDir,
}

/// What a device holds that is not ours: the first bytes say so, as a file system's would.
const HELD: &[u8] = b"somebody's";

fn occupant(device: &Device) -> Option<String> {
    let start = device.read(0, 4096).unwrap();
    start.starts_with(HELD).then(|| "something of somebody's".to_owned())
}

fn forget(device: &Device) -> Result<(), String> {
    if occupant(device).is_some() {
        device.write_fua(0, vec![0; 4096].into()).unwrap();
    }
    Ok(())
}

impl Desk {
    fn new(images: &[&str], config: &str) -> Desk {
        Desk::with(images, config, occupant, Box::new(Nowhere))
    }

    fn with(
        images: &[&str],
        config: &str,
        occupant: fn(&Device) -> Option<String>,
        mounter: Box<dyn Mounter>,
    ) -> Desk {
        let folder = tempfile::tempdir().unwrap();
        let mut text = String::new();
        for image in images {
            image_at(&folder.path().join(image), IMAGE);
            text += &format!("[device.{image}]\npath = \"{image}\"\n");
        }
        text += config;
        let host = start(folder.path(), &text, occupant, mounter).unwrap();
        let tree = Tree::new(Arc::clone(&host));
        Desk { host, tree, folder }
    }

    fn image(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.image(name)).unwrap()
    }

    fn ask(&self, request: Request) -> Result<Answer, Refusal> {
        self.host.answer(request)
    }

    fn good(&self, request: Request) -> Answer {
        self.ask(request.clone()).unwrap_or_else(|e| panic!("{request:?}: {e}"))
    }

    fn open(&self, name: &str, flags: OpenFlags) -> Result<Fh, FsError> {
        open(&self.tree, name, flags)
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = self.host.close();
    }
}

fn image_at(path: &Path, bytes: u64) {
    std::fs::File::create(path).unwrap().set_len(bytes).unwrap();
}

fn start(
    folder: &Path,
    config: &str,
    occupant: fn(&Device) -> Option<String>,
    mounter: Box<dyn Mounter>,
) -> Result<Arc<Host>, Refusal> {
    let config = HostConfig::parse(config, "stack.toml").unwrap();
    let options = Options { config: folder.join("stack.toml"), occupant, forget, mounter };
    Host::start(options, &config)
}

fn open(tree: &Tree, name: &str, flags: OpenFlags) -> Result<Fh, FsError> {
    let dsk: Ino = tree.lookup(tree.root(), b"dsk")?.ino;
    tree.open(tree.lookup(dsk, name.as_bytes())?.ino, flags)
}

fn names(all: &[&str]) -> Vec<String> {
    all.iter().map(|name| (*name).to_owned()).collect()
}

fn create(name: &str, components: &[&str]) -> Create {
    Create { name: name.to_owned(), components: names(components), ..Create::default() }
}

fn component(name: &str, component: &str) -> NewComponent {
    let (name, component) = (name.to_owned(), component.to_owned());
    NewComponent { name, component, ..NewComponent::default() }
}

/// Who is asked while something is looked at, if a test has set it.
type Asked = Mutex<Option<Box<dyn FnMut(&str) + Send>>>;
