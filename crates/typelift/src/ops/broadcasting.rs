//! Attributes that choose how shapes broadcast, for inference and evaluation.

use super::{Attributes, Fault};
use crate::findings::message;
use crate::model::shape::AutoBroadcast;

pub(super) fn auto_broadcast(attributes: &Attributes) -> Result<AutoBroadcast, Fault> {
    Ok(match attributes.word("auto_broadcast")? {
        "numpy" => AutoBroadcast::Numpy,
        "pdpd" => AutoBroadcast::Pdpd { axis: attributes.int("auto_broadcast.auto_broadcast_axis")? },
        _ => AutoBroadcast::None,
    })
}

/// Alignment of the data with the target in a Broadcast.
pub(super) enum Mode {
    Numpy,
    Bidirectional,
    Explicit,
    Pdpd { axis: i64 },
}

/// Revision 1 accepts any number of inputs in every mode except pdpd, and requires an axes mapping for the explicit
/// mode. In revision 3 the file has no axis for pdpd.
pub(super) fn mode(attributes: &Attributes, inputs: usize) -> Result<Mode, Fault> {
    let word = attributes.word("mode")?;
    let explicit = ["explicit", "none"].contains(&word);
    let first = attributes.operation.revision == 1;
    let needs_mapping = if first { word == "pdpd" } else { explicit };
    if needs_mapping != (inputs == 3) && (needs_mapping || !first) {
        let needs = if needs_mapping { "needs" } else { "takes no" };
        let message = message!("`Broadcast` in mode {} {} third input, the axes mapping"; word, needs);
        return Err(Fault::value(&[], message));
    }
    Ok(match word {
        "pdpd" if first => Mode::Pdpd { axis: attributes.int("mode.auto_broadcast_axis")? },
        "pdpd" => Mode::Pdpd { axis: 0 },
        "bidirectional" => Mode::Bidirectional,
        _ if explicit && inputs == 3 => Mode::Explicit,
        _ => Mode::Numpy,
    })
}
