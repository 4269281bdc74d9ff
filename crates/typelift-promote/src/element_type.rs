//! The element types a tensor can have, one table row each.

use core::fmt;

/// What kind of value an element type holds. Promotion compares kinds before it compares widths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Not known until run time.
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
}

macro_rules! element_types {
    ($($(#[$doc:meta])* $variant:ident $name:literal $port:expr, $bits:literal $kind:ident;)*) => {
        /// The type of one element of a tensor.
        ///
        /// Spellings differ by place: [`name`](Self::name) is what attributes of OpenVINO IR say (`f16`, `boolean`, `u1`),
        /// [`port_name`](Self::port_name) what its ports say (`FP16`, `BOOL`, `BIN`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum ElementType { $($(#[$doc])* $variant,)* }

        const ROWS: &[Row] = &[$(Row {
            ty: ElementType::$variant, name: $name, port_name: $port, bits: $bits, kind: Kind::$kind,
        },)*];
    };
}

struct Row {
    ty: ElementType,
    name: &'static str,
    port_name: Option<&'static str>,
    bits: u16,
    kind: Kind,
}

element_types! {
    /// Not known until run time; merges with every type.
    Dynamic "dynamic" Some("UNSPECIFIED"), 0 Dynamic;
    /// One byte a value, 0 or 1.
    Boolean "boolean" Some("BOOL"), 8 Boolean;
    /// The upper half of an `f32`.
    Bf16 "bf16" Some("BF16"), 16 Float;
    /// IEEE 754 binary16.
    F16 "f16" Some("FP16"), 16 Float;
    /// IEEE 754 binary32.
    F32 "f32" Some("FP32"), 32 Float;
    /// IEEE 754 binary64.
    F64 "f64" Some("FP64"), 64 Float;
    /// 4-bit signed integer, packed two to a byte.
    I4 "i4" Some("I4"), 4 Signed;
    /// 8-bit signed integer.
    I8 "i8" Some("I8"), 8 Signed;
    /// 16-bit signed integer.
    I16 "i16" Some("I16"), 16 Signed;
    /// 32-bit signed integer.
    I32 "i32" Some("I32"), 32 Signed;
    /// 64-bit signed integer.
    I64 "i64" Some("I64"), 64 Signed;
    /// Single bit, packed eight to a byte, most significant first.
    U1 "u1" Some("BIN"), 1 Unsigned;
    /// 2-bit unsigned integer, packed four to a byte.
    U2 "u2" Some("U2"), 2 Unsigned;
    /// 3-bit unsigned integer, packed eight to three bytes.
    U3 "u3" Some("U3"), 3 Unsigned;
    /// 4-bit unsigned integer, packed two to a byte.
    U4 "u4" Some("U4"), 4 Unsigned;
    /// 6-bit unsigned integer, packed four to three bytes.
    U6 "u6" Some("U6"), 6 Unsigned;
    /// 8-bit unsigned integer.
    U8 "u8" Some("U8"), 8 Unsigned;
    /// 16-bit unsigned integer.
    U16 "u16" Some("U16"), 16 Unsigned;
    /// 32-bit unsigned integer.
    U32 "u32" Some("U32"), 32 Unsigned;
    /// 64-bit unsigned integer.
    U64 "u64" Some("U64"), 64 Unsigned;
    /// 4-bit code into a table of the normal distribution's quantiles.
    Nf4 "nf4" Some("NF4"), 4 Float;
    /// 8-bit float, 4 exponent and 3 mantissa bits, no infinities (PyTorch's `float8_e4m3fn`).
    F8E4M3 "f8e4m3" Some("F8E4M3"), 8 Float;
    /// 8-bit float, 5 exponent and 2 mantissa bits.
    F8E5M2 "f8e5m2" Some("F8E5M2"), 8 Float;
    /// Text of any length.
    String "string" Some("STRING"), 0 String;
    /// 4-bit float, 2 exponent bits and 1 mantissa bit.
    F4E2M1 "f4e2m1" Some("F4E2M1"), 4 Float;
    /// 8-bit power of two, a scale without sign or mantissa.
    F8E8M0 "f8e8m0" Some("F8E8M0"), 8 Float;
}

impl ElementType {
    /// Every element type, in the order of the table.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        ROWS.iter().map(|row| row.ty)
    }

    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// The spelling of IR attributes: `f16`, `boolean`, `u1`, `dynamic`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The spelling of IR ports, `FP16`, `BOOL`, `BIN`, `UNSPECIFIED`; `None` where OpenVINO lacks the type.
    pub fn port_name(self) -> Option<&'static str> {
        self.row().port_name
    }

    /// Bits of one value; 0 where it has no fixed size (`dynamic`, `string`).
    pub fn bits(self) -> u32 {
        self.row().bits.into()
    }

    /// What kind of value it holds.
    pub fn kind(self) -> Kind {
        self.row().kind
    }

    /// Whether it is a signed or unsigned integer; boolean is not.
    pub fn is_integer(self) -> bool {
        matches!(self.kind(), Kind::Signed | Kind::Unsigned)
    }

    /// Whether it is a real floating-point type.
    pub fn is_float(self) -> bool {
        self.kind() == Kind::Float
    }
}

/// The spelling of attributes, as [`ElementType::name`].
impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
