//! Weights of executed layers, with the type in which the kernel gets them.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashSet};
use serde::Serialize;
use typelift::explain::map::{Role, roles};
use typelift::graph::LayerMap;
use typelift::ops::{self, LayerKind};
use typelift::promote::ElementType;

use super::matching::Matching;

/// Number of values below which a constant is a scale or a setting instead of weights.
const FEW: u64 = 64;

/// Constant weights of an executed layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UsedWeights {
    /// The executed layer.
    pub exec: String,
    /// The kind.
    pub exec_type: String,
    /// The position of the input with the weights.
    pub port: usize,
    /// The type in which the kernel gets them.
    #[serde(rename = "as")]
    pub used_as: &'static str,
    /// The executed layer that produces them.
    pub from: String,
    /// The kind.
    pub from_type: String,
    /// The type in which the layer computes.
    pub precision: String,
    /// The dimensions.
    pub shape: Vec<i64>,
}

/// Constant of few bits in the model, and its use in the execution graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StoredWeights {
    /// The constant.
    #[serde(rename = "const")]
    pub constant: String,
    /// The number of its values.
    pub elements: u64,
    /// The type in which the model stores it.
    pub stored_as: &'static str,
    /// The layer of the model that uses it.
    pub user: String,
    /// The operation of that layer.
    pub user_type: String,
    /// The executed layer.
    pub exec: Option<String>,
    /// The type in which that layer gets it; `None` if no name matches.
    pub used_as: Option<&'static str>,
    /// True if that is the stored type.
    pub kept: Option<bool>,
}

fn weights_port(ty: &str) -> Option<usize> {
    match ty {
        "FullyConnected" | "Convolution" | "Deconvolution" | "MatMul" | "GatherMatmul" => Some(1),
        "Gather" => Some(0),
        _ => None,
    }
}

fn model_port(ty: &str) -> Option<usize> {
    match ty {
        "MatMul" | "Convolution" | "GroupConvolution" | "ConvolutionBackpropData" | "GroupConvolutionBackpropData" => {
            Some(1)
        }
        "Gather" => Some(0),
        _ => None,
    }
}

/// True for types of few bits, and for others that a plugin may convert to floats.
fn is_small(ty: ElementType) -> bool {
    use ElementType::{Bf16, F4E2M1, F8E4M3, F8E5M2, F16, F64, I4, I8, Nf4, U1, U2, U3, U4, U6, U8};
    [U8, I8, U4, I4, U2, Nf4, F4E2M1, F16, Bf16, F8E4M3, F8E5M2, U1, U3, U6, F64].contains(&ty)
}

impl Matching<'_> {
    pub(super) fn used_weights(&self) -> Vec<UsedWeights> {
        let executed = &self.execution.layers;
        let weights = executed.iter().filter_map(|layer| {
            let port = weights_port(&layer.ty)?;
            let source = &executed[(*layer.feeds.get(port)?)?];
            source.is_constant.then(|| UsedWeights {
                exec: layer.name.clone(),
                exec_type: layer.ty.clone(),
                port,
                used_as: layer.inputs[port],
                from: source.name.clone(),
                from_type: source.ty.clone(),
                precision: layer.precision().to_owned(),
                shape: source.shapes.first().cloned().unwrap_or_default(),
            })
        });
        weights.collect()
    }

    pub(super) fn stored_weights(&self, used: &[UsedWeights]) -> Vec<StoredWeights> {
        let roles = roles(self.graph);
        let arriving: HashMap<&str, &'static str> = used.iter().map(|it| (it.exec.as_str(), it.used_as)).collect();
        let mut found = Vec::new();
        for at in (0..self.layers.len()).filter(|&at| ops::kind(self.layers[at]) == LayerKind::Constant) {
            let Some(port) = self.layers[at].outputs().first() else { continue };
            let elements = port.shape().element_count().unwrap_or(0);
            if !is_small(port.element_type()) || elements < FEW {
                continue;
            }
            let (path, users) = self.way_of(at, &roles);
            for (user, last) in users {
                if let Some(weights) = self.stored(at, elements, (user, last), &path, &arriving) {
                    found.push(weights);
                }
            }
        }
        largest_of_each(found)
    }

    /// Follows a constant through layers that depend only on constants. Returns these layers, and the layers that use
    /// the result, each with the layer that feeds it.
    fn way_of(&self, start: usize, roles: &LayerMap<Role>) -> (Vec<usize>, Vec<(usize, usize)>) {
        let (mut pending, mut path, mut users) = (vec![start], Vec::new(), Vec::new());
        let mut seen = HashSet::default();
        while let Some(at) = pending.pop() {
            if !seen.insert(at) {
                continue;
            }
            path.push(at);
            for user in self.users(at) {
                let is_stored = roles.get(self.layers[user].id()) == Some(&Role::Stored);
                if is_stored { pending.push(user) } else { users.push((user, at)) }
            }
        }
        (path, users)
    }

    fn stored(
        &self,
        constant: usize,
        elements: u64,
        (user, last): (usize, usize),
        path: &[usize],
        arriving: &HashMap<&str, &'static str>,
    ) -> Option<StoredWeights> {
        let (layer, consumer) = (self.layers[constant], self.layers[user]);
        let last = self.layers[last].id();
        if let Some(port) = model_port(consumer.ty()) {
            // If the constant feeds another input, it is a scale, a zero point or an index.
            let feeds = self.graph.producer(consumer.id().input(port));
            feeds.filter(|feed| feed.layer == last)?;
        }
        let executed = &self.execution.layers;
        let traced = self.trace(user).map(|at| executed[at].name.as_str());
        let exec = traced.or_else(|| self.only_ahead(user));
        let used_as = exec.and_then(|exec| arriving.get(exec).copied()).or_else(|| {
            let own = path.iter().filter(|&&at| at != constant).filter_map(|&at| self.own[at].first());
            let mut consts = own.map(|&at| &executed[at]).filter(|it| it.ty == "Const");
            consts.next().and_then(|it| it.outputs.first().copied())
        });
        let stored_as = layer.outputs().first()?.element_type().name();
        Some(StoredWeights {
            constant: layer.name().to_owned(),
            elements,
            stored_as,
            user: consumer.name().to_owned(),
            user_type: consumer.ty().to_owned(),
            exec: exec.map(str::to_owned),
            used_as,
            kept: used_as.map(|used| used == stored_as),
        })
    }
}

/// Keeps the largest constant of each layer's weights; the others are scales and zero points.
fn largest_of_each(found: Vec<StoredWeights>) -> Vec<StoredWeights> {
    let mut order = Vec::new();
    let mut largest: BTreeMap<(String, Option<String>), StoredWeights> = BTreeMap::new();
    for weights in found {
        let is_heavy = model_port(&weights.user_type).is_some();
        let second = if is_heavy { weights.exec.clone() } else { Some(weights.constant.clone()) };
        let key = (weights.user.clone(), second);
        match largest.get(&key) {
            Some(known) if known.elements >= weights.elements => {}
            known => {
                if known.is_none() {
                    order.push(key.clone());
                }
                largest.insert(key, weights);
            }
        }
    }
    order.into_iter().filter_map(|key| largest.remove(&key)).collect()
}
