//! Quantization plans as JSON documents.

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use super::mode::Group;
use super::plan::{QuantizationPlan, QuantizedConstant};

impl Serialize for QuantizationPlan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([("constants", &self.constants)])
    }
}

impl Serialize for QuantizedConstant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("QuantizedConstant", 11)?;
        let group = self.to.map(|(_, group)| if let Group::Of(size) = group { size.cast_signed() } else { -1 });
        fields.serialize_field("name", &self.name)?;
        fields.serialize_field("consumer", &self.consumer)?;
        fields.serialize_field("from", self.from.name())?;
        fields.serialize_field("shape", &self.dims)?;
        fields.serialize_field("mode", &self.to.map(|(mode, _)| mode.name()))?;
        fields.serialize_field("group", &group)?;
        fields.serialize_field("rule", self.rule.name())?;
        fields.serialize_field("bytes_before", &self.bytes_before)?;
        fields.serialize_field("bytes_after", &self.bytes_after)?;
        fields.serialize_field("kept_by_cpu", &self.is_kept_by_cpu())?;
        fields.serialize_field("loss", &self.loss)?;
        fields.end()
    }
}
