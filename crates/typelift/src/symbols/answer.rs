//! Answers in words: which lengths fit, where a length comes from, and why lengths are refused.

use super::trial::Fits;
use super::walk::{chain, reason};
use super::{Constraint, Noticed, Reason, Shapes, Symbol};
use crate::base::names::matches_glob;
use crate::findings::{Code, Diagnostic, Text, message};
use crate::model::graph::{Graph, LayerId, Model, Output, Place};
use crate::model::shape::Shape;
use crate::ops::{self, LayerKind};

const MOST_LISTED: usize = 4;
const MOST_REFUSALS: usize = 3;

impl Shapes {
    /// Returns the symbol with this name, id, or axis of an input, or those whose names match a glob: `seq`, `s1`,
    /// `input_ids[1]`, `*_seq`.
    pub fn symbols_of(&self, word: &str) -> Vec<&Symbol> {
        let named = self.symbols.iter().find(|symbol| symbol.name == word || symbol.id == word).or_else(|| {
            let mut symbols = self.symbols.iter();
            symbols.find(|symbol| symbol.named_axes().any(|(input, axis)| format!("{input}[{axis}]") == word))
        });
        let globbed = self.symbols.iter().filter(|symbol| named.is_none() && matches_glob(word, &symbol.name));
        named.into_iter().chain(globbed).collect()
    }

    /// Describes the lengths of one symbol that satisfy all constraints on it alone: `only 8`, `multiples of 32`. `None`
    /// if every length does.
    pub fn fit(&self, symbol: &Symbol) -> Option<String> {
        let at = self.symbols.iter().position(|it| std::ptr::eq(it, symbol))?;
        let tests = self.alone(at);
        (!tests.is_empty()).then(|| described(&self.fits(at, &tests)))
    }

    /// Describes the lengths of one symbol that satisfy all constraints on it alone, `seq ≤ 512` or `width: multiples of
    /// 32`, with the constraint that says most. `None` if every length does.
    pub fn limit(&self, symbol: &Symbol) -> Option<(String, &Constraint)> {
        let at = self.symbols.iter().position(|it| std::ptr::eq(it, symbol))?;
        let tests = Some(self.alone(at)).filter(|tests| !tests.is_empty())?;
        let fit = described(&self.fits(at, &tests));
        let decides = tests.iter().find(|it| described(&self.fits(at, &[it])) == fit);
        let decides = decides.or(tests.first()).copied()?;
        let name = &symbol.name;
        let limit =
            [("only ", " = "), ("at most ", " ≤ "), ("at least ", " ≥ ")].into_iter().find_map(|(word, sign)| {
                let number = fit.strip_prefix(word).filter(|rest| !rest.contains(' '))?;
                Some(format!("{name}{sign}{number}"))
            });
        Some((limit.unwrap_or_else(|| format!("{name}: {fit}")), decides))
    }

    /// Returns the least and the greatest length of one symbol that satisfy its bounds and all constraints on it alone.
    /// Lengths between them need not fit.
    pub fn ends(&self, symbol: &Symbol) -> (i64, i64) {
        let at = self.symbols.iter().position(|it| std::ptr::eq(it, symbol));
        let tests = at.map(|at| (at, self.alone(at))).filter(|(_, tests)| !tests.is_empty());
        let fits = tests.map(|(at, tests)| self.fits(at, &tests));
        let (least, most) = symbol.bounds;
        match fits {
            Some(Fits { list, is_open }) if !list.is_empty() => {
                let last = list.last().copied().filter(|_| !is_open);
                (list[0].max(least), last.unwrap_or(most).min(most))
            }
            _ => (least, most),
        }
    }

