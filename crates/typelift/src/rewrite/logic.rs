//! Combination of conditions with `&&`, `||` and `!`, and the sections of names that they capture.

use super::bound::Bound;
use super::evaluate::{Evaluator, Lack};
use super::term::{Function, TermKind};
use crate::base::name_pattern::NamePattern;

/// Values that conditions give to variables.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Numbers, by the positions of their names.
    pub(super) numbers: Vec<(usize, f64)>,
    /// Sections of names, by the positions of their variables.
    pub(super) texts: Vec<(usize, String)>,
}

impl Evaluator<'_> {
    /// Evaluates a condition, and returns the values of its variables if it is true.
    ///
    /// # Errors
    /// [`Lack::False`] if it does not hold, [`Lack::Reason`] if that is not known, and [`Lack::Absent`] if it concerns a
    /// name that the match lacks.
    pub(super) fn decide(&self, term: usize) -> Result<Findings, Lack> {
        match &self.side.terms[term].kind {
            TermKind::Compute(Function::And, of) => self.all_hold(of),
            TermKind::Compute(Function::Or, of) => self.any_holds(of),
            TermKind::Compute(Function::Not, of) => match self.decide(of[0]) {
                Ok(_) => Err(Lack::False("what must not hold does".to_owned())),
                Err(Lack::False(_)) => Ok(Findings::default()),
                Err(lack) => Err(lack),
            },
            TermKind::NameLike(of, pattern) => match self.parts_of_name(*of, pattern)? {
                Some(texts) => Ok(Findings { texts, ..Findings::default() }),
                None => Err(Lack::False(format!("it is `{}`", self.layer_name(*of)?))),
            },
            _ => Ok(Findings { numbers: self.holds(term)?, ..Findings::default() }),
        }
    }

    /// Decides alternatives in their order.
    fn any_holds(&self, of: &[usize]) -> Result<Findings, Lack> {
        let (mut reasons, mut is_known) = (Vec::new(), true);
        for &term in of {
            match self.decide(term) {
                Err(Lack::False(reason)) => reasons.push(reason),
                Err(Lack::Reason(reason)) => {
                    reasons.push(reason);
                    is_known = false;
                }
                done => return done,
            }
        }
        let reason = format!("no alternative holds: {}", reasons.join("; "));
        Err(if is_known { Lack::False(reason) } else { Lack::Reason(reason) })
    }

    /// Decides conditions of which each uses what those before it found.
    fn all_hold(&self, of: &[usize]) -> Result<Findings, Lack> {
        let Some((&first, rest)) = of.split_first() else { return Ok(Findings::default()) };
        let mut found = match self.decide(first) {
            Err(Lack::Absent) => Findings::default(),
            // A later condition that is false decides.
            Err(Lack::Reason(reason)) => {
                return Err(match self.all_hold(rest) {
                    Err(Lack::False(reason)) => Lack::False(reason),
                    _ => Lack::Reason(reason),
                });
            }
            found => found?,
        };
        let (mut names, mut variables) = (self.names_bound.to_vec(), self.variables.to_vec());
        found.numbers.iter().for_each(|&(name, number)| names[name] = Some(Bound::Number(number)));
        found.texts.iter().for_each(|(variable, text)| variables[*variable] = Some(text.as_str().into()));
        let more = self.with(&names, &variables).all_hold(rest)?;
        found.numbers.extend(more.numbers);
        found.texts.extend(more.texts);
        Ok(found)
    }

    /// `None` if the name does not match.
    pub(super) fn parts_of_name(&self, of: usize, pattern: &NamePattern) -> Result<Option<Vec<(usize, String)>>, Lack> {
        let name = self.layer_name(of)?;
        let variable = |part: &str| self.variable_names.iter().position(|known| known == part);
        let parts = pattern.named(name, &|part| self.variables[variable(part)?].as_deref().map(str::to_owned));
        Ok(parts.map(|parts| parts.into_iter().filter_map(|(part, text)| Some((variable(part)?, text))).collect()))
    }
}
