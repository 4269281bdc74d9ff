//! Choice of a common type for inputs that must agree, if the outputs do not depend on it.

use std::collections::BTreeMap;
use std::rc::Rc;

use typelift_promote::{ElementType, Operand, openvino};

use super::TypeSearch;
use super::scope::{Scope, Tie};
use crate::base::hash::{HashMap, HashSet};
use crate::findings::described;
use crate::model::graph::{Input, Layer, Output};

impl TypeSearch<'_> {
    /// Chooses the types of inputs that must agree and on which no output depends: those that need the fewest
    /// Converts. Layers that share a tensor are considered together.
    pub(super) fn untie(&mut self, scope: usize) {
        let scope = &mut self.scopes[scope];
        let ties = std::mem::take(&mut scope.ties);
        let asked: HashMap<Output, ElementType> =
            scope.demands.iter().map(|demand| (demand.tensor, demand.to)).collect();
        let mut clusters = petgraph::unionfind::UnionFind::new(ties.len());
        let mut first = HashMap::<Output, usize>::default();
        for (at, tie) in ties.iter().enumerate() {
            for (_, tensor) in &tie.inputs {
                clusters.union(at, *first.entry(*tensor).or_insert(at));
            }
        }
        let mut members = BTreeMap::<usize, Vec<&Tie>>::new();
        for (at, tie) in ties.iter().enumerate() {
            members.entry(clusters.find(at)).or_default().push(tie);
        }
        for ties in members.values() {
            let Some((to, ground)) = cheapest(scope, ties, &asked) else { continue };
            for tie in ties {
                let Some(layer) = scope.graph.layer(tie.layer) else { continue };
                let origins = scope.origins(tie.inputs.iter().map(|(_, tensor)| *tensor));
                let reason: Rc<str> = format!("{} takes {origins}: {ground}", described(layer)).into();
                for &(port, tensor) in &tie.inputs {
                    if scope.element_type(tensor) != to {
                        scope.demand(Input { layer: tie.layer, port }, tensor, to, reason.clone());
                    }
                }
            }
        }
    }
}

fn cheapest(scope: &Scope, ties: &[&Tie], asked: &HashMap<Output, ElementType>) -> Option<(ElementType, String)> {
    let tensors: HashSet<Output> = ties.iter().flat_map(|tie| tie.inputs.iter().map(|(_, tensor)| *tensor)).collect();
    let type_of = |tensor: &Output| asked.get(tensor).copied().unwrap_or(scope.element_type(*tensor));
    let declared = ties.iter().flat_map(|tie| {
        let inputs = scope.graph.layer(tie.layer).map(Layer::inputs).unwrap_or_default();
        tie.inputs.iter().filter_map(|(input, _)| inputs.get(*input)?.declared)
    });
    let declared: Vec<_> = declared.collect();
    let mut best: Option<((usize, std::cmp::Reverse<usize>), ElementType)> = None;
    let mut equal = Vec::new();
    let options = ties.iter().flat_map(|tie| tie.takes.iter().copied());
    for to in options.filter(|to| ties.iter().all(|tie| tie.takes.contains(to))) {
        if !tensors.iter().all(|&tensor| scope.permits(tensor, to)) {
            continue;
        }
        let converts = tensors.iter().filter(|tensor| type_of(tensor) != to).count();
        let votes = tensors.iter().filter(|tensor| type_of(tensor) == to);
        let votes: usize = votes.map(|&tensor| if scope.is_constant(tensor) { 1 } else { 2 }).sum();
        let votes = votes + declared.iter().filter(|&&ty| ty == to).count();
        let key = (converts, std::cmp::Reverse(votes));
        match &best {
            Some((known, _)) if *known < key => {}
            Some((known, _)) if *known == key => equal.push(to),
            _ => {
                best = Some((key, to));
                equal = vec![to];
            }
        }
    }
    let (_, first) = best?;
    let common = equal.iter().copied().try_fold(first, wider).filter(|to| equal.contains(to)).unwrap_or(first);
    let ground = format!(
        "with {common} the fewest Converts are needed, and most of the inputs that must agree have type {common}"
    );
    Some((common, ground))
}

/// The common type of two types by OpenVINO's rules.
pub(super) fn wider(left: ElementType, right: ElementType) -> Option<ElementType> {
    let [left, right] = [left, right].map(Operand::dimensioned);
    openvino::promote(left, right, &openvino::Options::default()).ok()
}
