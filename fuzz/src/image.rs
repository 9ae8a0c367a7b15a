//! A small image whose structures an input replaces: looked at by the check, then mounted, used and
//! unmounted.
//!
//! Its metadata has no checksums: they would keep everything else from being reached.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::{Ext4, MountOptions, next_extent};
use steadfast_ext4_check::{Report, check};
use steadfast_ext4_format::ondisk::{
    Features, InodeNo, Layout, RoCompat, SUPERBLOCK_LEN, Superblock,
};
use steadfast_ext4_mkfs::{JournalChoice, Options, make};
use steadfast_runtime::Sim;
use steadfast_vfs::{FileSystem, Ino};

use crate::input::{of_pieces, pieces};
use crate::usage::use_all;

/// Bytes of a block.
pub const BLOCK: u64 = 1024;
/// Where the superblock is.
pub const SUPERBLOCK: u64 = 1024;
/// Byte of an inode at which its block map is, or its tree's root, or what it holds inline.
pub const MAP_AT: u64 = 40;
/// Bytes of that.
pub const MAP_BYTES: usize = 60;
/// Bytes of an inode.
pub const INODE: usize = 256;
const BYTES: u64 = 4 << 20;

/// Bytes of an image that an input replaces, from its first on.
#[derive(Debug, Clone, Copy)]
pub struct ImageBytes {
    /// Where.
    pub at: u64,
    /// How many.
    pub len: usize,
}

impl ImageBytes {
    /// A block of the file system.
    pub fn block(number: u64) -> ImageBytes {
        ImageBytes { at: number * BLOCK, len: BLOCK as usize }
    }
}

/// How an image is made.
#[derive(Clone, Copy)]
pub struct Recipe {
    /// Its features, without checksums of metadata.
    pub features: Features,
    /// Features that it gets once it is made: mkfs does not make them, the mount knows them.
    pub later: fn(&mut Store),
    /// How it is mounted, to be filled and to be used.
    pub options: fn() -> MountOptions,
    /// The power is cut when it is filled; otherwise it is unmounted.
    pub cut: bool,
    /// Fills it.
    pub fill: fn(&Ext4) -> steadfast_vfs::Result<()>,
    /// What is replaced.
    pub places: fn(&Look<'_>) -> Vec<ImageBytes>,
}

impl Default for Recipe {
    fn default() -> Self {
        Recipe {
            features: Options::debian_features(),
            later: |_| (),
            options: MountOptions::default,
            cut: false,
            fill: |_| Ok(()),
            places: |_| Vec::new(),
        }
    }
}

/// An image.
pub struct Image {
    /// What it holds.
    pub store: Store,
    /// What is replaced.
    pub places: Vec<ImageBytes>,
    options: fn() -> MountOptions,
}

/// Where things are in an image.
pub struct Look<'i> {
    store: &'i Store,
    layout: Layout,
}

impl Look<'_> {
    /// Four bytes.
    pub fn word(&self, at: u64) -> u32 {
        let bytes = self.store.read(at, 4);
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    /// Where an inode is.
    pub fn inode(&self, number: u32) -> u64 {
        let place = self.layout.inode_place(InodeNo(number)).expect("an inode's number");
        let (block, offset) = self.layout.desc_place(place.group);
        // Blocks have 32 bits in an image of this size.
        let table = u64::from(self.word(block * BLOCK + offset as u64 + 8));
        (table + u64::from(place.table_block)) * BLOCK + place.offset as u64
    }

    /// All of an inode.
    pub fn whole_inode(&self, number: u32) -> ImageBytes {
        ImageBytes { at: self.inode(number), len: INODE }
    }

    /// The number of what has a path.
    pub fn number(&self, path: &'static str) -> u32 {
        self.mounted(move |fs| {
            let names = path.split('/').filter(|name| !name.is_empty());
            let found: Ino = names.fold(fs.root(), |dir, name| {
                fs.lookup(dir, name.as_bytes()).expect("it was made").ino
            });
            found.0 as u32
        })
    }

    /// The blocks of an inode, at most so many.
    pub fn blocks(&self, number: u32, most: usize) -> Vec<ImageBytes> {
        self.mounted(move |fs| {
            let (mut blocks, mut at) = (Vec::new(), 0);
            let txn = fs.look();
            while let Some(extent) = next_extent(&txn, InodeNo(number), at).expect("a good inode") {
                let all = extent.start..extent.start + u64::from(extent.len);
                blocks.extend(all.map(ImageBytes::block));
                at = extent.end();
            }
            blocks.truncate(most);
            blocks
        })
    }

    fn mounted<T: 'static>(&self, look: impl FnOnce(&Ext4) -> T + 'static) -> T {
        let store = self.store.clone();
        let looked = Sim::new(1).run(move || {
            let disk = Arc::new(Ram::from_store("disk", store).persistent());
            let options = MountOptions { read_only: true, ..MountOptions::default() };
            look(&Ext4::mount(disk, options).expect("a good image"))
        });
        looked.expect("a mount ends")
    }
}

