//! The form of descriptions: a TOML file of tables, each declared once, with
//! [`table!`](crate::table).
//!
//! A declaration has of each key its name, its type, whether it must be there, its bounds and what
//! it means. The reader, its messages, `steadfast lab keys` and the documents go by that. A value
//! is read by serde; tables, lists and maps of them by [`Value`], as serde would end with the first
//! mistake and a file is to be told all of them.

mod fields;
mod value;
mod wrong;

pub use fields::{Fields, read_text};
pub use value::{FormValue, Value};
pub(crate) use value::{one_of, parsed};
pub use wrong::{Wrong, WrongFile, did_you_mean, lines};

/// A key of a table.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Whether it must be there.
    pub need: Need,
    /// Of a number: how small and how large it can be.
    pub bounds: Option<Bounds>,
    /// What it means, in Markdown.
    pub text: &'static str,
}

/// Whether a key must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Always.
    Required,
    /// If it is not, it is this, as TOML writes it.
    Default(&'static str),
    /// No; what it means not to be there.
    Optional(&'static str),
}

/// What a number is between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The least, as the declaration writes it.
    pub least: &'static str,
    /// The most.
    pub most: &'static str,
    /// It is above the least.
    pub above: bool,
}

impl Key {
    /// What it means, in one line.
    pub fn meaning(&self) -> String {
        let text: Vec<&str> = self.text.split_whitespace().collect();
        let bounds = self.bounds.map(|bounds| match bounds.above {
            true => format!(" Above {} and at most {}.", bounds.least, bounds.most),
            false => format!(" From {} to {}.", bounds.least, bounds.most),
        });
        text.join(" ") + &bounds.unwrap_or_default()
    }
}

impl Bounds {
    /// Whether a number is within.
    fn hold(&self, number: f64) -> bool {
        // OK to unwrap: a test reads the bounds of every key.
        let of = |text: &str| text.parse::<f64>().unwrap_or_default();
        let (least, most) = (of(self.least), of(self.most));
        number <= most && if self.above { number > least } else { number >= least }
    }
}

impl std::fmt::Display for Bounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.above {
            true => write!(f, "above {} and at most {}", self.least, self.most),
            false => write!(f, "from {} to {}", self.least, self.most),
        }
    }
}

/// Declares a table of a form: a structure with its keys, and how it is read. After a field's type
/// stands its default (`= 4`, as TOML writes it), or what it means that the key is not there
/// (`, else "none"`), or nothing: it is required. Then the bounds of a number: `, from 1 to 64`, or
/// `, above 0 to 1`. A field that has not the key's name has it after `as`. `with` names a field
/// that is made of other keys of the same table, `beside` one that no file has, and `check` what
/// looks at keys together; what was read is there if each could be.
///
/// ```
/// use steadfast_setup::form::{Fields, read_text};
/// use steadfast_setup::table;
///
/// table! {
///     /// Tea.
///     pub struct Tea: "the file", check Tea::check {
///         /// How long it draws.
///         minutes: u64 = 4, from 1 to 10;
///         /// Of what.
///         leaves: Vec<String>;
///     }
/// }
///
/// impl Tea {
///     fn check(fields: &Fields<'_>, tea: Option<&Tea>) {
///         if tea.is_some_and(|tea| tea.leaves.is_empty()) {
///             fields.wrong("leaves", "there are none", "name one");
///         }
///     }
/// }
///
/// let tea = read_text("leaves = ['mint']", |_| (), Tea::read_whole).unwrap();
/// assert_eq!((tea.minutes, tea.leaves.len()), (4, 1));
/// let wrong = read_text("leaves = []\nminuts = 3", |_| (), Tea::read_whole).unwrap_err();
/// assert_eq!(wrong.len(), 2);
/// ```
#[macro_export]
macro_rules! table {
    (
        $(#[$meta:meta])*
        pub struct $name:ident: $title:literal
            $(, with $part:ident: $part_type:ty)*
            $(, beside $(#[$extra_meta:meta])* $extra:ident: $extra_type:ty)*
            $(, check $check:path)?
        {
            $(
                $(#[doc = $text:literal])+
                $field:ident $(as $key:literal)?: $type:ty $(= $default:tt)?
                $(, else $without:literal)?
                $(, from $least:tt to $most:tt)? $(, above $over:tt to $top:tt)?;
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $( $(#[doc = $text])+ pub $field: $type, )*
            $( #[doc = "Of the same table."] pub $part: $part_type, )*
            $( #[doc = "No file has it."] $(#[$extra_meta])* pub $extra: $extra_type, )*
        }

        impl $name {
            /// As a file writes it.
            pub const TITLE: &'static str = $title;

            /// Its keys.
            pub const KEYS: &'static [$crate::form::Key] = &[$(
                $crate::form::Key {
                    name: $crate::table!(@name $field $($key)?),
                    need: $crate::table!(@need [$($default)?] [$($without)?]),
                    bounds: $crate::table!(@bounds [$($least $most)?] [$($over $top)?]),
                    text: concat!($($text, "\n"),+),
                },
            )*];

            /// Takes its keys from a table that may have others; notes what is wrong with them.
            pub fn take(fields: &$crate::form::Fields<'_>) -> Option<Self> {
                fields.check(Self::KEYS);
                $( let $part = <$part_type>::take(fields); )*
                $(
                    let name = $crate::table!(@name $field $($key)?);
                    let $field = fields.take::<$type>(name, Self::KEYS);
                )*
                let read = $crate::form::Fields::all(|| Some($name {
                    $( $field: $field?, )*
                    $( $part: $part?, )*
                    $( $(#[$extra_meta])* $extra: Default::default(), )*
                }));
                $( $check(fields, read.as_ref()); )?
                read
            }

            /// Reads a table that has these keys only; notes what is wrong.
            pub fn read_whole(fields: &$crate::form::Fields<'_>) -> Option<Self> {
                fields.only(&[Self::KEYS $(, <$part_type>::KEYS)*]);
                Self::take(fields)
            }
        }

        impl $crate::form::Value for $name {
            const TITLE: Option<&'static str> = Some($name::TITLE);

            fn read(place: &$crate::form::FormValue<'_>) -> Option<Self> {
                Self::read_whole(&place.fields($title)?)
            }

            fn absent() -> Option<Self> {
                $crate::form::Fields::empty($title, Self::take)
            }
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $key:literal) => { $key };
    (@need [] []) => { $crate::form::Need::Required };
    (@need [$default:tt] []) => { $crate::form::Need::Default(stringify!($default)) };
    (@need [] [$without:literal]) => { $crate::form::Need::Optional($without) };
    (@bounds [] []) => { None };
    (@bounds [$least:tt $most:tt] []) => {
        Some($crate::form::Bounds {
            least: stringify!($least),
            most: stringify!($most),
            above: false,
        })
    };
    (@bounds [] [$over:tt $top:tt]) => {
        Some($crate::form::Bounds { least: stringify!($over), most: stringify!($top), above: true })
    };
}