    /// True if the length can also be 0: the inputs declare no least one, and all that they do is to extend other tensors along
    /// it, as a cache of earlier tokens does.
    pub fn may_be_empty(&self, graph: &Graph, symbol: &Symbol) -> bool {
        let is_it = |tensor: Output, axis: usize| {
            let dim = self.dims_of(tensor).and_then(|dims| dims.get(axis).copied().flatten());
            dim.is_some_and(|dim| self.arena.text(dim, &|at| &self.any(at).id) == symbol.id)
        };
        let only_extends = |id: LayerId| {
            let (mut tensors, mut at, mut extends) = (vec![id.output(0)], 0, false);
            while let Some(&tensor) = tensors.get(at) {
                at += 1;
                let rank = self.dims_of(tensor).map_or(0, <[_]>::len);
                for (_, input) in graph.uses(tensor.layer) {
                    let Some(layer) = graph.layer(input.layer) else { return false };
                    let next = layer.id().output(0);
                    let axis =
                        || layer.attribute("axis")?.parse::<i64>().ok().map(|axis| axis.rem_euclid(rank.max(1) as i64));
                    match layer.ty() {
                        "ShapeOf" => {}
                        "Concat" if axis().is_some_and(|axis| is_it(tensor, axis as usize)) => extends = true,
                        "Convert" | "Gather" | "Reshape" | "Squeeze" | "Transpose" | "Unsqueeze"
                            if input.port == 0 && (0..=rank + 1).any(|axis| is_it(next, axis)) =>
                        {
                            if !tensors.contains(&next) {
                                tensors.push(next);
                            }
                        }
                        _ => return false,
                    }
                }
            }
            extends
        };
        symbol.axes.iter().all(|&(id, axis)| {
            let declared = graph.layer(id).and_then(|layer| layer.outputs().first()?.shape().dims()?.get(axis));
            declared.is_some_and(|dim| dim.lower() == 0) && only_extends(id)
        })
    }

    pub(crate) fn only(&self, symbol: &Symbol) -> Option<i64> {
        let at = self.symbols.iter().position(|it| std::ptr::eq(it, symbol))?;
        let tests = Some(self.alone(at)).filter(|tests| !tests.is_empty())?;
        self.fits(at, &tests).only()
    }

    /// The constraints that name only this symbol.
    pub(crate) fn alone(&self, symbol: usize) -> Vec<&Constraint> {
        self.constraints.iter().filter(|constraint| constraint.symbols == [symbol]).collect()
    }

    /// True if no lengths satisfy both constraints, which demand different values of one sum of several symbols.
    pub(crate) fn contradict(&self, one: &Constraint, other: &Constraint) -> bool {
        one.symbols.len() > 1 && self.arena.contradict(one.test, other.test)
    }

    /// True if an axis of a tensor depends on a symbol, or is unknown.
    pub(crate) fn varies_with(&self, tensor: Output, axis: usize, symbol: usize) -> bool {
        let Some(Some(dim)) = self.dims_of(tensor).map(|dims| dims.get(axis).copied().flatten()) else {
            return self.dims_of(tensor).is_none_or(|dims| axis < dims.len());
        };
        self.arena.symbols(dim).contains(&symbol)
    }

    pub(crate) fn exceeds_bounds(&self, constraint: &Constraint) -> bool {
        let is_bounded = constraint.symbols.iter().all(|&at| self.symbols[at].is_bounded());
        let largest: Vec<i64> = self.symbols.iter().map(|it| it.bounds.1).collect();
        is_bounded && self.arena.evaluate(constraint.test, &largest) == Some(0)
    }

    /// True if a constraint holds where all inputs have one batch and one other length. Only then nobody meets it.
    pub(crate) fn holds_for_equal_inputs(&self, constraint: &Constraint) -> bool {
        let is_first: Vec<bool> =
            self.symbols.iter().map(|it| it.axes.first().is_some_and(|&(_, axis)| axis == 0)).collect();
        [(1, 1), (1, 7), (2, 7), (3, 64), (5, 512), (2, 1 << 24)].into_iter().all(|(batch, length)| {
            let lengths: Vec<i64> = is_first.iter().map(|&is_first| if is_first { batch } else { length }).collect();
            self.arena.evaluate(constraint.test, &lengths) != Some(0)
        })
    }

    pub(crate) fn is_assured(&self, constraint: &Constraint) -> bool {
        let bounds = constraint.symbols.iter().map(|&at| self.symbols[at].bounds);
        let bounds = bounds.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        bounds.is_some_and(|bounds| self.arena.range_in(constraint.test, bounds) == (1, 1))
    }

