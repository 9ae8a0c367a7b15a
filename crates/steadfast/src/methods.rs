//! Methods that differ only in what they return or change: an entry of a list each, with the lines
//! of its example.

/// Methods of `$of`: what each returns, and a line of its example, which follows the lines of
/// `$setup` with a file system `fs`.
macro_rules! getters {
    ($of:ty, $setup:literal;
     $($(#[doc = $text:literal])+ $name:ident -> $type:ty = $value:expr, $example:literal;)*) => {
        impl $of {
            $($(#[doc = $text])+
            ///
            /// ```
            /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
            #[doc = $setup]
            #[doc = $example]
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn $name(&self) -> $type {
                let value: fn(&$of) -> $type = $value;
                value(self)
            })*
        }
    };
}

/// Methods of `$of` that take it, change one thing and hand it back.
macro_rules! builders {
    ($of:ty;
     $($(#[doc = $text:literal])+
     $name:ident($($argument:ident: $type:ty),+) = $change:expr, [$($example:literal),+];)*) => {
        impl $of {
            $($(#[doc = $text])+
            ///
            /// ```
            $(#[doc = $example])+
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn $name(self, $($argument: $type),+) -> Self {
                $crate::methods::changed(self, $change)
            })*
        }
    };
}

/// The value after the change.
pub(crate) fn changed<T>(mut value: T, change: impl FnOnce(&mut T)) -> T {
    change(&mut value);
    value
}

pub(crate) use {builders, getters};
