//! Joins findings that one misspelling, one port map or one wrong size causes in one layer.

use std::collections::{HashMap, HashSet};

use super::{PLACES, remove};
use crate::findings::{About, Code, Diagnostic, Label, LayerRef, Severity, message};

/// Merges the errors of a layer that lacks an attribute with the lint about the attribute's misspelling.
pub(super) fn explain_misspellings(found: &mut Vec<Diagnostic>) {
    let lints = found.iter().enumerate().filter(|(_, it)| it.code == Code::UnknownAttribute);
    let misspelt = lints.filter_map(|(at, it)| Some((at, it.layer.clone()?, it.about.meant_attribute()?.to_owned())));
    let misspelt: Vec<_> = misspelt.collect();
    let layers: HashSet<_> = misspelt.iter().map(|(_, layer, _)| layer).collect();
    let mut of_layer = HashMap::<&LayerRef, Vec<usize>>::new();
    for (at, diagnostic) in found.iter().enumerate() {
        if let Some(&layer) = diagnostic.layer.as_ref().and_then(|layer| layers.get(layer)) {
            of_layer.entry(layer).or_default().push(at);
        }
    }
    let mut gone = HashSet::new();
    for (lint, layer, meant) in &misspelt {
        let about: Vec<usize> = of_layer[layer].iter().copied().filter(|&at| found[at].about.is_about(meant)).collect();
        let is_guess = |code| [Code::IncompleteParameter, Code::AssumedAttribute].contains(&code);
        gone.extend(about.iter().copied().filter(|&at| is_guess(found[at].code)));
        if let Some(&error) = about.iter().find(|at| found[**at].is_error() && !gone.contains(*at)) {
            let Diagnostic { message, labels, fixes, .. } = found[*lint].clone();
            found[error].labels.extend(labels.into_iter().map(|it| Label { message: message.clone(), ..it }));
            found[error].replace_help(fixes);
            gone.insert(*lint);
        }
    }
    remove(found, &gone);
}

/// Merges the errors of a layer that lacks an element with the lint about the element's misspelling.
pub(super) fn explain_misspelt_elements(found: &mut Vec<Diagnostic>) {
    if found.iter().all(|it| it.about.meant_element().is_none()) {
        return;
    }
    let mut of_layer = HashMap::<_, Vec<usize>>::new();
    for (at, it) in found.iter().enumerate() {
        of_layer.entry((&it.layer, it.code)).or_default().push(at);
    }
    let (mut errors, mut gone) = (Vec::new(), HashSet::new());
    for (at, lint) in found.iter().enumerate() {
        let codes: &[Code] = match lint.about.meant_element() {
            Some("data") => &[Code::AssumedAttribute, Code::IncompleteParameter, Code::MissingAttribute],
            Some("input" | "output") => &[Code::UnknownPort],
            Some("layers") => &[Code::UnreferencedWeights],
            _ => &[],
        };
        let follows: Vec<usize> =
            codes.iter().filter_map(|&code| of_layer.remove(&(&lint.layer, code))).flatten().collect();
        errors.extend(follows.iter().any(|&at| found[at].is_error()).then_some(at));
        gone.extend(follows);
    }
    errors.into_iter().for_each(|at| found[at].severity = Severity::Error);
    remove(found, &gone);
}

/// Merges the finding about missing outputs of a loop with that about missing entries of its port map.
pub(super) fn explain_port_maps(found: &mut Vec<Diagnostic>) {
    let is_missing = |it: &Diagnostic| it.code == Code::UnknownPort && matches!(*it.about, About::Refusal { .. });
    let mut missing = HashMap::<_, Vec<usize>>::new();
    for (at, it) in found.iter().enumerate().filter(|(_, it)| is_missing(it)) {
        missing.entry(&it.layer).or_default().push(at);
    }
    let incomplete = found.iter().enumerate().filter(|(_, it)| it.code == Code::IncompletePortMap);
    let explained = incomplete.filter_map(|(at, it)| Some((at, missing.remove(&it.layer)?)));
    let (errors, gone): (Vec<usize>, Vec<_>) = explained.unzip();
    errors.into_iter().for_each(|at| found[at].severity = Severity::Error);
    remove(found, &gone.into_iter().flatten().collect());
}

/// Merges the findings about constants that are all larger than their type and shape require, and removes findings
/// about their values.
pub(super) fn join_oversized(found: &mut Vec<Diagnostic>) {
    let is_oversized = |it: &Diagnostic| it.code == Code::OversizedConstant;
    let layers: HashSet<_> = found.iter().filter(|it| is_oversized(it)).filter_map(|it| it.layer.clone()).collect();
    found.retain(|it| it.code != Code::NonFiniteConstant || it.layer.as_ref().is_none_or(|it| !layers.contains(it)));
    let oversized: Vec<usize> = (0..found.len()).filter(|&at| is_oversized(&found[at])).collect();
    let [first, others @ ..] = &oversized[..] else { return };
    if others.is_empty() {
        return;
    }
    let mut joined = found[*first].clone();
    joined.message = message!("{} constants have a `size` that is too large: {}"; oversized.len(), joined.message);
    joined.consequences = oversized.iter().filter_map(|&at| found[at].layer.clone()).collect();
    let labels =
        others.iter().take(PLACES).filter_map(|&at| Some((found[at].labels.first()?.span, &found[at].message)));
    joined.labels.extend(labels.map(|(span, message)| Label { span, message: message.clone() }));
    found[*first] = joined;
    remove(found, &others.iter().copied().collect());
}

/// Makes one finding of an input without an edge and of one with two in the same layer: an edge ends at the wrong port.
pub(super) fn join_double_feeds(found: &mut Vec<Diagnostic>) {
    let of = |code| -> Vec<usize> { (0..found.len()).filter(|&at| found[at].code == code).collect() };
    let mut unconnected = HashMap::<LayerRef, Vec<usize>>::new();
    for at in of(Code::UnconnectedInput) {
        if let Some(layer) = found[at].layer.clone() {
            unconnected.entry(layer).or_default().push(at);
        }
    }
    let mut gone = HashSet::new();
    for at in of(Code::InputFedTwice) {
        let alone = found[at].layer.as_ref().and_then(|layer| unconnected.remove(layer));
        let Some([other]) = alone.as_deref() else { continue };
        let (message, labels) = (found[*other].message.clone(), found[*other].labels.clone());
        found[at].labels.extend(labels.into_iter().map(|it| Label { message: message.clone(), ..it }));
        gone.insert(*other);
    }
    remove(found, &gone);
}
