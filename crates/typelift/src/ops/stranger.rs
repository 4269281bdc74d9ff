//! Operations that the operation set named by a layer does not have.

use super::{LAST_OPSET, Operation, all, file_spelling, revisions};
use crate::diagnostic::Code;
use crate::spelling;

/// What is known of such an operation.
pub(crate) struct Stranger {
    /// An error where OpenVINO has the operation under another version or name, so that no extension is meant.
    pub(crate) code: Code,
    /// The attribute of the layer that is most likely wrong.
    pub(crate) attribute: &'static str,
    pub(crate) message: String,
    /// What can be done.
    pub(crate) help: String,
}

const EXTENSION: &str = "load the extension that brings it; without one, OpenVINO refuses the model";

/// Describes an operation that is not in the operation set that its layer names.
pub(crate) fn describe_stranger(ty: &str, version: &str) -> Stranger {
    let opset = version.strip_prefix("opset").and_then(|number| number.parse::<u8>().ok());
    let mut sets: Vec<_> = revisions(ty).iter().flat_map(|row| row.opsets()).collect();
    sets.sort_unstable();
    match (opset, sets.first(), sets.last()) {
        (Some(opset), Some(first), Some(last)) => known_elsewhere(ty, opset, [*first, *last], &sets),
        (None, Some(first), Some(_)) if is_misspelt(version) => Stranger {
            code: Code::WrongOpset,
            attribute: "version",
            message: format!("`{version}` is not an operation set: they are opset1 to opset{LAST_OPSET}"),
            help: format!(
                "write version=\"opset{}\"",
                number_in(version).filter(|it| sets.contains(it)).unwrap_or(*first)
            ),
        },
        (None, _, Some(last)) => Stranger {
            code: Code::UnknownOperation,
            attribute: "version",
            message: format!("`{ty}` of `{version}` is not one of OpenVINO's own operations"),
            help: format!("write version=\"opset{last}\" if OpenVINO's own `{ty}` is meant; otherwise {EXTENSION}"),
        },
        _ => misnamed(ty, version, opset),
    }
}

/// Whether the name of an operation set is a misspelling of `opset1` or another one, and not an extension's own.
fn is_misspelt(version: &str) -> bool {
    let word = version.trim().trim_end_matches(|c: char| c.is_ascii_digit() || ".-_ ".contains(c)).to_ascii_lowercase();
    word.is_empty() || spelling::distance(&word, "opset") <= 1
}

fn number_in(version: &str) -> Option<u8> {
    version.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok()
}

/// The operation is in other operation sets.
fn known_elsewhere(ty: &str, opset: u8, [first, last]: [u8; 2], sets: &[u8]) -> Stranger {
    let message = match opset {
        opset if opset > LAST_OPSET || opset == 0 => {
            format!("opset{opset} does not exist: the newest operation set is opset{LAST_OPSET}")
        }
        opset if first > opset => format!("opset{opset} does not have `{ty}`, which was added in opset{first}"),
        _ => format!("opset{opset} no longer has `{ty}`, which was last in opset{last}"),
    };
    let set = sets.iter().find(|set| **set > opset).copied().unwrap_or(last);
    let help = format!("write version=\"opset{set}\"");
    Stranger { code: Code::WrongOpset, attribute: "version", message, help }
}

/// No operation set has an operation of this name.
fn misnamed(ty: &str, version: &str, opset: Option<u8>) -> Stranger {
    let foreign = spelling::operation(ty);
    let nearest = || spelling::nearest(ty, all().map(Operation::name)).map(|name| (name, ""));
    let message = format!("OpenVINO does not have an operation `{ty}`");
    match (foreign.or_else(nearest), opset) {
        (Some((meant, difference)), Some(_)) => {
            let more = if difference.is_empty() { String::new() } else { format!("; {difference}") };
            let spelled = file_spelling(meant);
            let oldest = revisions(meant).iter().flat_map(|row| row.opsets()).min().unwrap_or(1);
            Stranger {
                code: Code::MisnamedOperation,
                attribute: "type",
                message,
                help: format!("write type=\"{spelled}\" with version=\"opset{oldest}\" or later{more}"),
            }
        }
        (_, Some(_)) => {
            Stranger { code: Code::UnknownOperation, attribute: "type", message, help: EXTENSION.to_owned() }
        }
        (_, None) => Stranger {
            code: Code::UnknownOperation,
            attribute: "type",
            message: format!("`{ty}` of `{version}` is not one of OpenVINO's own operations"),
            help: EXTENSION.to_owned(),
        },
    }
}
