//! Findings about operations that do not exist in the operation set of their layer.

use super::{LAST_OPSET, Release, all, file_spelling, revisions};
use crate::base::{foreign, names};
use crate::findings::{Code, Message, Text, message};

pub(crate) struct UnknownOperation {
    /// The code of the finding. It is an error if OpenVINO has the operation in another set or under another name,
    /// because then it belongs to no extension.
    pub(crate) code: Code,
    /// The attribute of the layer that is most likely wrong.
    pub(crate) attribute: &'static str,
    pub(crate) message: Message,
    pub(crate) help: Message,
}

const EXTENSION: &str = "load the extension that provides it; without it OpenVINO cannot read the model";

const OWN_SET: &str =
    "use an operation that OpenVINO has; if an extension provides this one, write the version that the extension uses";

pub(crate) fn describe_unknown(ty: &str, version: &str) -> UnknownOperation {
    let opset = version.strip_prefix("opset").and_then(super::opset_number);
    let mut sets: Vec<_> = revisions(ty).iter().flat_map(|row| row.opsets()).collect();
    sets.sort_unstable();
    match (opset, sets.first(), sets.last()) {
        (Some(opset), Some(first), Some(last)) => known_elsewhere(ty, opset, [*first, *last], &sets),
        (None, Some(first), Some(_)) if is_misspelt(version) || is_foreign(version) => UnknownOperation {
            code: Code::WrongOpset,
            attribute: "version",
            message: message!("`{}` is not an operation set: use opset1 to opset{}"; version, LAST_OPSET),
            help: {
                let number = version.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok();
                message!("write version=\"opset{}\""; number.filter(|it| sets.contains(it)).unwrap_or(*first))
            },
        },
        (None, _, Some(_)) => UnknownOperation {
            code: Code::UnknownOperation,
            attribute: "version",
            message: message!("`{}` of `{}` is not one of OpenVINO's own operations"; ty, version),
            help: message!(
                "write version=\"opset{}\" if OpenVINO's own `{}` is meant; otherwise {}";
                newest_revision(ty), ty, EXTENSION
            ),
        },
        _ => misnamed(ty, version, opset),
    }
}

fn newest_revision(ty: &str) -> u8 {
    let newest = revisions(ty).iter().max_by_key(|row| row.revision);
    newest.and_then(|row| row.opsets().min()).unwrap_or(LAST_OPSET)
}

/// True if the name of an operation set is a misspelling of one such as `opset1`. Otherwise it may belong to an
/// extension.
fn is_misspelt(version: &str) -> bool {
    let word = version.trim().trim_end_matches(|c: char| c.is_ascii_digit() || ".-_ ".contains(c)).to_ascii_lowercase();
    word.is_empty() || names::distance(&word, "opset") <= 1
}

fn known_elsewhere(ty: &str, opset: u8, [first, last]: [u8; 2], sets: &[u8]) -> UnknownOperation {
    let removed = Release::of_removal(ty, &format!("opset{opset}"));
    if let Some(removed) = removed {
        return UnknownOperation {
            code: Code::WrongOpset,
            attribute: "version",
            message: message!(
                "OpenVINO {} and newer do not read `{}` of opset{}, which has other inputs";
                Text(removed), ty, opset
            ),
            help: message!("load it with an older release, or write the inputs and the version of opset{}"; first),
        };
    }
    let message = match opset {
        opset if opset > LAST_OPSET || opset == 0 => {
            message!("opset{} does not exist: the newest operation set is opset{}"; opset, LAST_OPSET)
        }
        opset if first > opset => {
            message!("opset{} does not have `{}`, which was added in opset{}"; opset, ty, first)
        }
        _ => message!("opset{} no longer has `{}`, which was last in opset{}"; opset, ty, last),
    };
    let set = sets.iter().find(|set| **set > opset).copied().unwrap_or(if opset > LAST_OPSET {
        newest_revision(ty)
    } else {
        last
    });
    let help = message!("write version=\"opset{}\""; set);
    UnknownOperation { code: Code::WrongOpset, attribute: "version", message, help }
}

fn is_foreign(version: &str) -> bool {
    const DOMAINS: [&str; 10] =
        ["ai.onnx", "aten", "caffe", "keras", "onnx", "paddle", "prim", "pytorch", "tensorflow", "torch"];
    DOMAINS.iter().any(|domain| domain.eq_ignore_ascii_case(version.trim()))
}

/// Describes an operation that exists in no operation set.
fn misnamed(ty: &str, version: &str, opset: Option<u8>) -> UnknownOperation {
    let is_own = opset.is_some() || is_foreign(version);
    let message = match opset {
        Some(_) => message!("OpenVINO does not have an operation `{}`"; ty),
        None => message!("`{}` of `{}` is not one of OpenVINO's own operations"; ty, version),
    };
    if !is_own {
        return UnknownOperation { code: Code::UnknownOperation, attribute: "type", message, help: EXTENSION.into() };
    }
    let names: Vec<_> = all().map(|row| row.name).collect();
    let (code, help) = match foreign::operation(ty, &names) {
        Some((meant, difference)) => (Code::MisnamedOperation, what_to_write(meant, difference)),
        None => (Code::UnknownOperation, OWN_SET.into()),
    };
    UnknownOperation { code, attribute: "type", message, help }
}

/// Explains what to write instead of an operation of another framework; empty if OpenVINO has no replacement.
fn what_to_write(meant: &'static str, difference: &'static str) -> Message {
    if meant.is_empty() {
        return difference.into();
    }
    let more = if difference.is_empty() { Message::default() } else { message!("; {}"; difference) };
    let oldest = revisions(meant).iter().flat_map(|row| row.opsets()).min().unwrap_or(1);
    message!("write type=\"{}\" with version=\"opset{}\" or later{}"; file_spelling(meant), oldest, more)
}

/// True if OpenVINO does not accept unknown operations of this set even with extensions, which have their own sets.
pub(crate) fn is_own_opset(version: &str) -> bool {
    let number = version.strip_prefix("opset").and_then(|number| number.parse::<u8>().ok());
    number.is_some_and(|number| (1..=LAST_OPSET).contains(&number))
}
