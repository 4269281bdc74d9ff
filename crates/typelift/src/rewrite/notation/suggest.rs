//! What was probably meant where a text in the notation cannot be read.

/// The word that is close enough to `word` to be what was meant; of several the closest, then the first.
pub(crate) fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = word.to_lowercase();
    // One letter in three may differ, none of a name of one.
    let limit = wanted.chars().count().div_ceil(3).min(wanted.chars().count().saturating_sub(1));
    let scored = known.into_iter().map(|known| (distance(&wanted, &known.to_lowercase(), limit), known));
    let near = scored.filter_map(|(distance, known)| Some((distance?, known)));
    near.min_by_key(|&(distance, _)| distance).map(|(_, known)| known)
}

/// How many letters must be added, removed, changed or swapped with the next one to make one word the other; `None` where
/// that is more than `limit`.
fn distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit || a.len().max(b.len()) > 200 {
        return None;
    }
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let last = &rows[i];
            let mut cost = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                cost = cost.min(rows[i - 1][j - 1] + 1);
            }
            row.push(cost);
        }
        rows.push(row);
    }
    rows.last().and_then(|row| row.last().copied()).filter(|&cost| cost <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_word_is_found_and_a_far_one_is_not() {
        let words = ["Relu", "Clamp", "Multiply"];
        assert_eq!(closest("Rleu", words), Some("Relu"));
        assert_eq!(closest("multply", words), Some("Multiply"));
        assert_eq!(closest("Foo", words), None);
        assert_eq!(closest("x", ["y"]), None);
    }
}
