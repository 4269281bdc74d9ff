//! Element types of tensors, one table row each.

use core::fmt;

/// Kind of value that an element type holds. Promotion compares kinds before widths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Kind {
    /// Unknown until run time.
    Dynamic,
    /// True or false.
    Boolean,
    /// Integer without a sign.
    Unsigned,
    /// Integer with a sign.
    Signed,
    /// Real floating point, including table-coded formats such as `nf4`.
    Float,
    /// Pair of floating-point numbers.
    Complex,
    /// Text of any length.
    String,
    /// Storage without arithmetic, such as PyTorch's `bits8`.
    Bits,
}

macro_rules! element_types {
    (
        openvino { $(
            $(#[$ov_doc:meta])* $ov:ident $ov_name:literal $ov_port:literal $ov_short:literal, $ov_bits:literal $ov_kind:ident,
            $ov_format:expr, $ov_release:expr;
        )* }
        elsewhere { $($(#[$doc:meta])* $variant:ident $short:literal, $bits:literal $kind:ident;)* }
    ) => {
        /// Type of one element of a tensor.
        ///
        /// Spellings depend on the place. [`name`](Self::name) is the spelling of attributes in OpenVINO IR (`f16`,
        /// `boolean`, `u1`). [`port_name`](Self::port_name) is that of its ports (`FP16`, `BOOL`, `BIN`).
        /// [`framework_name`](Self::framework_name) is the short name in PyTorch and Paddle (`f16`, `bool`, `uint1`).
        ///
        /// ```
        /// use typelift_promote::ElementType::{self, *};
        /// assert_eq!(ElementType::from_port_name("FP16"), ElementType::from_name("f16"));
        /// assert_eq!(ElementType::from_framework_name("c64").map(ElementType::bits), Some(64));
        /// assert_eq!((ElementType::from_name("F16"), ElementType::from_name("FP16")), (Some(F16), None));
        /// assert_eq!((ElementType::from_port_name("BIN"), ElementType::from_port_name("fp16")), (Some(U1), None));
        /// let named = ["f8e4m3fn", "float32"].map(ElementType::from_framework_name);
        /// assert_eq!(named, [Some(F8E4M3), Some(F32)]);
        /// assert_eq!(Bf16.float_format().map(|format| (format.exponent, format.mantissa)), Some((8, 7)));
        /// assert_eq!(Nf4.float_format(), None);
        /// assert_eq!((F8E4M3.first_release(), C64.first_release()), (Some((2024, 0)), None));
        /// assert_eq!((C64.real(), I32.real()), (F32, I32));
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum ElementType {
            $($(#[$ov_doc])* $ov,)*
            $($(#[$doc])* $variant,)*
        }

        const ROWS: &[Row] = &[
            $(Row {
                ty: ElementType::$ov, name: $ov_name, port_name: Some($ov_port), framework_name: $ov_short,
                bits: $ov_bits, kind: Kind::$ov_kind, format: $ov_format, first_release: Some($ov_release),
            },)*
            $(Row {
                ty: ElementType::$variant, name: $short, port_name: None, framework_name: $short,
                bits: $bits, kind: Kind::$kind, format: Format::Other, first_release: None,
            },)*
        ];

        // A graph looks up the type of every port, and a match on literals is several times faster than a scan of
        // `ROWS`.

        fn by_name(name: &str) -> Option<ElementType> {
            match name {
                $($ov_name => Some(ElementType::$ov),)*
                _ => None,
            }
        }

        fn by_port_name(name: &str) -> Option<ElementType> {
            match name {
                $($ov_port => Some(ElementType::$ov),)*
                _ => None,
            }
        }

        fn by_framework_name(name: &str) -> Option<ElementType> {
            match name {
                $($ov_short => Some(ElementType::$ov),)*
                $($short => Some(ElementType::$variant),)*
                _ => None,
            }
        }
    };
}

// A float states its format, and its bits add up.
const _: () = {
    let mut at = 0;
    while at < ROWS.len() {
        let Row { kind, format, bits, .. } = &ROWS[at];
        match format {
            Format::Exact => assert!(!matches!(kind, Kind::Float), "a float needs its format"),
            Format::Float(format) => assert!(
                matches!(kind, Kind::Float) && 1 + format.exponent as u16 + format.mantissa as u16 == *bits,
                "a sign, the exponent and the mantissa are all bits of a float"
            ),
            Format::Other => {}
        }
        at += 1;
    }
};

struct Row {
    ty: ElementType,
    name: &'static str,
    port_name: Option<&'static str>,
    framework_name: &'static str,
    bits: u16,
    kind: Kind,
    format: Format,
    /// First OpenVINO release that reads the type, as year and number.
    first_release: Option<(u16, u8)>,
}

/// Meaning of the bits of a value.
#[derive(Clone, Copy)]
enum Format {
    /// Not a float.
    Exact,
    Float(FloatFormat),
    /// A float of another kind, such as a code into a table.
    Other,
}

/// Format of a float with a sign bit, biased exponent and mantissa, and with subnormal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FloatFormat {
    /// Bits of the exponent. The bias is half their range: 15 for 5 bits.
    pub exponent: u8,
    /// Bits of the mantissa.
    pub mantissa: u8,
    /// Meaning of the largest exponent.
    pub specials: Specials,
}

/// Meaning of the codes with the largest exponent of a [`FloatFormat`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Specials {
    /// Infinities and NaN, as in IEEE 754.
    Infinities,
    /// NaN if the mantissa is all ones, else numbers.
    Nan,
    /// Numbers.
    None,
}

const fn ieee(exponent: u8, mantissa: u8) -> Format {
    Format::Float(FloatFormat { exponent, mantissa, specials: Specials::Infinities })
}

const fn finite(exponent: u8, mantissa: u8, specials: Specials) -> Format {
    Format::Float(FloatFormat { exponent, mantissa, specials })
}

impl FloatFormat {
    /// Exponent of the unit of the smallest numbers: -24 for `f16`.
    #[must_use]
    pub const fn lowest(self) -> i32 {
        1 - self.bias() - self.mantissa as i32
    }

    /// Largest number as mantissa and exponent of two: (2047, 5) for `f16`, whose largest number is 65504.
    #[must_use]
    pub const fn largest(self) -> (u64, i32) {
        let (exponent, mantissa) = ((1 << self.exponent) - 1 - self.bias(), (2 << self.mantissa) - 1);
        let (mantissa, exponent) = match self.specials {
            Specials::Infinities => (mantissa, exponent - 1),
            Specials::Nan => (mantissa - 1, exponent),
            Specials::None => (mantissa, exponent),
        };
        (mantissa, exponent - self.mantissa as i32)
    }

    /// Bias of the exponent.
    #[must_use]
    pub const fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }
}

element_types! {
    openvino {
        /// Unknown until run time; merges with every type.
        Dynamic "dynamic" "UNSPECIFIED" "dynamic", 0 Dynamic, Format::Exact, (2023, 0);
        /// A byte per value, 0 or 1.
        Boolean "boolean" "BOOL" "bool", 8 Boolean, Format::Exact, (2021, 3);
        /// The upper half of an `f32`.
        Bf16 "bf16" "BF16" "bf16", 16 Float, ieee(8, 7), (2021, 3);
        /// IEEE 754 binary16.
        F16 "f16" "FP16" "f16", 16 Float, ieee(5, 10), (2021, 3);
        /// IEEE 754 binary32.
        F32 "f32" "FP32" "f32", 32 Float, ieee(8, 23), (2021, 3);
        /// IEEE 754 binary64.
        F64 "f64" "FP64" "f64", 64 Float, ieee(11, 52), (2021, 3);
        /// 4-bit signed integer, packed two to a byte.
        I4 "i4" "I4" "int4", 4 Signed, Format::Exact, (2021, 3);
        /// 8-bit signed integer.
        I8 "i8" "I8" "i8", 8 Signed, Format::Exact, (2021, 3);
        /// 16-bit signed integer.
        I16 "i16" "I16" "i16", 16 Signed, Format::Exact, (2021, 3);
        /// 32-bit signed integer.
        I32 "i32" "I32" "i32", 32 Signed, Format::Exact, (2021, 3);
        /// 64-bit signed integer.
        I64 "i64" "I64" "i64", 64 Signed, Format::Exact, (2021, 3);
        /// Single bit, packed eight to a byte, most significant first.
        U1 "u1" "BIN" "uint1", 1 Unsigned, Format::Exact, (2021, 3);
        /// 2-bit unsigned integer, packed four to a byte.
        U2 "u2" "U2" "uint2", 2 Unsigned, Format::Exact, (2024, 1);
        /// 3-bit unsigned integer, packed eight to three bytes.
        U3 "u3" "U3" "uint3", 3 Unsigned, Format::Exact, (2024, 1);
        /// 4-bit unsigned integer, packed two to a byte.
        U4 "u4" "U4" "uint4", 4 Unsigned, Format::Exact, (2021, 3);
        /// 6-bit unsigned integer, packed four to three bytes.
        U6 "u6" "U6" "uint6", 6 Unsigned, Format::Exact, (2024, 1);
        /// 8-bit unsigned integer.
        U8 "u8" "U8" "u8", 8 Unsigned, Format::Exact, (2021, 3);
        /// 16-bit unsigned integer.
        U16 "u16" "U16" "u16", 16 Unsigned, Format::Exact, (2021, 3);
        /// 32-bit unsigned integer.
        U32 "u32" "U32" "u32", 32 Unsigned, Format::Exact, (2021, 3);
        /// 64-bit unsigned integer.
        U64 "u64" "U64" "u64", 64 Unsigned, Format::Exact, (2021, 3);
        /// 4-bit code into a table of the normal distribution's quantiles.
        Nf4 "nf4" "NF4" "nf4", 4 Float, Format::Other, (2023, 2);
        /// 8-bit float, 4 exponent and 3 mantissa bits, no infinities (PyTorch's `float8_e4m3fn`).
        F8E4M3 "f8e4m3" "F8E4M3" "f8e4m3fn", 8 Float, finite(4, 3, Specials::Nan), (2024, 0);
        /// 8-bit float, 5 exponent and 2 mantissa bits.
        F8E5M2 "f8e5m2" "F8E5M2" "f8e5m2", 8 Float, ieee(5, 2), (2024, 0);
        /// Text of any length.
        String "string" "STRING" "string", 0 String, Format::Exact, (2023, 3);
        /// 4-bit float, 2 exponent bits and 1 mantissa bit.
        F4E2M1 "f4e2m1" "F4E2M1" "f4e2m1", 4 Float, finite(2, 1, Specials::None), (2024, 3);
        /// 8-bit power of two, a scale without sign or mantissa.
        F8E8M0 "f8e8m0" "F8E8M0" "f8e8m0fnu", 8 Float, Format::Other, (2024, 3);
    }
    elsewhere {
        /// Two `f16`: real and imaginary part.
        C32 "c32", 32 Complex;
        /// Two `bf16`.
        Bc32 "bc32", 32 Complex;
        /// Two `f32`.
        C64 "c64", 64 Complex;
        /// Two `f64`.
        C128 "c128", 128 Complex;
        /// 8-bit float, 4 exponent and 3 mantissa bits, neither infinities nor negative zero.
        F8E4M3Fnuz "f8e4m3fnuz", 8 Float;
        /// 8-bit float, 5 exponent and 2 mantissa bits, neither infinities nor negative zero.
        F8E5M2Fnuz "f8e5m2fnuz", 8 Float;
        /// 8-bit float, 4 exponent bits with a bias of 11 and 3 mantissa bits, neither infinities nor negative zero.
        F8E4M3B11Fnuz "f8e4m3b11fnuz", 8 Float;
        /// 8-bit float, 4 exponent and 3 mantissa bits, with infinities as IEEE 754 has them (`float8_e4m3` of ml_dtypes).
        F8E4M3Ieee "f8e4m3ieee", 8 Float;
        /// 8-bit float, 3 exponent and 4 mantissa bits.
        F8E3M4 "f8e3m4", 8 Float;
        /// 6-bit float, 2 exponent and 3 mantissa bits.
        F6E2M3 "f6e2m3fn", 6 Float;
        /// 6-bit float, 3 exponent and 2 mantissa bits.
        F6E3M2 "f6e3m2fn", 6 Float;
        /// C's `long double`, here the 80-bit format of x86 in 16 bytes.
        LongDouble "longdouble", 128 Float;
        /// Two `longdouble`.
        CLongDouble "clongdouble", 256 Complex;
        /// Two 4-bit floats in a byte, counted as one element.
        F4E2M1x2 "float4_e2m1fn_x2", 8 Float;
        /// 1-bit signed integer.
        I1 "int1", 1 Signed;
        /// 2-bit signed integer.
        I2 "int2", 2 Signed;
        /// 3-bit signed integer.
        I3 "int3", 3 Signed;
        /// 5-bit signed integer.
        I5 "int5", 5 Signed;
        /// 6-bit signed integer.
        I6 "int6", 6 Signed;
        /// 7-bit signed integer.
        I7 "int7", 7 Signed;
        /// 5-bit unsigned integer.
        U5 "uint5", 5 Unsigned;
        /// 7-bit unsigned integer.
        U7 "uint7", 7 Unsigned;
        /// A byte.
        Bits8 "bits8", 8 Bits;
        /// Two bytes.
        Bits16 "bits16", 16 Bits;
        /// A byte of eight single bits.
        Bits1x8 "bits1x8", 8 Bits;
        /// A byte of four pairs of bits.
        Bits2x4 "bits2x4", 8 Bits;
        /// A byte of two half bytes.
        Bits4x2 "bits4x2", 8 Bits;
    }
}

impl ElementType {
    /// Returns every element type: OpenVINO's first, then those that only frameworks have.
    pub fn all() -> impl ExactSizeIterator<Item = Self> + Clone {
        ROWS.iter().map(|row| row.ty)
    }

    /// Parses an attribute of OpenVINO IR: a [`name`](Self::name) in any case, or `undefined`, an older word for
    /// `dynamic`.
    pub fn from_name(name: &str) -> Option<Self> {
        by_name(name).or_else(|| {
            let in_other_case = ROWS.iter().find(|row| row.port_name.is_some() && row.name.eq_ignore_ascii_case(name));
            in_other_case.map(|row| row.ty).or(name.eq_ignore_ascii_case("undefined").then_some(Self::Dynamic))
        })
    }

    /// Parses the type of a port of OpenVINO IR: a [`port_name`](Self::port_name) or a [`name`](Self::name), both
    /// case-sensitive. Four further words that OpenVINO's reader accepts are accepted too.
    pub fn from_port_name(name: &str) -> Option<Self> {
        by_port_name(name).or_else(|| by_name(name)).or(match name {
            "undefined" => Some(Self::Dynamic),
            "U1" | "bin" => Some(Self::U1),
            _ => None,
        })
    }

    /// Parses a name of PyTorch or Paddle: the short [`framework_name`](Self::framework_name) or a long name such as
    /// `float16`, `uint8`, `complex64`, `float8_e4m3fn`.
    pub fn from_framework_name(name: &str) -> Option<Self> {
        by_framework_name(name).or(match name {
            "uint8" => Some(Self::U8),
            "uint16" => Some(Self::U16),
            "uint32" => Some(Self::U32),
            "uint64" => Some(Self::U64),
            "int8" => Some(Self::I8),
            "int16" => Some(Self::I16),
            "int32" => Some(Self::I32),
            "int64" => Some(Self::I64),
            "float16" => Some(Self::F16),
            "bfloat16" => Some(Self::Bf16),
            "float32" => Some(Self::F32),
            "float64" => Some(Self::F64),
            "complex32" => Some(Self::C32),
            "bcomplex32" => Some(Self::Bc32),
            "complex64" => Some(Self::C64),
            "complex128" => Some(Self::C128),
            "float8_e4m3fn" => Some(Self::F8E4M3),
            "float8_e5m2" => Some(Self::F8E5M2),
            "float8_e4m3fnuz" => Some(Self::F8E4M3Fnuz),
            "float8_e5m2fnuz" => Some(Self::F8E5M2Fnuz),
            "float8_e8m0fnu" => Some(Self::F8E8M0),
            _ => None,
        })
    }

    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Returns the spelling of IR attributes: `f16`, `boolean`, `u1`, `dynamic`. For a type that OpenVINO lacks, it is
    /// the [`framework_name`](Self::framework_name).
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the spelling of IR ports: `FP16`, `BOOL`, `BIN`, `UNSPECIFIED`; `None` if OpenVINO lacks the type.
    pub fn port_name(self) -> Option<&'static str> {
        self.row().port_name
    }

    /// Returns the short name in PyTorch and Paddle: `bool`, `f8e4m3fn`, `c64`, `int4`.
    pub fn framework_name(self) -> &'static str {
        self.row().framework_name
    }

    /// Returns the number of bits of one value; 0 if the size is not fixed (`dynamic`, `string`).
    pub fn bits(self) -> u32 {
        self.row().bits.into()
    }

    /// Returns the kind of its values.
    pub fn kind(self) -> Kind {
        self.row().kind
    }

    /// Returns the format of a float with exponent and mantissa; `None` for other types, such as `nf4`.
    pub fn float_format(self) -> Option<FloatFormat> {
        if let Format::Float(format) = self.row().format { Some(format) } else { None }
    }

    /// Returns the first OpenVINO release that reads the type, as year and number; `None` if OpenVINO lacks the type.
    /// Releases before 2021.3 were not tested.
    pub fn first_release(self) -> Option<(u16, u8)> {
        self.row().first_release
    }

    /// True if it is a signed or unsigned integer; false for boolean.
    pub fn is_integer(self) -> bool {
        matches!(self.kind(), Kind::Signed | Kind::Unsigned)
    }

    /// Returns the type of a complex number's parts, or the type itself if it is not complex.
    #[must_use]
    pub fn real(self) -> Self {
        match self {
            Self::C32 => Self::F16,
            Self::Bc32 => Self::Bf16,
            Self::C64 => Self::F32,
            Self::C128 => Self::F64,
            Self::CLongDouble => Self::LongDouble,
            _ => self,
        }
    }

    /// True if it is a real floating-point type.
    pub fn is_float(self) -> bool {
        self.kind() == Kind::Float
    }
}

/// Formats the [`name`](ElementType::name), the spelling of attributes.
impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
