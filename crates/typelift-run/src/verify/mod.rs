//! Comparison of two models by running them on an installed OpenVINO. It finds the layer at which a difference starts.
//!
//! The trait [`Runner`] is the interface to the runtime. The program implements it with a Python process, the Python
//! package with the `openvino` module, and tests with a fake.
//!
//! 1. Inputs and outputs are paired by name, then by position.
//! 2. Dynamic dimensions get the smallest lengths that are valid in both models, and then lengths with which no layer
//!    mixes values along an axis of length 1. Values fit their use: indices are in range, masks are 0 and 1, positions
//!    are consecutive.
//! 3. Both models run, several steps if they have state, and their outputs are compared.
//! 4. If they differ, inner tensors that both models have are exposed and compared, to find the first layer whose inputs agree
//!    and whose output does not. A body runs alone, with the values that its owner got.
//! 5. If they agree, the inner tensors of A say which layers the inputs did not test.
//!
//! # Examples
//! A runtime whose outputs are copies of the input agrees with itself.
//! ```
//! use std::path::Path;
//! use typelift::Model;
//! use typelift_run::verify::{Loaded, RunError, Runner, Runtime, Setting, Source, Tensor, Verification};
//!
//! struct Copies;
//!
//! impl Runner for Copies {
//!     fn describe(&mut self, _: &Setting) -> Result<Runtime, RunError> {
//!         Ok(Runtime::default())
//!     }
//!     fn load(&mut self, model: &Source, _: &Setting) -> Result<Loaded, RunError> {
//!         let outputs = model.text.matches("type=\"Result\"").count() as u64;
//!         Ok(Loaded { key: outputs, ..Loaded::default() })
//!     }
//!     fn run(&mut self, outputs: u64, inputs: &[Tensor], _: bool) -> Result<Vec<Tensor>, RunError> {
//!         Ok(vec![inputs[0].clone(); outputs as usize])
//!     }
//!     fn release(&mut self, _: u64) {}
//!     fn arrays(&mut self, _: &Path, _: u64) -> Result<Vec<(String, Tensor)>, RunError> {
//!         Ok(Vec::new())
//!     }
//! }
//!
//! let mut model = Model::from_text("x = Parameter : f32[?,2]\ny = ReLU(x)\nr = Result(y)\n")?;
//! typelift::infer(&mut model);
//! let report = Verification::default().run(&model, Some(&model), &mut Copies)?;
//! assert!(report.same);
//! assert_eq!(report.samples[0].inputs[0].shape, "[1,2]");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bodies;
mod compare;
mod conditions;
mod coverage;
mod error;
mod given;
mod inputs;
mod locate;
mod narrow;
mod pairing;
pub(crate) mod random;
mod report;
mod run;
mod runner;
mod session;
mod tensor;
mod tolerance;

pub use compare::{Difference, Place};
pub use conditions::RunOptions;
pub use coverage::NotTested;
pub use error::{Side, VerifyError};
pub use inputs::Fed;
pub use report::{First, Growth, OutputReport, Report, Run, SampleReport};
pub use run::Verification;
pub use runner::{Bytes, Loaded, RunError, Runner, Runtime, Setting, Source};
pub use tensor::Tensor;
pub use tolerance::Tolerance;
