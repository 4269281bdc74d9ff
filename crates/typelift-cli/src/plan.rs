//! What a conversion does to a graph: the Converts that come and go.

use std::collections::{BTreeMap, HashSet};
use std::fmt::{self, Display, Formatter, Write as _};

use serde::Serialize;
use typelift::passes::{Action, Change};
use typelift::{Diagnostic, Model};

use crate::listing::Clean;

/// Every Convert that is there after and was not before, or the other way round.
#[derive(Serialize)]
pub(crate) struct Plan<'a> {
    file: &'a str,
    converts: Vec<Change>,
}

impl<'a> Plan<'a> {
    /// From what passes did one after the other; what one put in and a later one took out is no change.
    pub(crate) fn new(file: &'a str, changes: Vec<Change>) -> Self {
        let key = |change: &Change| (change.layer.path.clone(), change.layer.id);
        let of = |action| changes.iter().filter(move |change| change.action == action).map(key).collect::<HashSet<_>>();
        let (inserted, removed) = (of(Action::Inserted), of(Action::Removed));
        let passing = |change: &Change| inserted.contains(&key(change)) && removed.contains(&key(change));
        let lasting = changes.into_iter().filter(|change| !passing(change));
        Self { file, converts: lasting.collect() }
    }

    /// Warnings of constants that do not come out as they went in.
    pub(crate) fn warnings(&self, model: &Model) -> impl Iterator<Item = Diagnostic> {
        self.converts.iter().filter_map(|change| change.warning(model))
    }

    pub(crate) fn count(&self, action: Action) -> usize {
        self.converts.iter().filter(|entry| entry.action == action).count()
    }
}

/// A line a Convert, grouped by the body it is in.
impl Display for Plan<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut groups = BTreeMap::<&str, Vec<[String; 4]>>::new();
        for entry in &self.converts {
            let sign = match entry.action {
                Action::Inserted => '+',
                Action::Removed => '-',
                Action::Used => '=',
                Action::Retyped => '~',
            };
            let loss = match (entry.audit, entry.can_lose()) {
                _ if entry.action != Action::Inserted => String::new(),
                (Some(audit), _) if audit.changed() == 0 => "exact for these values".to_owned(),
                (Some(audit), _) => audit.to_string(),
                (None, Some(fidelity)) => fidelity.to_string(),
                (None, None) => String::new(),
            };
            groups.entry(&entry.layer.path).or_default().push([
                format!("{sign} {} {}", entry.layer.id, Clean(&entry.layer.name)),
                format!("{} -> {}", entry.from, entry.to),
                loss,
                Clean(&entry.reason).to_string(),
            ]);
        }
        for (path, rows) in groups {
            if !path.is_empty() {
                writeln!(f, "in {}:", Clean(path))?;
            }
            let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
            let widths = [width(0), width(1), width(2)];
            for row in &rows {
                let mut line = String::new();
                for (text, width) in row.iter().zip(widths).filter(|(_, width)| *width > 0) {
                    write!(line, "{text:width$}  ")?;
                }
                writeln!(f, "  {line}{}", row[3])?;
            }
        }
        Ok(())
    }
}