    /// Returns the constraints that name one of the symbols of a dimension.
    pub fn constraints_on(&self, tensor: Output, axis: usize) -> Vec<&Constraint> {
        let dim = self.dims_of(tensor).and_then(|dims| dims.get(axis).copied().flatten());
        let symbols = dim.map(|dim| self.arena.symbols(dim)).unwrap_or_default();
        let constraints = self.constraints.iter();
        constraints.filter(|it| it.symbols.iter().any(|symbol| symbols.contains(symbol))).collect()
    }

    /// Returns the layers through which a dimension comes, the nearest first. The last one is where it is open, where
    /// it is computed, or the constant that has the number.
    pub fn origin(&self, graph: &Graph, tensor: Output, axis: usize) -> Vec<Reason> {
        const MOST: usize = 1000;
        let place = Place::default();
        let (mut at, mut axis) = (tensor, axis);
        let mut path = Vec::new();
        while let Some(layer) = graph.layer(at.layer).filter(|_| path.len() < MOST) {
            path.push(reason(&place, layer));
            if ops::is_constant(layer) || ops::kind(layer) == LayerKind::Parameter {
                return path;
            }
            let wanted = self.dims_of(at).and_then(|dims| dims.get(axis)).copied().flatten();
            let feeds = graph.feeds(layer.id());
            let next = feeds.iter().flatten().find_map(|(feed, port)| {
                let output = feed.id().output(*port);
                let dims = self.dims_of(output)?;
                let is_it = |at: &usize| dims.get(*at).copied().flatten() == wanted && !ops::is_constant(feed);
                let found = Some(axis).filter(is_it).or_else(|| (0..dims.len()).find(is_it))?;
                Some((output, found))
            });
            match next {
                Some(next) => (at, axis) = next,
                None => {
                    let shaping = (0..feeds.len()).rev().find(|&input| input > 0 || feeds.len() == 1);
                    let above = shaping.map(|input| chain(graph, layer, input)).unwrap_or_default();
                    path.extend(above.into_iter().skip(1).map(|layer| reason(&place, layer)));
                    return path;
                }
            }
        }
        path
    }

    /// Returns why lengths that were asked for do not fit, with lengths that do: one error for each group of symbols.
    pub fn refusals(&self, model: &Model, asked: &[(LayerId, Shape)]) -> Vec<Diagnostic> {
        let wanted: Vec<Option<i64>> = self
            .symbols
            .iter()
            .map(|symbol| {
                symbol.axes.iter().find_map(|&(id, axis)| {
                    let (_, shape) = asked.iter().find(|(asked, _)| *asked == id)?;
                    shape.dims()?.get(axis)?.value()
                })
            })
            .collect();
        let hints = wanted.iter().map(|length| length.unwrap_or(1));
        // Shorter lengths may fit where none from these on does.
        let most = hints.clone().max().unwrap_or(1).max(1).ilog2() + 1;
        let near = (0..=most.min(62))
            .rev()
            .find_map(|bit| self.fitting(&hints.clone().map(|it| it.min(1 << bit)).collect::<Vec<_>>()));
        let Some(near) = near else { return Vec::new() };
        let lengths: Vec<i64> = wanted.iter().zip(&near).map(|(wanted, near)| wanted.unwrap_or(*near)).collect();
        let help = self.loads(model, &near).then(|| {
            let shapes = self.input_shapes(model, &near);
            let options: Vec<String> = shapes
                .iter()
                .filter(|(id, _)| asked.iter().any(|(asked, _)| asked == id))
                .filter_map(|(id, shape)| Some((model.graph().layer(*id)?, shape)))
                .map(|(layer, shape)| format!("--set-shape '{}={shape}'", model.end_name(layer)))
                .collect();
            format!("{}   (checked: it loads)", options.join(" "))
        });
        let mut told: Vec<Vec<usize>> = Vec::new();
        let mut found = Vec::new();
        for constraint in self.broken(&lengths).into_iter().filter(|it| it.at == Noticed::Load) {
            let mut symbols = constraint.symbols.clone();
            symbols.retain(|&symbol| wanted[symbol].is_some());
            if symbols.is_empty() || told.contains(&symbols) || found.len() == MOST_REFUSALS {
                continue;
            }
            found.push(self.refusal(constraint, &symbols, &lengths, help.as_deref()));
            told.push(symbols);
        }
        found
    }

