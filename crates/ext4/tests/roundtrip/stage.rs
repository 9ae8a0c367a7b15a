//! Images mounted by us or by the kernel.

use std::sync::Arc;

use steadfast_devices::source::{FileDevice, FileOptions};
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_vfs::FileSystem;

use crate::image::{Image, KernelMount};

/// A mounted image that can be mounted again.
pub trait Stage {
    fn fs(&self) -> &dyn FileSystem;
    fn remount(&mut self);
    /// Unmounts and gives the image back.
    fn unmount(self) -> Image;
}

/// The image mounted by us.
pub struct Ours {
    image: Image,
    options: MountOptions,
    fs: Option<Arc<Ext4>>,
}

impl Ours {
    pub fn mount(image: Image) -> Self {
        Ours::mount_as(image, MountOptions::default())
    }

    pub fn mount_as(image: Image, options: MountOptions) -> Self {
        let mut ours = Ours { image, options, fs: None };
        ours.remount();
        ours
    }

    /// The file system, for several tasks.
    pub fn shared(&self) -> Arc<Ext4> {
        Arc::clone(self.fs.as_ref().expect("mounted"))
    }
}

impl Stage for Ours {
    fn fs(&self) -> &dyn FileSystem {
        &**self.fs.as_ref().expect("mounted")
    }

    fn remount(&mut self) {
        if let Some(fs) = self.fs.take() {
            fs.unmount().unwrap();
        }
        let device = FileDevice::open(self.image.path(), &FileOptions::default()).unwrap();
        self.fs = Some(Ext4::mount(Arc::new(device), self.options.clone()).unwrap());
    }

    fn unmount(mut self) -> Image {
        self.fs.take().expect("mounted").unmount().unwrap();
        self.image
    }
}

/// The image mounted by the kernel.
pub struct Kernel {
    mount: Option<KernelMount>,
    image: Image,
}

impl Kernel {
    pub fn mount(image: Image) -> Self {
        Kernel { mount: Some(image.mount("rw,noatime")), image }
    }
}

impl Kernel {
    /// Where it is mounted.
    pub fn folder(&self) -> &std::path::Path {
        self.mount.as_ref().expect("mounted").folder()
    }
}

impl Stage for Kernel {
    fn fs(&self) -> &dyn FileSystem {
        self.mount.as_ref().expect("mounted").fs()
    }

    fn remount(&mut self) {
        self.mount = None;
        self.mount = Some(self.image.mount("rw,noatime"));
    }

    fn unmount(mut self) -> Image {
        self.mount = None;
        self.image
    }
}
