//! Suggestions for text in the notation that cannot be parsed.

/// Returns the known word that is most similar to `word`, if it is similar enough. Of equally similar words, the first
/// is returned.
pub(crate) fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = word.to_lowercase();
    // A third of the letters may differ, but none in a word of one letter.
    let limit = wanted.chars().count().div_ceil(3).min(wanted.chars().count().saturating_sub(1));
    let scored = known.into_iter().map(|known| (distance(&wanted, &known.to_lowercase(), limit), known));
    let near = scored.filter_map(|(distance, known)| Some((distance?, known)));
    near.min_by_key(|&(distance, _)| distance).map(|(_, known)| known)
}

/// Returns the number of letters to add, remove, change or swap with a neighbour to turn one word into the other;
/// `None` if it exceeds `limit`.
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
