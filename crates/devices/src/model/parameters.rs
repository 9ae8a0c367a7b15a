//! What a model's parameters say of themselves, and what all kinds of devices have in common.
//!
//! A model declares each parameter once, in its `params.rs`, with `parameters!`: name, type,
//! default, unit, source and text. Scenarios, `lab devices` and the documents read that.

use std::sync::Arc;

use serde::de::value::Error as Plain;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error, Visitor};

use super::{Model, ModelError, ModelParams};

/// Where a parameter's default comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// It stands there.
    Sheet(&'static str),
    /// It was computed from what stands there.
    Follows(&'static str),
    /// Nothing says it; why this value.
    Assumed(&'static str),
    /// Not a figure but something to choose.
    Choice,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Sheet(document) => f.write_str(document),
            Source::Follows(from) => write!(f, "follows from {from}"),
            Source::Assumed(why) => write!(f, "assumed: {why}"),
            Source::Choice => f.write_str("a choice"),
        }
    }
}

/// One parameter of a kind of device.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// The key in a scenario.
    pub name: &'static str,
    /// What it is, in Markdown.
    pub text: &'static str,
    /// Of its value; empty: none.
    pub unit: &'static str,
    /// Of its default.
    pub source: Source,
    /// The words that it can be, if it is one of several.
    pub words: fn() -> &'static [&'static str],
}

impl Parameter {
    /// What it is, in one line.
    pub fn summary(&self) -> String {
        self.text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// A kind of device that is made by name.
#[derive(Debug)]
pub struct ModelKind {
    /// The `kind` of a scenario, the `--device` of the command line.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// Which product its defaults describe; empty: none.
    pub preset: &'static str,
    /// What the model computes, in a few words.
    pub physics: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Whether it is memory, which has namespaces (`namespace =` of a scenario).
    pub is_memory: bool,
    /// One with its defaults.
    pub default: fn() -> ModelParams,
    /// How small it can be as the disk of a power-cut test, in bytes; `None`: it is none.
    pub test_disk_bytes_min: Option<u64>,
}

/// What the parameters of every kind of device can do.
pub trait Describe: Default {
    /// Its kind.
    const KIND: ModelKind;

    /// Gives the parameter `name` a value; `None` if there is no such parameter.
    fn set<'de, D: Deserializer<'de>>(
        &mut self,
        name: &str,
        value: D,
    ) -> Option<Result<(), D::Error>>;

    /// Gives the parameter `name` its default again.
    fn reset(&mut self, name: &str);

    /// What it is, for people.
    fn description(&self) -> String;

    /// Whether the values make sense, each and together.
    ///
    /// # Errors
    /// [`ModelError::Parameter`] names the first that makes none.
    fn check(&self) -> Result<(), ModelError>;

    /// Makes the device, empty, in the caller's world.
    ///
    /// # Errors
    /// As [`Self::check`].
    fn build(&self, name: &str) -> Result<Arc<dyn Model>, ModelError>;

    /// Its size in bytes.
    fn bytes(&self) -> u64;

    /// As the disk of a power-cut test: of this size, with a volatile cache.
    #[must_use]
    fn test_disk(self, bytes: u64) -> Self;

    /// For a run whose files have `part / whole` of their size: a scale model, where distances
    /// matter.
    #[must_use]
    fn scaled(&self, _part: u64, _whole: u64) -> Self
    where
        Self: Clone,
    {
        self.clone()
    }

    /// The size in bytes of a cache that it has and that ignores flushes: its promises are lies.
    fn lying_cache_bytes(&self) -> Option<u64> {
        None
    }

    /// Whether a reset of the machine, in which it keeps its power, takes its cache.
    fn forgets_at_reset(&self) -> bool {
        false
    }
}

/// Declares a model's parameters: a structure with serde's traits and its default, and the table
/// of [`Parameter`]s; `type = default, unit, source;` each.
macro_rules! parameters {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $(
                $(#[doc = $text:literal])+
                $field:ident: $type:ty = $default:expr, $unit:literal, $source:expr;
            )*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $(
                $(#[doc = $text])+
                pub $field: $type,
            )*
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $default,)* }
            }
        }

        impl $name {
            pub(crate) const PARAMETERS: &[$crate::model::parameters::Parameter] = &[$(
                $crate::model::parameters::Parameter {
                    name: stringify!($field),
                    text: concat!($($text, "\n"),+),
                    unit: $unit,
                    source: $source,
                    words: $crate::model::parameters::words::<$type>,
                },
            )*];

            pub(crate) fn set_parameter<'de, D: serde::Deserializer<'de>>(
                &mut self,
                name: &str,
                value: D,
            ) -> Option<Result<(), D::Error>> {
                use serde::Deserialize;
                match name {
                    $(stringify!($field) => {
                        Some(<$type>::deserialize(value).map(|v| self.$field = v))
                    })*
                    _ => None,
                }
            }

            pub(crate) fn reset_parameter(&mut self, name: &str) {
                match name {
                    $(stringify!($field) => self.$field = $default,)*
                    _ => {}
                }
            }
        }
    };
}
pub(crate) use parameters;

/// The methods of [`Describe`] that [`parameters!`] has written.
macro_rules! describe_parameters {
    () => {
        fn set<'de, D: serde::Deserializer<'de>>(
            &mut self,
            name: &str,
            value: D,
        ) -> Option<Result<(), D::Error>> {
            self.set_parameter(name, value)
        }

        fn reset(&mut self, name: &str) {
            self.reset_parameter(name);
        }
    };
}
pub(crate) use describe_parameters;

/// The words that a type of parameter can be: those of an enumeration, none of other types.
pub fn words<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut words: &'static [&'static str] = &[];
    // What it would be is of no interest, what it asks for is.
    let _ = T::deserialize(WordList(&mut words));
    words
}

/// Notes which words an enumeration asks for.
struct WordList<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for WordList<'_> {
    type Error = Plain;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Plain> {
        Err(Plain::custom("nothing is read"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Plain> {
        *self.0 = variants;
        Err(Plain::custom("nothing is read"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// A number of bytes: 4096, or with k, m, g, t.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct Size(pub u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Words;
        impl Visitor<'_> for Words {
            type Value = Size;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a size: a number of bytes, or \"64m\" (k, m, g, t)")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Size, E> {
                let read = parse_size::Config::new().with_binary().parse_size(text.trim());
                let what = "not a size; write a number with k, m, g or t (powers of 1024)";
                read.map(Size).map_err(|_| E::custom(what))
            }

            fn visit_i64<E: Error>(self, n: i64) -> Result<Size, E> {
                u64::try_from(n).map(Size).map_err(|_| E::custom("a size is not below 0"))
            }

            fn visit_u64<E: Error>(self, n: u64) -> Result<Size, E> {
                Ok(Size(n))
            }
        }
        from.deserialize_any(Words)
    }
}
