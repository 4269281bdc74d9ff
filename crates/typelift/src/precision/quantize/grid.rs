//! Grid of scales: the layout of a tensor whose values share scales.

use std::ops::Range;

/// Dimensions of a tensor, merged into the order `kept, reduced, kept, reduced`. Values that differ only in reduced
/// dimensions share a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    outer: usize,
    outer_reduced: usize,
    inner: usize,
    inner_reduced: usize,
}

/// Consecutive values of a tensor.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Positions of the values, from the start of the requested range.
    pub(super) values: Range<usize>,
    /// Scale of the first value.
    pub(super) scale: usize,
    /// True if consecutive values have consecutive scales; false if all have the same one.
    pub(super) is_across: bool,
}

impl Grid {
    /// The grid of a tensor. Each dimension has a flag that is true if it is reduced. `None` if kept and
    /// reduced dimensions alternate too often.
    pub(super) fn new(dims: impl IntoIterator<Item = (usize, bool)>) -> Option<Self> {
        let mut extents = [1_usize; 4];
        let mut at = 0;
        for (dim, is_reduced) in dims {
            at += usize::from((at % 2 == 1) != is_reduced && dim != 1);
            *extents.get_mut(at)? = extents.get(at)?.checked_mul(dim)?;
        }
        let [outer, outer_reduced, inner, inner_reduced] = extents;
        let is_one_block = inner == 1 && inner_reduced == 1;
        let is_flat = is_one_block && outer_reduced == 1;
        Some(match (is_flat, is_one_block) {
            (true, _) => Self { outer: 1, outer_reduced: 1, inner: outer, inner_reduced: 1 },
            (_, true) => Self { outer, outer_reduced: 1, inner: 1, inner_reduced: outer_reduced },
            _ => Self { outer, outer_reduced, inner, inner_reduced },
        })
    }

    pub(super) fn len(&self) -> usize {
        self.outer * self.slab()
    }

    pub(super) fn scales(&self) -> usize {
        self.outer * self.inner
    }

    pub(super) fn shared(&self) -> usize {
        self.outer_reduced * self.inner_reduced
    }

    fn slab(&self) -> usize {
        self.outer_reduced * self.inner * self.inner_reduced
    }

    pub(super) fn scales_of(&self, values: &Range<usize>) -> Range<usize> {
        let slab = self.slab().max(1);
        values.start / slab * self.inner..values.end.div_ceil(slab) * self.inner
    }

    pub(super) fn runs(self, values: Range<usize>) -> impl Iterator<Item = Run> {
        let (slab, row) = (self.slab().max(1), self.inner * self.inner_reduced);
        let is_across = self.inner_reduced == 1 && self.inner > 1;
        let mut at = values.start;
        std::iter::from_fn(move || {
            if at >= values.end {
                return None;
            }
            let (outer, within) = (at / slab, at % slab % row.max(1));
            let (inner, rest) = (within / self.inner_reduced, within % self.inner_reduced);
            let left = if is_across { self.inner - inner } else { self.inner_reduced - rest };
            let start = at - values.start;
            at = values.end.min(at + left);
            Some(Run { values: start..at - values.start, scale: outer * self.inner + inner, is_across })
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The scale of a value is given by its indices along the kept dimensions.
        #[test]
        fn runs_name_the_scale_of_each_value(
            dims in proptest::collection::vec((1_usize..5, any::<bool>()), 1..5),
            cut in 0.0..1.0_f64,
        ) {
            let Some(grid) = Grid::new(dims.iter().copied()) else { return Ok(()) };
            let count: usize = dims.iter().map(|(dim, _)| dim).product();
            prop_assert_eq!(grid.len(), count);
            let expected: Vec<usize> = (0..count).map(|at| {
                let (mut rest, mut scale, mut step) = (at, 0, 1);
                for &(dim, is_reduced) in dims.iter().rev() {
                    if !is_reduced {
                        scale += rest % dim * step;
                        step *= dim;
                    }
                    rest /= dim;
                }
                scale
            }).collect();
            let middle = (count as f64 * cut) as usize;
            for range in [0..middle, middle..count] {
                let mut found = Vec::new();
                for run in grid.runs(range.clone()) {
                    prop_assert_eq!(run.values.start, found.len());
                    found.extend(run.values.enumerate().map(|(nth, _)| run.scale + if run.is_across { nth } else { 0 }));
                }
                let scales = grid.scales_of(&range);
                prop_assert!(found.iter().all(|scale| scales.contains(scale)));
                prop_assert_eq!(&found[..], &expected[range]);
            }
        }
    }
}
