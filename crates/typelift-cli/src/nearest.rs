//! Suggestions for unknown names.

/// Returns the name that is most similar to a text, ignoring case, if the similarity is at least `alike`, from 0 to 1.
pub(crate) fn nearest<T: AsRef<str>>(text: &str, names: impl IntoIterator<Item = T>, alike: f64) -> Option<T> {
    let text = text.to_lowercase();
    let names: Vec<T> = names.into_iter().collect();
    // Two exchanged letters are the likeliest mistake in short names: `i46` for `i64`.
    let is_exchanged =
        |name: &str| name.len() == text.len() && text.bytes().zip(name.bytes()).filter(|(a, b)| a != b).count() == 2;
    let is_one_slip = |name: &T| {
        is_exchanged(&name.as_ref().to_lowercase()) && strsim::osa_distance(&name.as_ref().to_lowercase(), &text) == 1
    };
    if let Some(at) = names.iter().position(is_one_slip) {
        return names.into_iter().nth(at);
    }
    let scored = names.into_iter().map(|name| (strsim::jaro_winkler(&name.as_ref().to_lowercase(), &text), name));
    scored.filter(|(score, _)| *score > alike).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}