    fn refusal(&self, constraint: &Constraint, symbols: &[usize], lengths: &[i64], help: Option<&str>) -> Diagnostic {
        let are = symbols.iter().map(|&at| match self.symbols[at].named_axes().next() {
            Some((input, axis)) => format!("`{input}[{axis}]` is {}", lengths[at]),
            None => format!("`{}` is {}", self.symbols[at].name, lengths[at]),
        });
        let are = are.collect::<Vec<_>>().join(" and ");
        let fit = match symbols {
            [symbol] => self.fit(&self.symbols[*symbol]),
            _ => None,
        };
        let message = match fit {
            Some(fit) => message!("{}, but the lengths that fit are {}"; Text(are), Text(fit)),
            None => message!("{}, but it needs {}"; Text(are), Text(&constraint.named)),
        };
        let mut finding = Diagnostic::new(Code::ShapeMismatch, message);
        if let Some(first) = constraint.because.first() {
            finding.layer = Some(first.layer.clone());
            let last = constraint.because.last().unwrap_or(first);
            finding = finding.at(first.span, message!("`{}` needs {}"; first.operation, Text(&constraint.named)));
            if last.span != first.span {
                finding = finding.note(message!(
                    "what it needs comes from `{}` ({} {})";
                    last.layer.name, last.operation, last.layer.id.0
                ));
            }
        }
        match help {
            Some(help) => finding.help(Text(help)),
            None => finding,
        }
    }
}

fn described(fits: &Fits) -> String {
    let is_open = fits.is_open;
    let fits = &fits.list[..];
    let (Some(&first), Some(&last)) = (fits.first(), fits.last()) else { return "none".to_owned() };
    if fits.len() <= MOST_LISTED && !is_open {
        let list: Vec<String> = fits.iter().map(ToString::to_string).collect();
        return format!("only {}", list.join(" or "));
    }
    if fits.windows(2).all(|pair| pair[1] == pair[0] + 1) {
        return match (first, is_open) {
            (1, true) => "any".to_owned(),
            (_, true) => format!("at least {first}"),
            (1, false) => format!("at most {last}"),
            _ => format!("{first} to {last}"),
        };
    }
    // A length of 1 is often stretched where no other small length fits.
    if first == 1 && fits[1] != 2 {
        let others = Fits { list: fits[1..].to_vec(), is_open };
        return format!("1, or {}", described(&others).trim_start_matches("only "));
    }
    let step = fits.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(1);
    let is_multiple = fits.iter().all(|length| length % step == 0) && fits.windows(2).all(|it| it[1] - it[0] == step);
    if step > 1 && is_multiple {
        let least = if first == step { String::new() } else { format!(", at least {first}") };
        let most = if is_open { String::new() } else { format!(", at most {last}") };
        return format!("multiples of {step}{least}{most}");
    }
    let list: Vec<String> = fits.iter().take(MOST_LISTED).map(ToString::to_string).collect();
    format!("{}, …{}", list.join(", "), if is_open { String::new() } else { format!(", {last}") })
}

#[cfg(test)]
mod tests {
    use super::{Fits, described};

    #[test]
    fn lengths_are_described_in_words() {
        let all = |holds: fn(i64) -> bool| {
            let list: Vec<i64> = (1..=4096).filter(|&length| holds(length)).collect();
            Fits { is_open: list.last().is_some_and(|&last| last > 4000), list }
        };
        for (holds, text) in [
            (all(|length| length == 8), "only 8"),
            (all(|length| length == 99 || length == 100), "only 99 or 100"),
            (all(|length| length % 32 == 0), "multiples of 32"),
            (all(|length| length % 24 == 0), "multiples of 24"),
            (all(|length| length % 32 == 0 && length >= 64), "multiples of 32, at least 64"),
            (all(|length| length >= 5), "at least 5"),
            (all(|length| length <= 512), "at most 512"),
            (all(|length| (800..810).contains(&length)), "800 to 809"),
            (all(|length| length == 1 || (800..810).contains(&length)), "1, or 800 to 809"),
            (all(|length| length == 32 || (57..=640).contains(&length)), "32, 57, 58, 59, …, 640"),
            (all(|_| true), "any"),
            (all(|_| false), "none"),
        ] {
            assert_eq!(described(&holds), text);
        }
    }
}
