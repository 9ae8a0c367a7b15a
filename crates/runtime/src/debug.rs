/// `Debug` of a type that holds locks, devices or functions: of its fields these are shown.
#[macro_export]
macro_rules! debug_fields {
    ($type:ty $(: $($field:ident),+)?) => {
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type))
                    $($(.field(stringify!($field), &self.$field))+)?
                    .finish_non_exhaustive()
            }
        }
    };
}
