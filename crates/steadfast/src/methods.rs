//! Methods that differ only in what they return: an entry of a list each, with the lines
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

pub(crate) use getters;
