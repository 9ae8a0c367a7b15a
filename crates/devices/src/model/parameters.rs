//! What a model's parameters say of themselves, and what all kinds of devices have in common.
//!
//! A model declares each parameter once, in its `params.rs`, with `parameters!`: name, type,
//! default, bounds, unit, source and text. Scenarios, `lab devices`, the documents and the checks
//! read that.

use std::fmt::Display;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error, Visitor};
use steadfast_block::DeviceInfo;

use super::{ModelError, ModelParams};

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
    /// The least and the greatest value of a number, if its unit does not say them; one or none.
    pub bounds: &'static [(i64, i64)],
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

    /// The least and the greatest value. No time is longer than a minute.
    fn limits(&self) -> Option<(f64, f64)> {
        match (self.bounds, self.unit) {
            ([(low, high), ..], _) => Some((*low as f64, *high as f64)),
            ([], "ms") => Some((0.0, 60e3)),
            ([], "us") => Some((0.0, 60e6)),
            ([], "ns") => Some((0.0, 60e9)),
            ([], "MB/s" | "MHz") => Some((0.001, 1e6)),
            ([], _) => None,
        }
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

/// A value that a parameter can have.
pub(crate) trait ParameterValue: DeserializeOwned {
    /// The words of an enumeration.
    const WORDS: &'static [&'static str] = &[];

    /// Itself, if it is a number.
    fn number(&self) -> Option<f64> {
        None
    }
}

impl ParameterValue for bool {}
impl ParameterValue for String {}
impl<T: DeserializeOwned> ParameterValue for Vec<T> {}
impl<T: ParameterValue> ParameterValue for Box<T> {}

impl<T: ParameterValue> ParameterValue for Option<T> {
    const WORDS: &'static [&'static str] = T::WORDS;

    fn number(&self) -> Option<f64> {
        self.as_ref().and_then(T::number)
    }
}

/// The types that are numbers, and how they are one.
macro_rules! numbers {
    ($($type:ty: $number:expr,)*) => {$(
        impl ParameterValue for $type {
            fn number(&self) -> Option<f64> {
                let number: fn(Self) -> f64 = $number;
                Some(number(*self))
            }
        }
    )*};
}

numbers! {
    f64: |x| x,
    u32: f64::from,
    // OK to cast: what no longer is exact is beyond every limit, or far within it.
    u64: |n| n as f64,
    Size: |Size(n)| n as f64,
}

/// The parameters of a kind as a table, which `parameters!` writes.
pub trait ParameterTable: Default + Clone {
    /// Each of them.
    const PARAMETERS: &'static [Parameter];

    /// Gives the parameter `name` a value; `None` if there is no such parameter.
    fn set<'de, D: Deserializer<'de>>(
        &mut self,
        name: &str,
        value: D,
    ) -> Option<Result<(), D::Error>>;

    /// Gives the parameter `name` its default again.
    fn reset(&mut self, name: &str);

    /// The value of the parameter `name`, if it is a number.
    fn number(&self, name: &str) -> Option<f64>;
}

/// What the parameters of every kind of device can do.
pub trait Describe: ParameterTable {
    /// Its kind.
    const KIND: ModelKind;

    /// The device, as it says of itself when it is new.
    fn info(&self, name: &str) -> DeviceInfo;

    /// What it is, for people.
    fn description(&self) -> String {
        self.info("").model
    }

    /// Its size in bytes.
    fn bytes(&self) -> u64 {
        self.info("").size
    }

    /// Whether the values make sense, each and together.
    ///
    /// # Errors
    /// [`ModelError::Parameter`] names the first that makes none.
    fn check(&self) -> Result<(), ModelError> {
        for parameter in Self::PARAMETERS {
            let Some((low, high)) = parameter.limits() else { continue };
            let outside = |value: &f64| !(low..=high).contains(value);
            if let Some(value) = self.number(parameter.name).filter(outside) {
                let why = format!("must be between {low} and {high}");
                return Err(Self::refusal(parameter.name, value, why));
            }
        }
        self.check_together()
    }

    /// Whether values that make sense each do so together.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    fn check_together(&self) -> Result<(), ModelError> {
        Ok(())
    }

    /// What is possible but hardly meant, each in words.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// That a parameter makes no sense.
    fn refusal(name: &'static str, value: impl Display, why: impl Into<String>) -> ModelError {
        let (model, value) = (Self::KIND.name, value.to_string());
        ModelError::Parameter { model, name, value, why: why.into() }
    }

    /// As the disk of a power-cut test: of this size, with a volatile cache.
    #[must_use]
    fn test_disk(self, bytes: u64) -> Self;

    /// For a run whose files have `part / whole` of their size: a scale model, where distances
    /// matter.
    #[must_use]
    fn scaled(&self, _part: u64, _whole: u64) -> Self {
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
/// of [`Parameter`]s; `type = default, unit, source;` each, or with bounds
/// `type = default, [low, high], unit, source;`.
macro_rules! parameters {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $(
                $(#[doc = $text:literal])+
                $field:ident: $type:ty = $default:expr,
                    $([$low:expr, $high:expr],)? $unit:literal, $source:expr;
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

        impl $crate::model::parameters::ParameterTable for $name {
            const PARAMETERS: &'static [$crate::model::parameters::Parameter] = &[$(
                $crate::model::parameters::Parameter {
                    name: stringify!($field),
                    text: concat!($($text, "\n"),+),
                    unit: $unit,
                    bounds: &[$(($low, $high))?],
                    source: $source,
                    words: || <$type as $crate::model::parameters::ParameterValue>::WORDS,
                },
            )*];

            fn set<'de, D: serde::Deserializer<'de>>(
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

            fn reset(&mut self, name: &str) {
                match name {
                    $(stringify!($field) => self.$field = $default,)*
                    _ => {}
                }
            }

            fn number(&self, name: &str) -> Option<f64> {
                use $crate::model::parameters::ParameterValue;
                match name {
                    $(stringify!($field) => self.$field.number(),)*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use parameters;

/// Declares an enumeration that is the value of a parameter, with the word for each variant.
macro_rules! choice {
    (
        $(#[$about:meta])*
        pub enum $name:ident { $($(#[$text:meta])* $variant:ident = $word:literal,)+ }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$text])* #[serde(rename = $word)] $variant,)+
        }

        impl $crate::model::parameters::ParameterValue for $name {
            const WORDS: &'static [&'static str] = &[$($word),+];
        }
    };
}
pub(crate) use choice;

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
