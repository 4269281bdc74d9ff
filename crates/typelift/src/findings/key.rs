//! Identity of findings, and comparison of findings before and after a change.

use std::collections::{HashMap, HashSet};

use smallvec::SmallVec;

use super::{About, Code, Diagnostic, LayerRef, Severity};
use crate::model::graph::{Direction, LayerId, Place};

/// Identity of a finding, for comparison with another run: its code, layer and subject. Messages, positions in the
/// text and names are not compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FindingKey {
    pub(crate) code: Code,
    pub(crate) place: Place,
    /// The layer; `None` if the finding concerns the file.
    pub(crate) layer: Option<LayerId>,
    pub(crate) subject: Subject,
}

/// Port, edge, element or attributes that a finding concerns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    /// The layer or file as a whole.
    Whole,
    /// Attributes of an element; empty if the names are unknown.
    Attributes(Vec<String>),
    Element(String),
    /// An input, output, key or file, by name.
    Named(String),
    /// Inputs, by position.
    Inputs(SmallVec<[usize; 2]>),
    /// A port, by position.
    Port(Direction, usize),
    /// An edge, by the ids of layers and ports that it names.
    Edge {
        from: (LayerId, u64),
        to: (LayerId, u64),
    },
}

impl Subject {
    fn of(about: &About) -> Self {
        match about {
            About::Plain | About::Layers(_) => Self::Whole,
            About::Missing { attributes, .. } => Self::Attributes(attributes.iter().map(ToString::to_string).collect()),
            About::Assumed { attribute, .. } => Self::Attributes(vec![attribute.to_string()]),
            About::Refusal { attribute: Some(name), .. } => Self::Attributes(vec![name.to_string()]),
            About::Unknown { attribute, .. } | About::Unreadable { attribute } => {
                Self::Attributes(vec![attribute.to_string()])
            }
            About::Element { element, .. } => Self::Element(element.clone()),
            About::Subject { name, .. } => Self::Named(name.clone()),
            About::Port { direction, at } => Self::Port(*direction, *at),
            About::Edge { from, to } => Self::Edge { from: *from, to: *to },
            About::Refusal { attribute: None, inputs, .. } => Self::Inputs(inputs.clone()),
        }
    }
}

impl Diagnostic {
    pub(crate) fn key(&self) -> FindingKey {
        let layer = self.layer.as_ref();
        FindingKey {
            code: self.code,
            place: layer.map(|layer| layer.place.clone()).unwrap_or_default(),
            layer: layer.map(|layer| layer.id),
            subject: Subject::of(&self.about),
        }
    }
}

/// Key of a finding, and the path of its layer.
type Identity = (FindingKey, String);

fn identity(found: &Diagnostic) -> Identity {
    (found.key(), found.layer.as_ref().map(LayerRef::full_name).unwrap_or_default())
}

/// The findings of a model before a change, by identity.
#[derive(Clone, Debug)]
pub struct Known {
    least: Severity,
    list: Vec<Identity>,
}

/// Differences between the findings before and after a change.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Comparison<'a> {
    /// The findings that did not exist before.
    pub new: Vec<&'a Diagnostic>,
    fixed: HashSet<FindingKey>,
    left: HashSet<FindingKey>,
}

impl Comparison<'_> {
    pub(crate) fn is_fixed(&self, key: &FindingKey) -> bool {
        self.fixed.contains(key)
    }

    pub(crate) fn gone(self) -> HashSet<FindingKey> {
        let Self { mut fixed, left, .. } = self;
        fixed.retain(|key| !left.contains(key));
        fixed
    }
}

impl Known {
    /// The findings of at least this severity. [`compare`](Self::compare) then ignores less severe ones too.
    pub(crate) fn new(found: &[Diagnostic], least: Severity) -> Self {
        Self { least, list: found.iter().filter(|it| it.severity >= least).map(identity).collect() }
    }

    /// Returns the errors among findings.
    #[must_use]
    pub fn errors(found: &[Diagnostic]) -> Self {
        Self::new(found, Severity::Error)
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn has(&self, code: Code) -> bool {
        self.list.iter().any(|(key, _)| key.code == code)
    }

    /// Compares with the findings after a change. Returns the new findings and the fixed ones.
    ///
    /// A finding is old if an earlier one has the same key. It is also old if only the layer's id differs and the
    /// layer's path is the same, because an edit of the text can change ids.
    pub fn compare<'a>(&self, after: &'a [Diagnostic]) -> Comparison<'a> {
        let mut counts = HashMap::<_, usize>::new();
        for known in &self.list {
            *counts.entry(known).or_default() += 1;
        }
        let mut compared = Comparison::default();
        let mut new: Vec<_> =
            after.iter().filter(|it| it.severity >= self.least).map(|it| (identity(it), it)).collect();
        new.retain(|(identity, _)| match counts.get_mut(identity).filter(|count| **count > 0) {
            Some(count) => {
                *count -= 1;
                compared.left.insert(identity.0.clone());
                false
            }
            None => true,
        });
        let mut before: Vec<_> = self.list.iter().collect();
        before.retain(|known| counts.get_mut(known).filter(|count| **count > 0).map(|count| *count -= 1).is_some());
        let by_id = |(known, _): &Identity, (it, _): &Identity| known == it;
        let by_path = |(known, name): &Identity, (it, path): &Identity| {
            known.code == it.code && known.subject == it.subject && name == path
        };
        for is_same in [&by_id as &dyn Fn(&Identity, &Identity) -> bool, &by_path] {
            new.retain(|(identity, _)| match before.iter().position(|known| is_same(known, identity)) {
                Some(at) => {
                    compared.left.insert(before.remove(at).0.clone());
                    false
                }
                None => true,
            });
        }
        compared.new = new.into_iter().map(|(_, it)| it).collect();
        compared.fixed = before.into_iter().map(|(key, _)| key.clone()).collect();
        compared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(id: u64, name: &str, message: &'static str) -> Diagnostic {
        let layer = LayerRef::named(&Place::default(), LayerId(id), name);
        Diagnostic { layer: Some(layer), ..Diagnostic::new(Code::ShapeMismatch, message) }
    }

    #[test]
    fn another_name_other_words_or_another_id_are_the_same_finding() {
        let known = Known::errors(&[error(1, "sum", "2 and 3 differ")]);
        for after in [error(1, "total", "2 and 3 differ"), error(1, "sum", "2 and 4 differ"), error(7, "sum", "")] {
            let compared = known.compare(std::slice::from_ref(&after));
            assert!(compared.new.is_empty() && compared.gone().is_empty(), "{after}");
        }
        let both_differ = [error(7, "total", "2 and 3 differ")];
        assert_eq!(known.compare(&both_differ).new.len(), 1);
    }

    #[test]
    fn one_of_two_equal_findings_is_fixed() {
        let before = [error(1, "sum", "a"), error(1, "sum", "b")];
        let compared = Known::errors(&before).compare(&before[..1]).clone();
        assert!(compared.is_fixed(&before[0].key()));
        assert!(compared.gone().is_empty());
    }

    #[test]
    fn another_subject_is_another_finding() {
        let refusal =
            |attribute| About::Refusal { inputs: SmallVec::new(), attribute: Some(attribute), counts_axes: false };
        let known = Known::errors(&[error(1, "sum", "").about(refusal("axis"))]);
        let after = [error(1, "sum", "").about(refusal("mode"))];
        let compared = known.compare(&after);
        assert_eq!((compared.new.len(), compared.clone().gone().len()), (1, 1));
    }
}
