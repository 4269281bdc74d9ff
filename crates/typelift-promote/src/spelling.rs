//! Spellings of element types, by system.

use crate::ElementType;

/// System whose names of element types are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spelling {
    /// OpenVINO IR attributes: `boolean`, `f8e4m3`, `u1`.
    OpenVino,
    /// PyTorch and Paddle, short: `bool`, `f8e4m3fn`, `uint1`.
    Framework,
    /// NumPy and JAX with ml_dtypes, short: `bool`, `i4`, `f8e4m3` for the IEEE-like type.
    MlDtypes,
}

/// Types that ml_dtypes names differently from the frameworks.
const ML_DTYPES: [(ElementType, &str, &str); 6] = [
    (ElementType::I2, "i2", "int2"),
    (ElementType::I4, "i4", "int4"),
    (ElementType::U2, "u2", "uint2"),
    (ElementType::U4, "u4", "uint4"),
    (ElementType::F4E2M1, "f4e2m1fn", "float4_e2m1fn"),
    (ElementType::F8E4M3Ieee, "f8e4m3", "float8_e4m3"),
];

impl Spelling {
    /// Returns the name of a type.
    ///
    /// ```
    /// use typelift_promote::{ElementType, Spelling};
    /// let names = [Spelling::OpenVino, Spelling::Framework, Spelling::MlDtypes].map(|own| own.name(ElementType::I4));
    /// assert_eq!(names, ["i4", "int4", "i4"]);
    /// ```
    pub fn name(self, ty: ElementType) -> &'static str {
        match self {
            Self::OpenVino => ty.name(),
            Self::Framework => ty.framework_name(),
            Self::MlDtypes => {
                ML_DTYPES.iter().find(|row| row.0 == ty).map_or(ty.framework_name(), |&(_, short, _)| short)
            }
        }
    }

    /// Returns the type with that name. Long names of frameworks (`float16`) are accepted too.
    pub fn from_name(self, name: &str) -> Option<ElementType> {
        match self {
            Self::OpenVino => ElementType::from_name(name),
            Self::Framework => ElementType::from_framework_name(name),
            Self::MlDtypes => {
                let own = ML_DTYPES.iter().find(|&&(_, short, long)| [short, long].contains(&name));
                own.map(|row| row.0).or_else(|| ElementType::from_framework_name(name))
            }
        }
    }
}
