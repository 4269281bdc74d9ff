//! Inputs and outputs of version 10 files, as OpenVINO's reader understands them.

use typelift_promote::ElementType;

use super::{Graph, IrVersion, Output};

impl Graph {
    /// The name under which OpenVINO finds an input or output of a version 10 model by its layer: `NAME`, or
    /// `NAME.PORT` if the layer has several outputs.
    pub(crate) fn version_10_name(&self, tensor: Output) -> Option<String> {
        let layer = self.layer(tensor.layer)?;
        Some(match layer.outputs().len() {
            0 | 1 => layer.name().to_owned(),
            _ => format!("{}.{}", layer.name(), tensor.port),
        })
    }
}

impl IrVersion {
    /// The type that OpenVINO gives an input of this type.
    pub(crate) fn input_type(self, ty: ElementType) -> ElementType {
        match (self, ty) {
            (Self::V10, ElementType::F16) => ElementType::F32,
            _ => ty,
        }
    }

    /// The type that OpenVINO gives an output of this type.
    pub(crate) fn output_type(self, ty: ElementType) -> ElementType {
        use ElementType::{Dynamic, F32, I32, I64, U32, U64};
        match (self, ty) {
            (Self::V11, _) | (_, Dynamic) => ty,
            (Self::V10, I32 | I64 | U32 | U64) => I32,
            (Self::V10, _) => F32,
        }
    }
}
