//! Precision of a model: other types for constants, other types for the whole graph, and the losses that they cause.
//!
//! A [`Plan`] is data: it lists every floating-point constant with its new type or the reason for keeping it, and the
//! loss of its values. A plan can be inspected and changed before it is applied as one batch of edits.
//!
//! ```
//! use typelift::precision::{Compression, Plan};
//! use typelift::promote::ElementType;
//! # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
//! let plan = Plan::compress(&model, &Compression::to(ElementType::F16));
//! assert_eq!(plan.constants[0].path, "scale");
//! assert_eq!(plan.constants[0].loss.max_rel, 0.0);
//! plan.apply(&mut model)?;
//! let compressed = model.graph().layer(model.graph().find("scale_compressed")?).unwrap();
//! assert_eq!(compressed.attribute("element_type"), Some("f16"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Conversion::types`](crate::convert::Conversion::types) changes the element types of the whole graph. [`Kept`]
//! lists the layers that keep their types, and [`risks`] lists problems of a narrower type.

mod apply;
mod automatic;
mod compress;
mod constant;
mod decompress;
mod dequantize;
pub(crate) mod fake_quantize;
mod keep;
mod map;
mod mark;
mod optimized;
mod plan;
pub mod quantize;
mod retype;
mod risks;
pub mod schemes;
pub(crate) mod shape_paths;
mod storage;
mod types;
mod view;

pub use self::compress::{Compression, Like};
pub use self::keep::{KeepError, KeepPattern, Kept};
pub use self::map::{TypeMap, TypeMapError};
pub(crate) use self::mark::{mark, unmark};
pub use self::plan::{Action, Constant, Loss, Plan, PlanTotals, Reason};
pub use self::risks::{Risk, risks};
pub use self::storage::Storage;
pub(crate) use self::types::{Retyping, RetypingPlan};
