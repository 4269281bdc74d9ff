//! Multiply-accumulate operations and bytes as expressions over symbols.

use typelift_promote::ElementType;

use super::Shapes;
use super::expression::{Arena, Expr};
use crate::base::hash::HashMap;
use crate::model::graph::{Graph, Layer, LayerId, Model, Output, OutputPort};
use crate::model::shape::TensorType;
use crate::ops;

/// A number that depends on lengths.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Formula {
    expr: Expr,
    /// The expression as Python, with the names of symbols: `65536 * batch * seq`.
    pub text: String,
}

/// Formulas of an inferred model. A long one is written as if inputs that broadcast had equal lengths.
#[non_exhaustive]
pub struct Formulas<'m> {
    model: &'m Model,
    shapes: &'m Shapes,
    arena: Arena,
    /// The names of the lengths on which formulas depend: those of symbols, then those of lengths of the state.
    pub names: Vec<String>,
    macs: HashMap<LayerId, Option<Expr>>,
    /// True if lengths that broadcast are equal.
    is_brief: bool,
    merged: HashMap<Expr, Option<Expr>>,
}

/// Most nodes of a formula that is exact for all lengths.
const MOST_NODES: usize = 24;

impl<'m> Formulas<'m> {
    /// Creates the formulas of a model with its symbols.
    pub fn new(model: &'m Model, shapes: &'m Shapes) -> Self {
        let names = shapes.symbols.iter().chain(&shapes.state).map(|symbol| symbol.name.to_owned()).collect();
        Self {
            model,
            shapes,
            arena: shapes.arena.clone(),
            names,
            macs: HashMap::default(),
            is_brief: false,
            merged: HashMap::default(),
        }
    }

    /// Returns a formula's number at lengths, in the order of [`names`](Self::names). `None` if it needs one that is not
    /// given.
    pub fn at(&self, formula: &Formula, lengths: &[Option<i64>]) -> Option<i64> {
        let needed = self.arena.symbols(formula.expr);
        needed.iter().all(|&at| lengths.get(at).is_some_and(Option::is_some)).then_some(())?;
        let lengths: Vec<i64> = lengths.iter().map(|length| length.unwrap_or(1)).collect();
        self.arena.evaluate(formula.expr, &lengths)
    }

    /// Returns the multiply-accumulate operations of all layers; `None` if they depend on data.
    pub fn macs(&mut self) -> Option<Formula> {
        let graph = self.model.graph();
        self.brief_if_long(|formulas| formulas.sum(graph.layers().map(|layer| (graph, layer))))
    }

    /// Returns the multiply-accumulate operations of some layers of a graph.
    pub fn macs_of_layers(&mut self, graph: &Graph, layers: &[LayerId]) -> Option<Formula> {
        self.brief_if_long(|formulas| {
            formulas.sum(layers.iter().filter_map(|&id| graph.layer(id)).map(|layer| (graph, layer)))
        })
    }

    /// Returns the size of a tensor in bytes.
    pub fn bytes(&mut self, graph: &Graph, tensor: Output) -> Option<Formula> {
        let port = graph.output(tensor)?;
        self.brief_if_long(|formulas| {
            let dims = formulas.dims(graph, tensor, port)?;
            formulas.sized(port.element_type(), &dims)
        })
    }

    /// Finds an expression. If it is long, it is found again as if lengths that broadcast were equal.
    fn brief_if_long(&mut self, find: impl Fn(&mut Self) -> Option<Expr>) -> Option<Formula> {
        let exact = find(self).filter(|&expr| self.arena.size(expr) <= MOST_NODES);
        let found = exact.or_else(|| {
            let known = std::mem::take(&mut self.macs);
            self.is_brief = true;
            let found = find(self);
            self.is_brief = false;
            self.macs = known;
            found
        });
        self.formula(found)
    }

