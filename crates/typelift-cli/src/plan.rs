//! What a conversion does to a graph: the Converts that come and go.

use std::collections::{BTreeMap, HashSet};
use std::fmt::{self, Display, Formatter, Write as _};

use serde::Serialize;
use typelift::diagnostic::LayerRef;
use typelift::passes::{Action, Change};
use typelift::promote::{Fidelity, fidelity};

use crate::listing::Clean;

/// Every Convert that is there after and was not before, or the other way round.
#[derive(Serialize)]
pub(crate) struct Plan<'a> {
    file: &'a str,
    converts: Vec<Entry>,
}

/// One Convert.
#[derive(Serialize)]
struct Entry {
    action: Action,
    layer: LayerRef,
    from: &'static str,
    to: &'static str,
    /// What values can lose; empty where every value comes out as it went in, `None` where that is not known.
    can_lose: Option<Vec<&'static str>>,
    reason: String,
    #[serde(skip)]
    fidelity: Option<Fidelity>,
}

impl<'a> Plan<'a> {
    /// From what passes did one after the other; what one put in and a later one took out is no change.
    pub(crate) fn new(file: &'a str, changes: Vec<Change>) -> Self {
        let key = |change: &Change| (change.layer.path.clone(), change.layer.id);
        let of = |action| changes.iter().filter(move |change| change.action == action).map(key).collect::<HashSet<_>>();
        let (inserted, removed) = (of(Action::Inserted), of(Action::Removed));
        let passing = |change: &Change| inserted.contains(&key(change)) && removed.contains(&key(change));
        let lasting = changes.into_iter().filter(|change| !passing(change));
        Self { file, converts: lasting.map(Entry::new).collect() }
    }

    pub(crate) fn count(&self, action: Action) -> usize {
        self.converts.iter().filter(|entry| entry.action == action).count()
    }
}

impl Entry {
    fn new(change: Change) -> Self {
        let fidelity = fidelity(change.from, change.to);
        Self {
            action: change.action,
            layer: change.layer,
            from: change.from.name(),
            to: change.to.name(),
            can_lose: fidelity.map(|fidelity| fidelity.losses().map(|loss| loss.name()).collect()),
            reason: change.reason,
            fidelity,
        }
    }
}

/// A line a Convert, grouped by the body it is in.
impl Display for Plan<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut groups = BTreeMap::<&str, Vec<[String; 4]>>::new();
        for entry in &self.converts {
            let sign = if entry.action == Action::Inserted { '+' } else { '-' };
            let loss = match entry.fidelity {
                Some(fidelity) if entry.action == Action::Inserted => fidelity.to_string(),
                _ => String::new(),
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
