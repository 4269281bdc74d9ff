//! Values of a tensor at other positions: broadcast, transposed, sliced and joined.

use std::borrow::Borrow;
use std::iter::repeat_n;

use super::{Array, Few, Fill, ZERO, count};

pub(crate) fn strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1_usize; dims.len()];
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(dims[axis]);
    }
    strides
}

pub(crate) fn steps(dim: usize, stride: usize) -> Vec<Option<usize>> {
    (0..dim).map(|index| Some(index * stride)).collect()
}

/// All sums of one number from each list, the last list changing fastest. A sum is `None` if one of its
/// numbers is.
fn sums(lists: &[Vec<Option<usize>>]) -> impl Iterator<Item = Option<usize>> {
    let total: usize = lists.iter().map(Vec::len).product();
    // Axes of length 1 would take time at every value.
    let lists: Vec<_> = lists.iter().filter(|list| list[..] != [Some(0)]).collect();
    let mut at = vec![0; lists.len()];
    (0..total).map(move |_| {
        let sum = at.iter().zip(&lists).try_fold(0, |sum, (&at, list)| Some(sum + list[at]?));
        for (at, list) in at.iter_mut().zip(&lists).rev() {
            *at += 1;
            if *at < list.len() {
                break;
            }
            *at = 0;
        }
        sum
    })
}

impl Array {
    /// The positions along these axes of the tensor, one list for each.
    pub(crate) fn axes(&self, order: impl IntoIterator<Item = usize>) -> Vec<Vec<Option<usize>>> {
        let strides = strides(&self.dims);
        order.into_iter().map(|axis| steps(self.dims[axis], strides[axis])).collect()
    }

    /// A tensor with the values of this one at these positions in row-major order, and `fill` for `None`.
    pub(crate) fn at(&self, dims: Few<usize>, places: impl Iterator<Item = Option<usize>>, fill: Fill) -> Option<Self> {
        let data = self.data.at(places.take(count(&dims)?), fill)?;
        Some(Self { element_type: self.element_type, dims, data })
    }

    /// A tensor with one axis for each list. The value at a position is the one at the sum of the lists'
    /// numbers, or `fill` if one of them is `None`.
    pub(crate) fn pick(&self, lists: &[Vec<Option<usize>>], fill: Fill) -> Option<Self> {
        let dims: Few<usize> = lists.iter().map(Vec::len).collect();
        count(&dims)?;
        self.picked(lists, fill)
    }

    /// Does the same as [`pick`](Self::pick), for any number of values.
    fn picked(&self, lists: &[Vec<Option<usize>>], fill: Fill) -> Option<Self> {
        let dims = lists.iter().map(Vec::len).collect();
        Some(Self { element_type: self.element_type, dims, data: self.data.at(sums(lists), fill)? })
    }

    /// The tensor broadcast to `dims`. `places` are the positions of its axes among these.
    pub(crate) fn stretched(&self, dims: &[usize], places: impl IntoIterator<Item = usize>) -> Option<Self> {
        if self.dims[..] != *dims {
            count(dims)?;
        }
        self.broadcast(dims, places)
    }

    /// Does the same as [`stretched`](Self::stretched), for any number of values.
    pub(crate) fn broadcast(&self, dims: &[usize], places: impl IntoIterator<Item = usize>) -> Option<Self> {
        if self.dims[..] == *dims {
            return Some(self.clone());
        }
        let mut lists: Vec<_> = dims.iter().map(|&dim| vec![Some(0); dim]).collect();
        for ((&dim, stride), place) in self.dims.iter().zip(strides(&self.dims)).zip(places) {
            let list = lists.get_mut(place)?;
            match dim {
                1 => {}
                dim if dim == list.len() => *list = steps(dim, stride),
                _ => return None,
            }
        }
        self.picked(&lists, ZERO)
    }

    /// The slices of one axis of a tensor of any size at these indices; `None` if an index is out of range.
    pub(crate) fn take(&self, axis: usize, indices: impl Iterator<Item = usize>) -> Option<Self> {
        let mut lists = self.axes(0..self.dims.len());
        let own = lists.get_mut(axis)?;
        *own = indices.map(|index| own.get(index).copied()).collect::<Option<_>>()?;
        self.picked(&lists, ZERO)
    }

    /// The tensor of any size with its axes in this order.
    pub(crate) fn transposed(&self, order: impl IntoIterator<Item = usize>) -> Option<Self> {
        self.picked(&self.axes(order), ZERO)
    }

    /// True if the dimensions of two tensors differ at most along this axis.
    pub(crate) fn is_alike_but(&self, other: &Self, axis: usize) -> bool {
        let mut pairs = self.dims.iter().zip(&other.dims).enumerate();
        self.dims.len() == other.dims.len() && pairs.all(|(at, (a, b))| at == axis || a == b)
    }

    /// Joins tensors of any size along an axis; `None` if other dimensions differ.
    pub(crate) fn joined<A: Borrow<Self>>(parts: &[A], axis: usize) -> Option<Self> {
        let first: &Self = parts.first()?.borrow();
        let mut dims = first.dims.clone();
        dims[axis] = 0;
        for part in parts.iter().map(Borrow::borrow) {
            dims[axis] = dims[axis].checked_add(part.dims[axis]).filter(|_| first.is_alike_but(part, axis))?;
        }
        let row = |dims: &[usize]| dims[axis..].iter().product::<usize>();
        let (total, mut start) = (row(&dims), 0);
        let mut data = first.data.at(repeat_n(None, dims.iter().product()), ZERO)?;
        for part in parts.iter().map(Borrow::borrow) {
            let length = row(&part.dims);
            for from in 0..part.len() {
                data.put(from / length * total + start + from % length, &part.data, from)?;
            }
            start += length;
        }
        Some(Self { element_type: first.element_type, dims, data })
    }
}