    fn sum<'g>(&mut self, layers: impl Iterator<Item = (&'g Graph, &'g Layer)>) -> Option<Expr> {
        let mut sum = self.arena.number(0);
        for (graph, layer) in layers {
            let own = self.macs_of(graph, layer)?;
            sum = self.arena.add(sum, own)?;
        }
        Some(sum)
    }

    /// Returns the size of the model's state in bytes. Its open lengths are called `batch` and `past`; `None` if a variable has
    /// others.
    pub fn state(&mut self) -> Option<Formula> {
        let mut sum = self.arena.number(0);
        for (_, TensorType { element_type, shape }) in self.model.state() {
            let dims = shape.dims()?;
            let mut lengths = Vec::new();
            for (axis, dim) in dims.iter().enumerate() {
                let length = match (dim.value(), axis) {
                    (Some(length), _) => self.arena.number(length),
                    (None, 0) => self.named("batch"),
                    (None, axis) if axis + 2 == dims.len() => self.named("past"),
                    _ => return None,
                };
                lengths.push(Some(length));
            }
            let bytes = self.sized(element_type, &lengths)?;
            sum = self.arena.add(sum, bytes)?;
        }
        self.formula(Some(sum))
    }

    /// The symbol of this name, or a new one.
    fn named(&mut self, name: &str) -> Expr {
        let at = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        self.arena.symbol(at)
    }

    fn formula(&self, expr: Option<Expr>) -> Option<Formula> {
        let expr = expr?;
        Some(Formula { expr, text: self.arena.text(expr, &|at| &self.names[at]) })
    }

    fn sized(&mut self, ty: ElementType, dims: &[Option<Expr>]) -> Option<Expr> {
        let factors: Vec<Expr> = dims.iter().copied().collect::<Option<_>>()?;
        let count = self.arena.product(factors)?;
        match i64::from(ty.bits()) {
            bits if bits % 8 == 0 => self.arena.scale(count, bits / 8),
            bits => {
                let (bits, eight) = (self.arena.scale(count, bits)?, self.arena.number(8));
                self.arena.div_up(bits, eight)
            }
        }
    }

    /// The dimensions of a tensor; those of bodies are known if they are numbers.
    fn dims(&mut self, graph: &Graph, tensor: Output, port: &OutputPort) -> Option<Vec<Option<Expr>>> {
        let known = self.shapes.dims_of(tensor).filter(|_| std::ptr::eq(graph, self.model.graph()));
        match known {
            Some(known) if self.is_brief => {
                let (arena, merged) = (&mut self.arena, &mut self.merged);
                Some(known.iter().map(|dim| arena.replaced((*dim)?, &self.shapes.merged, merged)).collect())
            }
            Some(known) => Some(known.to_vec()),
            None => Some(port.shape().dims()?.iter().map(|dim| Some(self.arena.number(dim.value()?))).collect()),
        }
    }

    fn macs_of(&mut self, graph: &Graph, layer: &Layer) -> Option<Expr> {
        if !ops::has_macs(layer) {
            let known = Some(ops::macs(graph, layer)).filter(|known| !known.is_least)?.count;
            return Some(self.arena.number(i64::try_from(known).ok()?));
        }
        let is_own = std::ptr::eq(graph, self.model.graph());
        if let Some(known) = self.macs.get(&layer.id()).filter(|_| is_own) {
            return *known;
        }
        let feeds = graph.producers(layer.id());
        let tensors = feeds.into_iter().chain([Some(layer.id().output(0))]);
        let mut all: Vec<Option<Vec<Option<Expr>>>> = tensors
            .map(|tensor| {
                let tensor = tensor?;
                self.dims(graph, tensor, graph.output(tensor)?)
            })
            .collect();
        let output = all.pop().flatten();
        let inputs: Vec<Option<&[Option<Expr>]>> = all.iter().map(Option::as_deref).collect();
        let products = ops::products(layer, &inputs, output.as_deref(), |length| {
            length.is_some_and(|length| self.arena.value(length).is_some())
        });
        let sum = products.and_then(|products| {
            let mut sum = self.arena.number(0);
            for factors in products {
                let factors: Vec<Expr> = factors.into_iter().collect::<Option<_>>()?;
                let product = self.arena.product(factors)?;
                sum = self.arena.add(sum, product)?;
            }
            Some(sum)
        });
        if is_own {
            self.macs.insert(layer.id(), sum);
        }
        sum
    }
}
