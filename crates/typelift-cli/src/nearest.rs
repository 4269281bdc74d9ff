//! What somebody meant who wrote a name that is not there.

/// The name that a text is closest to, upper and lower case being the same, if they are alike at least to this degree: 0 to 1.
pub(crate) fn nearest<T: AsRef<str>>(text: &str, names: impl IntoIterator<Item = T>, alike: f64) -> Option<T> {
    let text = text.to_lowercase();
    let scored = names.into_iter().map(|name| (strsim::jaro_winkler(&name.as_ref().to_lowercase(), &text), name));
    scored.filter(|(score, _)| *score > alike).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}