impl Image {
    /// Makes one.
    pub fn new(recipe: &Recipe) -> Image {
        let Recipe { features, later, options: mount_options, cut, fill, places } = *recipe;
        let made = Sim::new(1).run(move || {
            let disk = Ram::new("disk", BYTES).persistent();
            let device: Arc<dyn BlockDevice> = Arc::new(disk.clone());
            let mut options = Options::random(1_700_000_000);
            options.features = features;
            options.features.ro_compat.remove(RoCompat::METADATA_CSUM);
            options.block_size = Some(BLOCK as u32);
            options.journal = JournalChoice::InternalOf(1024);
            make(&device, &options).expect("an image");
            let mut store = disk.store();
            later(&mut store);
            disk.replace(store);
            let fs = Ext4::mount(device, mount_options()).expect("a new image");
            fill(&fs).expect("room for what fills it");
            if cut {
                let cut = disk.store();
                // What is not written by then is lost.
                drop(fs);
                return cut;
            }
            fs.unmount().expect("a clean unmount");
            disk.store()
        });
        let store = made.expect("a mount ends");
        let bytes = store.read(SUPERBLOCK, SUPERBLOCK_LEN as u64);
        let superblock = Superblock::parse_unchecked(&bytes).expect("a superblock");
        let layout = Layout::new(&superblock, BYTES).expect("a layout");
        let places = places(&Look { store: &store, layout });
        Image { store, places, options: mount_options }
    }

    /// Inputs that change nothing: what each place holds.
    pub fn seeds(&self) -> Vec<Vec<u8>> {
        let of_place = |(number, place): (usize, &ImageBytes)| {
            let bytes = self.store.read(place.at, place.len as u64);
            of_pieces([(number as u8, &bytes[..])])
        };
        self.places.iter().enumerate().map(of_place).collect()
    }

    /// With what an input's pieces say.
    pub fn changed(&self, input: &[u8]) -> Store {
        let mut store = self.store.clone();
        for (number, bytes) in pieces(input) {
            if let Some(place) = self.places.get(number % self.places.len()) {
                store.write_slice(place.at, &bytes[..bytes.len().min(place.len)]);
            }
        }
        store
    }

    /// Replaces what the input says, and uses the image.
    pub fn fuzz(&self, input: &[u8]) {
        use_image(self.changed(input), (self.options)());
    }
}

fn checked(store: &Store) -> Option<Report> {
    let device: Arc<dyn BlockDevice> = Arc::new(Ram::from_store("disk", store.clone()));
    check(&device, None).ok()
}

/// Checks, mounts, uses and unmounts an image.
pub fn use_image(store: Store, options: MountOptions) {
    let before = checked(&store);
    let ended = Sim::new(1).run(move || {
        let disk = Ram::from_store("disk", store).persistent();
        let Ok(fs) = Ext4::mount(Arc::new(disk.clone()), options) else { return None };
        use_all(&*fs);
        let unmounted = fs.unmount().is_ok();
        unmounted.then(|| disk.store())
    });
    let after = ended.expect("what uses an image ends");
    // What was whole is left whole.
    let was_whole = before.is_some_and(|report| report.is_clean() && !report.needs_recovery);
    if let Some(after) = after.filter(|_| was_whole) {
        let report = checked(&after).expect("what was checked before");
        assert!(report.is_clean(), "used, a whole image has {:?}", report.findings);
    }
}
