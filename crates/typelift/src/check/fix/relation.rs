//! Attributes whose values depend on each other.

use crate::model::graph::Layer;

/// Pairs of attributes whose values are swapped by mistake.
const PAIRS: &[(&str, &str)] = &[
    ("min", "max"),
    ("begin_mask", "end_mask"),
    ("pads_begin", "pads_end"),
    ("transpose_a", "transpose_b"),
    ("element_type", "shape"),
    ("offset", "size"),
    ("strides", "dilations"),
    ("strides", "kernel"),
    ("dilations", "kernel"),
    ("pads_begin", "kernel"),
    ("pads_end", "kernel"),
    ("axis", "batch_dims"),
    ("exclusive", "reverse"),
    ("sort", "mode"),
    ("mode", "sort"),
];

/// Attributes that one error can name in place of each other.
const GROUPS: &[&[&str]] = &[
    &["kernel", "strides", "dilations", "pads_begin", "pads_end", "output_padding"],
    &["begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask"],
    &["min", "max"],
    &["axis", "batch_dims"],
    &["seq_axis", "batch_axis"],
    &["start_axis", "end_axis"],
];

pub(super) fn are_related(one: &str, other: &str) -> bool {
    one == other || GROUPS.iter().any(|group| group.contains(&one) && group.contains(&other))
}

pub(super) fn pairs(layer: &Layer) -> Vec<(&'static str, &'static str)> {
    let differ =
        |pair: &&(&str, &str)| layer.attribute(pair.0).zip(layer.attribute(pair.1)).is_some_and(|(a, b)| a != b);
    PAIRS.iter().filter(differ).copied().collect()
}

pub(super) fn are_exchanged(layer: &Layer, one: &str, other: &str) -> bool {
    let Some(operation) = layer.operation() else { return false };
    let is_clear = |name: &str, text: &str| operation.attribute(name).is_some_and(|row| row.is_clear(text));
    let values = layer.attribute(one).zip(layer.attribute(other));
    values.is_some_and(|(a, b)| !is_clear(one, a) && !is_clear(other, b) && is_clear(one, b) && is_clear(other, a))
}

/// A proof must show that none of them passes the trial.
pub(super) fn neighbours(value: &str, words: &[&str]) -> Vec<String> {
    if !words.is_empty() {
        return words.iter().filter(|word| **word != value).map(|word| (*word).to_owned()).collect();
    }
    let numbers: Option<Vec<i64>> = value.split(',').map(|part| part.trim().parse().ok()).collect();
    let Some(numbers) = numbers else {
        let others = value.trim().parse::<f64>().map_or_else(|_| Vec::new(), |it| vec![it + 1.0, it - 1.0, -it]);
        return others.iter().map(ToString::to_string).filter(|other| other != value).collect();
    };
    let mut found = Vec::new();
    for (at, number) in numbers.iter().enumerate() {
        for other in [number.saturating_add(1), number.saturating_sub(1), number.saturating_neg()] {
            let mut list = numbers.clone();
            list[at] = other;
            found.push(list);
        }
        if at > 0 {
            let mut list = numbers.clone();
            list.swap(at - 1, at);
            found.push(list);
        }
    }
    found.retain(|list| *list != numbers);
    found.into_iter().map(|list| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_differ_by_one_by_sign_and_by_order() {
        assert_eq!(neighbours("2", &[]), ["3", "1", "-2"]);
        assert_eq!(neighbours("0", &[]), ["1", "-1"]);
        assert_eq!(neighbours("1, 1", &[]), ["2, 1", "0, 1", "-1, 1", "1, 2", "1, 0", "1, -1"]);
        assert!(neighbours("1,2", &[]).contains(&"2, 1".to_owned()));
        assert_eq!(neighbours("0.5", &[]), ["1.5", "-0.5", "-0.5"]);
        assert_eq!(neighbours("floor", &["floor", "ceil"]), ["ceil"]);
        assert!(neighbours("x", &[]).is_empty());
    }

    #[test]
    fn values_that_only_fit_in_each_others_place_are_exchanged() {
        let parameter = |shape: &str, ty: &str| {
            Layer::new("Parameter", "opset1", "x").with_attribute("shape", shape).with_attribute("element_type", ty)
        };
        assert!(are_exchanged(&parameter("f32", "1,4"), "shape", "element_type"));
        assert!(!are_exchanged(&parameter("1,4", "f32"), "shape", "element_type"));
        assert!(!are_exchanged(&parameter("f32", "f16"), "shape", "element_type"));
    }

    #[test]
    fn an_error_about_strides_can_be_one_of_the_kernel() {
        assert!(are_related("strides", "kernel") && are_related("levels", "levels"));
        assert!(!are_related("strides", "min"));
    }
}
