//! Laws of dimensions and shapes that hold for all values.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and tells what it counts"
)]

use proptest::prelude::*;
use typelift::shape::{AutoBroadcast, BroadcastMode, Dim, ListInput, Shape, ShapeMismatch};

/// Generates dimensions that are not empty, most of them small enough to overlap.
fn dim() -> impl Strategy<Value = Dim> {
    prop_oneof![
        4 => (0i64..5).prop_map(Dim::fixed),
        1 => Just(Dim::ANY),
        2 => (0i64..5, 0i64..5).prop_map(|(lower, more)| Dim::between(lower, lower + more)),
        1 => (0i64..5).prop_map(Dim::at_least),
        1 => (0..i64::MAX, 0..i64::MAX).prop_map(|(a, b)| Dim::between(a.min(b), a.max(b))),
    ]
}

/// Generates a dimension of small lengths with one of these lengths.
fn dim_and_length() -> impl Strategy<Value = (Dim, i64)> {
    (0i64..40, 0i64..40, 0i64..40, any::<bool>()).prop_map(|(lower, within, above, is_bounded)| {
        let length = lower + within;
        (if is_bounded { Dim::between(lower, length + above) } else { Dim::at_least(lower) }, length)
    })
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        9 => prop::collection::vec(dim(), 0..7).prop_map(Shape::from_iter),
        1 => Just(Shape::dynamic()),
    ]
}

fn auto_broadcast() -> impl Strategy<Value = AutoBroadcast> {
    let pdpd = |axis| AutoBroadcast::Pdpd { axis };
    prop_oneof![
        Just(AutoBroadcast::None),
        Just(AutoBroadcast::Numpy),
        prop_oneof![-2i64..6, any::<i64>()].prop_map(pdpd)
    ]
}

/// Returns the length that two lengths broadcast to.
fn broadcast_lengths(a: i64, b: i64) -> Option<i64> {
    match (a, b) {
        (1, length) | (length, 1) => Some(length),
        _ => (a == b).then_some(a),
    }
}

fn swapped(mismatch: ShapeMismatch) -> ShapeMismatch {
    match mismatch {
        ShapeMismatch::Ranks { left, right } => ShapeMismatch::Ranks { left: right, right: left },
        ShapeMismatch::Dims { axis, left, right } => ShapeMismatch::Dims { axis, left: right, right: left },
        ShapeMismatch::Broadcast { axis, left, right } => ShapeMismatch::Broadcast { axis, left: right, right: left },
        other => other,
    }
}

proptest! {
    #[test]
    fn arithmetic_holds_every_result((a, x) in dim_and_length(), (b, y) in dim_and_length(), divisor in 1i64..9) {
        prop_assert!((a + b).contains(x + y));
        prop_assert!((a - b).contains((x - y).max(0)));
        prop_assert!((a * b).contains(x * y));
        prop_assert!(a.hull(b).contains(x) && a.hull(b).contains(y));
        prop_assert_eq!((a & b).is_some_and(|both| both.contains(x)), b.contains(x));
        prop_assert!((a * Dim::fixed(divisor)).checked_div(divisor).unwrap().contains(x));
        if let Some(length) = broadcast_lengths(x, y) {
            prop_assert!(a.broadcast(b).unwrap().contains(length));
        }
    }

    #[test]
    fn division_has_no_length_that_does_not_divide(a in (0i64..50, 0i64..50), divisor in 1i64..9) {
        let dim = Dim::between(a.0, a.0 + a.1);
        let quotient = dim.checked_div(divisor).unwrap();
        for length in 0..100 {
            prop_assert_eq!(quotient.contains(length), dim.contains(length * divisor));
        }
    }

    #[test]
    fn merge_is_commutative_and_idempotent_and_refines(a in shape(), b in shape()) {
        prop_assert_eq!(a.merge(&a), Ok(a.clone()));
        let merged = a.merge(&b);
        prop_assert_eq!(b.merge(&a).map_err(swapped), merged.clone());
        prop_assert_eq!(merged.is_ok(), a.is_compatible(&b));
        if let Ok(merged) = merged {
            prop_assert!(merged.refines(&a) && merged.refines(&b) && a.relaxes(&merged) && b.relaxes(&merged));
        }
    }

    #[test]
    fn numpy_is_commutative_and_idempotent(a in shape(), b in shape()) {
        let numpy = AutoBroadcast::Numpy;
        prop_assert_eq!(numpy.combine(&a, &a), Ok(a.clone()));
        prop_assert_eq!(numpy.combine(&b, &a).map_err(swapped), numpy.combine(&a, &b));
    }

    #[test]
    fn numpy_broadcasts_static_shapes_as_numbers(a in prop::collection::vec(0i64..4, 0..7), b in prop::collection::vec(0i64..4, 0..7)) {
        let rank = a.len().max(b.len());
        let length = |shape: &[i64], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |index| shape[index]);
        let expected: Option<Vec<_>> = (0..rank).map(|axis| broadcast_lengths(length(&a, axis), length(&b, axis))).collect();
        let combined = AutoBroadcast::Numpy.combine(&Shape::fixed(a), &Shape::fixed(b));
        prop_assert_eq!(combined.ok().map(|shape| shape.to_static().unwrap()), expected);
    }

    #[test]
    fn printed_shapes_read_back(shape in shape()) {
        for text in [shape.to_string(), shape.to_attribute().to_string()] {
            prop_assert_eq!(Shape::parse_lenient(&text), Ok((shape.clone(), vec![])));
        }
    }

    #[test]
    fn any_text_is_read_or_refused_at_a_place_within_it(text in prop_oneof!["[-0-9.,? \\[\\]é]{0,40}", any::<String>()]) {
        let spans = match Shape::parse_lenient(&text) {
            Ok((_, oddities)) => oddities.into_iter().map(|oddity| oddity.span).collect(),
            Err(fault) => vec![fault.span],
        };
        for span in spans {
            prop_assert!(text.get(span.clone()).is_some(), "{:?}", span);
        }
    }

    #[test]
    fn no_value_is_beyond_the_rules(
        a in shape(), b in shape(), c in shape(), mode in auto_broadcast(), length: i64, axes: Vec<i64>, number: i64,
    ) {
        let _ = (mode.combine(&a, &b), mode.select(&a, &b, &c), a.element_count());
        for target in [ListInput::Values(&b), ListInput::Length(Dim::fixed(length)), ListInput::Unknown] {
            let _ = BroadcastMode::Pdpd { axis: number }.combine(&a, target);
            let _ = BroadcastMode::Explicit(ListInput::Values(&axes)).combine(&a, target);
            let _ = BroadcastMode::Explicit(ListInput::Length(Dim::from(number))).combine(&a, target);
            let _ = BroadcastMode::Bidirectional.combine(&a, target);
        }
        let dim = Dim::between(length, number);
        for other in a.dims().into_iter().flatten().copied().chain([dim]) {
            let _ = (dim + other, dim - other, dim * other, dim & other, dim.broadcast(other), dim.checked_div(length));
        }
    }
}
