//! Changing the precision of a model: what becomes of each constant, what that costs, and the edits.
//!
//! A [`Plan`] is data: every constant with floating-point values, what it is to become or why it stays, and what its values
//! lose. It can be looked at and changed, and is then applied as one batch of edits.
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
//! A [`Retyping`] changes the element types of the whole graph, with the attributes that name types; [`Kept`] says which layers
//! keep theirs, and [`risks`] what would go wrong in a narrower type.

mod apply;
mod automatic;
mod compress;
mod constant;
mod decompress;
mod keep;
mod look;
mod map;
mod mark;
mod optimized;
mod plan;
mod retype;
mod risks;
mod shape_paths;
mod storage;
mod types;

pub use self::compress::{Compression, Like};
pub use self::keep::{KeepError, KeepPattern, Kept};
pub use self::map::{TypeMap, TypeMapError};
pub use self::mark::{mark, unmark};
pub use self::plan::{Action, Constant, Loss, Plan, PlanTotals, Reason};
pub use self::risks::{Risk, RiskRule, risks};
pub use self::storage::Storage;
pub use self::types::{Border, Exception, Retyping, RetypingPlan};
pub use crate::ops::values::conversion::Audit;
