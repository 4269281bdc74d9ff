//! Quantization modes: the element types of codes and scales.

use std::fmt;
use std::str::FromStr;

use typelift_promote::ElementType;

use crate::base::options::deserialize_as_text;

/// Mode of quantization: the conversion of a constant's values to codes of 4 or 8 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// u8 codes with a zero point.
    Int8Asym,
    /// i8 codes.
    Int8Sym,
    /// u4 codes with a zero point.
    Int4Asym,
    /// i4 codes.
    Int4Sym,
    /// `nf4` codes, which have 16 levels.
    Nf4,
    /// Codes of `f4e2m1`.
    Fp4,
    /// `f4e2m1` codes. Scales are powers of two.
    Mxfp4,
    /// `f8e4m3` codes. Supported only as backup mode.
    Fp8,
    /// `f8e4m3` codes with powers of two as scales. Supported only as backup mode.
    Mxfp8,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 9] = [
        Self::Int8Asym,
        Self::Int8Sym,
        Self::Int4Asym,
        Self::Int4Sym,
        Self::Nf4,
        Self::Fp4,
        Self::Mxfp4,
        Self::Fp8,
        Self::Mxfp8,
    ];

    /// Returns nncf's name of the mode, such as `int4_asym`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Int8Asym => "int8_asym",
            Self::Int8Sym => "int8_sym",
            Self::Int4Asym => "int4_asym",
            Self::Int4Sym => "int4_sym",
            Self::Nf4 => "nf4",
            Self::Fp4 => "fp4",
            Self::Mxfp4 => "mxfp4",
            Self::Fp8 => "fp8_e4m3",
            Self::Mxfp8 => "mxfp8_e4m3",
        }
    }

    pub(crate) fn codes(self) -> ElementType {
        match self {
            Self::Int8Asym => ElementType::U8,
            Self::Int8Sym => ElementType::I8,
            Self::Int4Asym => ElementType::U4,
            Self::Int4Sym => ElementType::I4,
            Self::Nf4 => ElementType::Nf4,
            Self::Fp4 | Self::Mxfp4 => ElementType::F4E2M1,
            Self::Fp8 | Self::Mxfp8 => ElementType::F8E4M3,
        }
    }

    pub(crate) fn scales(self) -> ElementType {
        if self.has_powers_of_two() { ElementType::F8E8M0 } else { ElementType::F16 }
    }

    pub(crate) fn has_zero_points(self) -> bool {
        matches!(self, Self::Int8Asym | Self::Int4Asym)
    }

    pub(super) fn has_powers_of_two(self) -> bool {
        matches!(self, Self::Mxfp4 | Self::Mxfp8)
    }

    /// True for modes with one scale per channel and no options.
    pub(super) fn is_int8(self) -> bool {
        matches!(self, Self::Int8Asym | Self::Int8Sym)
    }

    /// True if the mode can be the main mode; false if it can only be a backup mode.
    #[must_use]
    pub fn is_primary(self) -> bool {
        !matches!(self, Self::Fp8 | Self::Mxfp8)
    }

    pub(super) fn default_group(self) -> Group {
        match self {
            Self::Int8Asym | Self::Int8Sym => Group::Channel,
            Self::Mxfp4 | Self::Mxfp8 => Group::Of(32),
            _ => Group::Of(128),
        }
    }

    /// The default backup mode, for layers such as the last one.
    pub(super) fn default_backup(self) -> Self {
        match self {
            Self::Mxfp4 | Self::Mxfp8 => Self::Mxfp8,
            Self::Fp4 | Self::Fp8 => Self::Fp8,
            _ => Self::Int8Asym,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        Self::ALL.into_iter().find(|mode| mode.name() == text).ok_or_else(|| format!("expected one of {}", names()))
    }
}

deserialize_as_text!(Mode, Group, Backup, Fallback);

/// Set of values that share a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Group {
    /// All values of an output channel.
    Channel,
    /// This many consecutive values of an output channel.
    Of(u64),
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Channel => f.write_str("-1"),
            Self::Of(size) => write!(f, "{size}"),
        }
    }
}

impl FromStr for Group {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(-1) => Ok(Self::Channel),
            Ok(size @ 1_i64..) => Ok(Self::Of(size.unsigned_abs())),
            _ => Err("expected a number of values, or -1 for whole channels".to_owned()),
        }
    }
}

/// Mode of weights that do not get the main mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backup {
    /// Weights stay unchanged.
    None,
    /// The weights get this mode.
    Mode(Mode),
}

impl Backup {
    /// Returns nncf's name, such as `none` or `int8_asym`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Mode(mode) => mode.name(),
        }
    }
}

impl FromStr for Backup {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const MODES: [Mode; 4] = [Mode::Int8Asym, Mode::Int8Sym, Mode::Fp8, Mode::Mxfp8];
        let mode = MODES.into_iter().find(|mode| mode.name() == text).map(Self::Mode);
        let none = (text == "none").then_some(Self::None);
        mode.or(none).ok_or_else(|| format!("expected none, {}", MODES.map(Mode::name).join(", ")))
    }
}

/// Treatment of constants whose channel size is not a multiple of the group size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fallback {
    /// The plan fails with an error.
    #[default]
    Refuse,
    /// Weights stay unchanged.
    Ignore,
    /// The group size is reduced to the largest power of two from 32 on that divides the channel size. If there is
    /// none, the weights get the backup mode.
    Adjust,
}

impl FromStr for Fallback {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "refuse" => Ok(Self::Refuse),
            "ignore" => Ok(Self::Ignore),
            "adjust" => Ok(Self::Adjust),
            _ => Err("expected refuse, ignore or adjust".to_owned()),
        }
    }
}
