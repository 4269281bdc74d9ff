//! Integer expressions over symbols, interned in a normal form.
//!
//! A sum is a polynomial: a list of monomials with coefficients, and a number. Its monomials are products of atoms:
//! symbols, floor divisions, remainders, maxima, minima and tests. Two expressions are equal if their ids are. A test
//! is 1 if it holds, else 0, and so can be part of a sum. Every operation returns `None` if the result is too large to
//! be useful or leaves `i64`; the length is then unknown.

use std::fmt::Write;

use crate::base::hash::HashMap;

/// Id of an expression in its [`Arena`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Expr(u32);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Node {
    Number(i64),
    Symbol(usize),
    /// Monomials with their coefficients, and a number.
    Sum(Box<[(Expr, i64)]>, i64),
    /// At least two atoms.
    Product(Box<[Expr]>),
    Div(Expr, Expr),
    Mod(Expr, Expr),
    Max(Box<[Expr]>),
    Min(Box<[Expr]>),
    IsZero(Expr),
    IsNonNegative(Expr),
    Not(Expr),
    Any(Box<[Expr]>),
    All(Box<[Expr]>),
}

/// Most nodes of an expression.
const MAX_SIZE: usize = 400;
/// Most monomials of a sum.
const MAX_TERMS: usize = 12;
/// Unlimited end of a range.
const OPEN: i64 = i64::MAX;

#[derive(Clone, Debug)]
struct SizedNode {
    node: Node,
    size: usize,
    /// Smallest and largest value, if every symbol is at least 1.
    range: (i64, i64),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Arena {
    entries: Vec<SizedNode>,
    ids: HashMap<Node, Expr>,
    /// Tests of equality that are known. Most pairs of lengths recur in each block.
    equal: HashMap<(Expr, Expr), Option<Expr>>,
}

type Terms = Vec<(Expr, i64)>;
pub(super) type Names<'a> = &'a dyn Fn(usize) -> &'a str;

impl Arena {
    pub(super) fn node(&self, expr: Expr) -> &Node {
        &self.entries[expr.0 as usize].node
    }

    pub(super) fn range(&self, expr: Expr) -> (i64, i64) {
        self.entries[expr.0 as usize].range
    }

    pub(super) fn size(&self, expr: Expr) -> usize {
        self.entries[expr.0 as usize].size
    }

    fn intern(&mut self, node: Node) -> Option<Expr> {
        if let Some(&known) = self.ids.get(&node) {
            return Some(known);
        }
        let size = 1 + children(&node).map(|child| self.size(child)).sum::<usize>();
        if size > MAX_SIZE {
            return None;
        }
        let range = self.range_of(&node, (1, OPEN), &|part| self.range(part));
        let expr = Expr(u32::try_from(self.entries.len()).ok()?);
        self.entries.push(SizedNode { node: node.clone(), size, range });
        self.ids.insert(node, expr);
        Some(expr)
    }

    /// The smallest and largest value of a node, from those of a symbol and of its parts.
    fn range_of(&self, node: &Node, symbol: (i64, i64), of: &dyn Fn(Expr) -> (i64, i64)) -> (i64, i64) {
        let over = |list: &[Expr], by: fn(i64, i64) -> i64| {
            list.iter().map(|&it| of(it)).reduce(|a, b| (by(a.0, b.0), by(a.1, b.1))).unwrap_or((0, 0))
        };
        match node {
            Node::Number(number) => (*number, *number),
            Node::Symbol(_) => symbol,
            Node::Sum(terms, number) => terms.iter().fold((*number, *number), |sum, &(term, factor)| {
                let (low, high) = scaled(of(term), factor);
                (added(sum.0, low), added(sum.1, high))
            }),
            Node::Product(factors) => factors.iter().fold((1, 1), |product, &factor| times(product, of(factor))),
            Node::Div(data, by) => {
                let ((low, high), (least, most)) = (of(*data), of(*by));
                let by_low = if low >= 0 { most } else { least };
                (divided(low, by_low), divided(high, least))
            }
            Node::Mod(data, by) => match (of(*data), of(*by)) {
                ((low, high), (by, most))
                    if by == most && by > 0 && high != OPEN && low.div_euclid(by) == high.div_euclid(by) =>
                {
                    (low.rem_euclid(by), high.rem_euclid(by))
                }
                (_, (_, most)) => (0, most.saturating_sub(1)),
            },
            Node::Max(list) | Node::Any(list) => over(list, i64::max),
            Node::Min(list) | Node::All(list) => over(list, i64::min),
            Node::IsZero(it) => {
                let (low, high) = of(*it);
                (i64::from((low, high) == (0, 0)), i64::from(low <= 0 && high >= 0))
            }
            Node::IsNonNegative(it) => {
                let (low, high) = of(*it);
                (i64::from(low >= 0), i64::from(high >= 0))
            }
            Node::Not(it) => {
                let (low, high) = of(*it);
                (1 - high, 1 - low)
            }
        }
    }

    /// The smallest and largest value of an expression, if every symbol is in a range.
    pub(super) fn range_in(&self, expr: Expr, symbol: (i64, i64)) -> (i64, i64) {
        self.range_of(self.node(expr), symbol, &|part| self.range_in(part, symbol))
    }

    pub(super) fn number(&mut self, number: i64) -> Expr {
        // A number has the size 1, so it is always interned.
        self.intern(Node::Number(number)).unwrap_or(Expr(0))
    }

    pub(super) fn symbol(&mut self, symbol: usize) -> Expr {
        self.intern(Node::Symbol(symbol)).unwrap_or(Expr(0))
    }

    pub(super) fn value(&self, expr: Expr) -> Option<i64> {
        if let Node::Number(number) = self.node(expr) { Some(*number) } else { None }
    }

    fn terms(&self, expr: Expr) -> (Terms, i64) {
        match self.node(expr) {
            Node::Number(number) => (Vec::new(), *number),
            Node::Sum(terms, number) => (terms.to_vec(), *number),
            _ => (vec![(expr, 1)], 0),
        }
    }

    fn sum(&mut self, mut terms: Terms, number: i64) -> Option<Expr> {
        terms.sort_unstable_by_key(|&(term, _)| term);
        let mut joined: Terms = Vec::with_capacity(terms.len());
        for (term, factor) in terms {
            match joined.last_mut() {
                Some((last, sum)) if *last == term => *sum = sum.checked_add(factor)?,
                _ => joined.push((term, factor)),
            }
        }
        joined.retain(|&(_, factor)| factor != 0);
        match joined[..] {
            [] => Some(self.number(number)),
            [(term, 1)] if number == 0 => Some(term),
            _ if joined.len() > MAX_TERMS => None,
            _ => self.intern(Node::Sum(joined.into(), number)),
        }
    }

    pub(super) fn add(&mut self, a: Expr, b: Expr) -> Option<Expr> {
        let ((mut terms, number), (more, other)) = (self.terms(a), self.terms(b));
        terms.extend(more);
        self.sum(terms, number.checked_add(other)?)
    }

    pub(super) fn plus(&mut self, a: Expr, number: i64) -> Option<Expr> {
        let number = self.number(number);
        self.add(a, number)
    }

    pub(super) fn sub(&mut self, a: Expr, b: Expr) -> Option<Expr> {
        let b = self.scale(b, -1)?;
        self.add(a, b)
    }

    pub(super) fn scale(&mut self, a: Expr, by: i64) -> Option<Expr> {
        let (terms, number) = self.terms(a);
        let terms = terms.into_iter().map(|(term, factor)| Some((term, factor.checked_mul(by)?)));
        let terms = terms.collect::<Option<_>>()?;
        self.sum(terms, number.checked_mul(by)?)
    }

    fn atoms(&self, monomial: Expr) -> Vec<Expr> {
        match self.node(monomial) {
            Node::Product(atoms) => atoms.to_vec(),
            _ => vec![monomial],
        }
    }

    fn monomial(&mut self, mut atoms: Vec<Expr>) -> Option<Expr> {
        atoms.sort_unstable();
        match atoms[..] {
            [] => Some(self.number(1)),
            [atom] => Some(atom),
            _ => self.intern(Node::Product(atoms.into())),
        }
    }

    pub(super) fn mul(&mut self, a: Expr, b: Expr) -> Option<Expr> {
        if let Some(number) = self.value(a) {
            return self.scale(b, number);
        }
        if let Some(number) = self.value(b) {
            return self.scale(a, number);
        }
        let ((left, left_number), (right, right_number)) = (self.terms(a), self.terms(b));
        let mut terms = Terms::new();
        for &(term, factor) in &left {
            for &(other, by) in &right {
                let atoms = [self.atoms(term), self.atoms(other)].concat();
                terms.push((self.monomial(atoms)?, factor.checked_mul(by)?));
            }
            terms.push((term, factor.checked_mul(right_number)?));
        }
        for (term, factor) in right {
            terms.push((term, factor.checked_mul(left_number)?));
        }
        self.sum(terms, left_number.checked_mul(right_number)?)
    }

    pub(super) fn product(&mut self, factors: impl IntoIterator<Item = Expr>) -> Option<Expr> {
        let one = self.number(1);
        factors.into_iter().try_fold(one, |product, factor| self.mul(product, factor))
    }

    /// The polynomial of monomials as lists of atoms, the largest monomial first, in graded order.
    fn polynomial(&self, expr: Expr) -> Vec<(Vec<Expr>, i64)> {
        let (terms, number) = self.terms(expr);
        let mut list: Vec<_> = terms.into_iter().map(|(term, factor)| (self.atoms(term), factor)).collect();
        list.iter_mut().for_each(|(atoms, _)| atoms.sort_unstable_by(|a, b| b.cmp(a)));
        list.extend((number != 0).then(|| (Vec::new(), number)));
        list.sort_unstable_by(|(a, _), (b, _)| (b.len(), b).cmp(&(a.len(), a)));
        list
    }

    pub(super) fn exact_quotient(&mut self, a: Expr, b: Expr) -> Option<Expr> {
        let divisor = self.polynomial(b);
        let (lead, factor) = divisor.first()?.clone();
        let (mut rest, mut quotient) = (a, self.number(0));
        for _ in 0..MAX_TERMS {
            let polynomial = self.polynomial(rest);
            let Some((top, over)) = polynomial.first() else { return Some(quotient) };
            let mut left = top.clone();
            for atom in &lead {
                left.swap_remove(left.iter().position(|it| it == atom)?);
            }
            if over % factor != 0 {
                return None;
            }
            let monomial = self.monomial(left)?;
            let part = self.scale(monomial, over / factor)?;
            quotient = self.add(quotient, part)?;
            let taken = self.mul(part, b)?;
            rest = self.sub(rest, taken)?;
        }
        None
    }

    pub(super) fn div(&mut self, a: Expr, b: Expr) -> Option<Expr> {
        if self.range(b).0 < 1 {
            return None;
        }
        if let Some(quotient) = self.exact_quotient(a, b) {
            return Some(quotient);
        }
        let Some(by) = self.value(b) else { return self.intern(Node::Div(a, b)) };
        let (terms, number) = self.terms(a);
        let mut common = terms.iter().fold(by, |common, &(_, factor)| gcd(common, factor));
        if common == 0 {
            common = 1;
        }
        let whole = terms.iter().filter(|(_, factor)| factor % by == 0).map(|&(term, factor)| (term, factor / by));
        let whole: Terms = whole.collect();
        let part = terms.iter().filter(|(_, factor)| factor % by != 0).map(|&(term, factor)| (term, factor / common));
        let part: Terms = part.collect();
        let (by, number) = (by / common, number.div_euclid(common));
        let whole = self.sum(whole, number.div_euclid(by))?;
        let part = self.sum(part, number.rem_euclid(by))?;
        let part = match (self.value(part), self.node(part).clone()) {
            (Some(number), _) => self.number(number.div_euclid(by)),
            (None, Node::Div(data, inner)) if self.value(inner).is_some() => {
                let by = self.number(by);
                let by = self.mul(inner, by)?;
                self.div(data, by)?
            }
            (None, _) => {
                let (low, high) = self.range(part);
                if low.div_euclid(by) == high.div_euclid(by) && high != OPEN {
                    self.number(low.div_euclid(by))
                } else {
                    let by = self.number(by);
                    self.intern(Node::Div(part, by))?
                }
            }
        };
        self.add(whole, part)
    }

    pub(super) fn div_up(&mut self, a: Expr, b: Expr) -> Option<Expr> {
        let over = self.add(a, b)?;
        let over = self.plus(over, -1)?;
        self.div(over, b)
    }

    pub(super) fn remainder(&mut self, a: Expr, b: Expr) -> Option<Expr> {
        if self.range(b).0 < 1 {
            return None;
        }
        if self.exact_quotient(a, b).is_some() {
            return Some(self.number(0));
        }
        let Some(by) = self.value(b) else { return self.intern(Node::Mod(a, b)) };
        let (terms, number) = self.terms(a);
        let terms: Terms = terms.into_iter().map(|(term, factor)| (term, factor.rem_euclid(by))).collect();
        let number = number.rem_euclid(by);
        let common = terms.iter().fold(gcd(by, number), |common, &(_, factor)| gcd(common, factor));
        let terms = terms.into_iter().map(|(term, factor)| (term, factor / common)).collect();
        let data = self.sum(terms, number / common)?;
        let (low, high) = self.range(data);
        let by = by / common;
        let rest = if low >= 0 && high < by {
            data
        } else {
            let by = self.number(by);
            self.intern(Node::Mod(data, by))?
        };
        self.scale(rest, common)
    }

    pub(super) fn max(&mut self, a: Expr, b: Expr) -> Option<Expr> {
        self.extreme(a, b, true)
    }

    pub(super) fn min(&mut self, a: Expr, b: Expr) -> Option<Expr> {
        self.extreme(a, b, false)
    }

    fn extreme(&mut self, a: Expr, b: Expr, is_max: bool) -> Option<Expr> {
        let [mut kept, added] = [a, b].map(|expr| match self.node(expr) {
            Node::Max(list) if is_max => list.to_vec(),
            Node::Min(list) if !is_max => list.to_vec(),
            _ => vec![expr],
        });
        for next in added {
            let mut is_beaten = false;
            let mut others = Vec::new();
            for other in kept {
                let (low, high) = self.order(next, other)?;
                let (wins, loses) = if is_max { (low >= 0, high <= 0) } else { (high <= 0, low >= 0) };
                is_beaten |= loses;
                others.extend((!wins || loses).then_some(other));
            }
            kept = others;
            kept.extend((!is_beaten).then_some(next));
        }
        kept.sort_unstable();
        match kept[..] {
            [one] => Some(one),
            _ => self.intern(if is_max { Node::Max(kept.into()) } else { Node::Min(kept.into()) }),
        }
    }

    fn order(&mut self, a: Expr, b: Expr) -> Option<(i64, i64)> {
        match (self.node(a), self.node(b)) {
            (Node::Symbol(_), Node::Symbol(_)) if a != b => Some((i64::MIN, OPEN)),
            (Node::Max(members), _) if members.contains(&b) => Some((0, OPEN)),
            (_, Node::Min(members)) if members.contains(&a) => Some((0, OPEN)),
            (Node::Min(members), _) if members.contains(&b) => Some((i64::MIN, 0)),
            (_, Node::Max(members)) if members.contains(&a) => Some((i64::MIN, 0)),
            _ => {
                let difference = self.sub(a, b)?;
                Some(self.range(difference))
            }
        }
    }

    pub(super) fn equal(&mut self, a: Expr, b: Expr) -> Option<Expr> {
        if let Some(known) = self.equal.get(&(a, b)) {
            return *known;
        }
        let test = self.test_equal(a, b);
        self.equal.insert((a, b), test);
        test
    }

    fn test_equal(&mut self, a: Expr, b: Expr) -> Option<Expr> {
        // A length is the largest of some if it is at least each other one.
        for (one, list) in [(a, b), (b, a)] {
            if let Node::Max(members) = self.node(list)
                && members.contains(&one)
            {
                let others: Vec<Expr> = members.iter().copied().filter(|&member| member != one).collect();
                let tests = others.into_iter().map(|other| self.at_least(one, other)).collect::<Option<Vec<_>>>()?;
                return self.all(&tests);
            }
        }
        let difference = self.sub(a, b)?;
        let (mut terms, mut number) = self.terms(difference);
        let common = terms.iter().fold(0, |common, &(_, factor)| gcd(common, factor));
        if common == 0 || number % common != 0 {
            return Some(self.number(i64::from(common == 0 && number == 0)));
        }
        // A factor that all monomials share cancels if it is never 0.
        if number == 0 && terms.len() > 1 {
            let mut shared = self.atoms(terms[0].0);
            for &(term, _) in &terms[1..] {
                let mut left = self.atoms(term);
                shared.retain(|atom| left.iter().position(|it| it == atom).map(|at| left.swap_remove(at)).is_some());
            }
            shared.retain(|&atom| self.range(atom).0 > 0);
            if !shared.is_empty() {
                let mut reduced = Terms::new();
                for (term, factor) in terms {
                    let mut atoms = self.atoms(term);
                    for atom in &shared {
                        if let Some(at) = atoms.iter().position(|it| it == atom) {
                            atoms.swap_remove(at);
                        }
                    }
                    if atoms.is_empty() {
                        number = number.checked_add(factor)?;
                    } else {
                        reduced.push((self.monomial(atoms)?, factor));
                    }
                }
                terms = reduced;
            }
        }
        let sign = if terms.first().is_some_and(|&(_, factor)| factor < 0) { -common } else { common };
        let terms = terms.into_iter().map(|(term, factor)| (term, factor / sign)).collect();
        let difference = self.sum(terms, number / sign)?;
        let (low, high) = self.range(difference);
        if low > 0 || high < 0 {
            return Some(self.number(0));
        }
        self.intern(Node::IsZero(difference))
    }

    pub(super) fn at_least(&mut self, a: Expr, b: Expr) -> Option<Expr> {
        let difference = self.sub(a, b)?;
        let (terms, number) = self.terms(difference);
        let common = terms.iter().fold(0, |common, &(_, factor)| gcd(common, factor)).max(1);
        let terms = terms.into_iter().map(|(term, factor)| (term, factor / common)).collect();
        let difference = self.sum(terms, number.div_euclid(common))?;
        match self.range(difference) {
            (0.., _) => Some(self.number(1)),
            (_, ..0) => Some(self.number(0)),
            _ => self.intern(Node::IsNonNegative(difference)),
        }
    }

    pub(super) fn divides(&mut self, a: Expr, b: Expr) -> Option<Expr> {
        let (rest, zero) = (self.remainder(a, b)?, self.number(0));
        self.equal(rest, zero)
    }

    pub(super) fn not(&mut self, test: Expr) -> Option<Expr> {
        match *self.node(test) {
            Node::Number(number) => Some(self.number(i64::from(number == 0))),
            Node::Not(test) => Some(test),
            _ => self.intern(Node::Not(test)),
        }
    }

    pub(super) fn any(&mut self, tests: &[Expr]) -> Option<Expr> {
        self.joined(tests, true)
    }

    pub(super) fn all(&mut self, tests: &[Expr]) -> Option<Expr> {
        self.joined(tests, false)
    }

    fn joined(&mut self, tests: &[Expr], is_any: bool) -> Option<Expr> {
        let mut list: Vec<Expr> = Vec::new();
        for test in tests {
            let parts = match self.node(*test) {
                Node::Number(number) if (*number != 0) == is_any => return Some(self.number(i64::from(is_any))),
                Node::Number(_) => &[],
                Node::Any(more) if is_any => &more[..],
                Node::All(more) if !is_any => &more[..],
                _ => std::slice::from_ref(test),
            };
            for part in parts {
                if !list.contains(part) {
                    list.push(*part);
                }
            }
        }
        match list[..] {
            [] => Some(self.number(i64::from(!is_any))),
            [test] => Some(test),
            _ => self.intern(if is_any { Node::Any(list.into()) } else { Node::All(list.into()) }),
        }
    }

    pub(super) fn choose(&mut self, test: Expr, a: Expr, b: Expr) -> Option<Expr> {
        let difference = self.sub(a, b)?;
        let chosen = self.mul(test, difference)?;
        self.add(b, chosen)
    }

    pub(super) fn broadcast(&mut self, a: Expr, b: Expr) -> Option<Expr> {
        match (self.value(a), self.value(b)) {
            _ if a == b => Some(a),
            (Some(1), _) => Some(b),
            (_, Some(1)) => Some(a),
            (Some(_), _) => Some(a),
            (_, Some(_)) => Some(b),
            // A length of 0 wins against 1.
            _ if self.range(a).0 > 0 && self.range(b).0 > 0 => self.max(a, b),
            _ => {
                let one = self.number(1);
                let is_one = self.equal(a, one)?;
                self.choose(is_one, b, a)
            }
        }
    }

    pub(super) fn broadcasts(&mut self, a: Expr, b: Expr) -> Option<Expr> {
        let one = self.number(1);
        if a == b || a == one || b == one {
            return Some(one);
        }
        let tests = [self.equal(a, b)?, self.equal(a, one)?, self.equal(b, one)?];
        self.any(&tests)
    }

    pub(super) fn evaluate(&self, expr: Expr, lengths: &[i64]) -> Option<i64> {
        let of = |expr: Expr| self.evaluate(expr, lengths);
        // A test that is not known is between one that does not hold and one that does.
        const TRUTHS: [Option<i64>; 3] = [Some(0), None, Some(1)];
        let truth = |it: &Expr| of(*it).map_or(1, |value| if value == 0 { 0 } else { 2 });
        match self.node(expr) {
            Node::Number(number) => Some(*number),
            Node::Symbol(symbol) => lengths.get(*symbol).copied(),
            Node::Sum(terms, number) => {
                terms.iter().try_fold(*number, |sum, &(term, factor)| sum.checked_add(of(term)?.checked_mul(factor)?))
            }
            Node::Product(factors) => factors.iter().try_fold(1_i64, |product, &it| product.checked_mul(of(it)?)),
            Node::Div(a, b) => floor_div(of(*a)?, of(*b)?),
            Node::Mod(a, b) => {
                let (a, b) = (of(*a)?, of(*b)?);
                Some(a - floor_div(a, b)?.checked_mul(b)?)
            }
            Node::Max(list) => list.iter().map(|&it| of(it)).collect::<Option<Vec<_>>>()?.into_iter().max(),
            Node::Min(list) => list.iter().map(|&it| of(it)).collect::<Option<Vec<_>>>()?.into_iter().min(),
            Node::IsZero(it) | Node::Not(it) => Some(i64::from(of(*it)? == 0)),
            Node::IsNonNegative(it) => Some(i64::from(of(*it)? >= 0)),
            Node::Any(list) => TRUTHS[list.iter().map(truth).max()?],
            Node::All(list) => TRUTHS[list.iter().map(truth).min()?],
        }
    }

    pub(super) fn symbol_of(&self, expr: Expr) -> Option<usize> {
        if let Node::Symbol(symbol) = self.node(expr) { Some(*symbol) } else { None }
    }

    pub(super) fn tied_symbols(&self, test: Expr) -> Option<(usize, usize)> {
        let Node::IsZero(difference) = self.node(test) else { return None };
        match self.node(*difference) {
            Node::Sum(terms, 0) => match terms[..] {
                [(a, 1), (b, -1)] | [(a, -1), (b, 1)] => Some((self.symbol_of(a)?, self.symbol_of(b)?)),
                _ => None,
            },
            _ => None,
        }
    }

    /// True if two tests demand different values of one sum.
    pub(super) fn contradict(&self, one: Expr, other: Expr) -> bool {
        let sum = |test: Expr| match self.node(test) {
            Node::IsZero(difference) => Some(self.terms(*difference)),
            _ => None,
        };
        matches!((sum(one), sum(other)), (Some((a, x)), Some((b, y))) if a == b && x != y)
    }

    /// The symbols of two lengths that broadcast, if that is what a test demands.
    pub(super) fn broadcast_symbols(&self, test: Expr) -> Option<Vec<usize>> {
        let Node::Any(tests) = self.node(test) else { return None };
        tests.iter().find_map(|&test| {
            let (Node::IsZero(difference) | Node::IsNonNegative(difference)) = self.node(test) else { return None };
            let Node::Sum(terms, 0) = self.node(*difference) else { return None };
            let ([(a, 1), (b, -1)] | [(a, -1), (b, 1)]) = terms[..] else { return None };
            let mut symbols = Vec::new();
            for side in [a, b] {
                match self.node(side) {
                    Node::Symbol(symbol) => symbols.push(*symbol),
                    Node::Max(list) => symbols.extend(list.iter().filter_map(|&it| self.symbol_of(it))),
                    _ => return None,
                }
            }
            Some(symbols)
        })
    }

    pub(super) fn symbols(&self, expr: Expr) -> Vec<usize> {
        let (mut found, mut pending) = (Vec::new(), vec![expr]);
        while let Some(next) = pending.pop() {
            match self.node(next) {
                Node::Symbol(symbol) if !found.contains(symbol) => found.push(*symbol),
                node => pending.extend(children(node).rev()),
            }
        }
        found
    }

    /// Replaces symbols: symbol `n` becomes `symbols[n]`.
    pub(super) fn replaced(
        &mut self,
        expr: Expr,
        symbols: &[Expr],
        known: &mut HashMap<Expr, Option<Expr>>,
    ) -> Option<Expr> {
        if let Some(&known) = known.get(&expr) {
            return known;
        }
        let new = self.replace_children(expr, symbols, known);
        known.insert(expr, new);
        new
    }

    fn replace_children(
        &mut self,
        expr: Expr,
        symbols: &[Expr],
        known: &mut HashMap<Expr, Option<Expr>>,
    ) -> Option<Expr> {
        let node = self.node(expr).clone();
        let mut new = children(&node).map(|child| self.replaced(child, symbols, known)).collect::<Option<Vec<_>>>()?;
        if children(&node).eq(new.iter().copied()) && !matches!(node, Node::Symbol(_)) {
            return Some(expr);
        }
        let zero = self.number(0);
        match node {
            Node::Number(_) => Some(expr),
            Node::Symbol(symbol) => symbols.get(symbol).copied(),
            Node::Sum(terms, number) => {
                let number = self.number(number);
                terms.iter().zip(new).try_fold(number, |sum, (&(_, factor), term)| {
                    let term = self.scale(term, factor)?;
                    self.add(sum, term)
                })
            }
            Node::Product(_) => self.product(new),
            Node::Div(..) => self.div(new[0], new[1]),
            Node::Mod(..) => self.remainder(new[0], new[1]),
            Node::Max(_) | Node::Min(_) => {
                let (first, is_max) = (new.pop()?, matches!(node, Node::Max(_)));
                new.into_iter().try_fold(first, |found, next| self.extreme(found, next, is_max))
            }
            Node::IsZero(_) => self.equal(new[0], zero),
            Node::IsNonNegative(_) => self.at_least(new[0], zero),
            Node::Not(_) => self.not(new[0]),
            Node::Any(_) => self.any(&new),
            Node::All(_) => self.all(&new),
        }
    }

    /// Writes an expression as Python. `names` are those of the symbols.
    pub(super) fn text(&self, expr: Expr, names: Names<'_>) -> String {
        let mut text = String::new();
        self.write(expr, names, Level::Or, &mut text);
        text
    }

    pub(super) fn write(&self, expr: Expr, names: Names<'_>, around: Level, text: &mut String) {
        let level = self.level(expr);
        if level < around {
            text.push('(');
        }
        match self.node(expr) {
            Node::Number(number) => drop(write!(text, "{number}")),
            Node::Symbol(symbol) => text.push_str(names(*symbol)),
            Node::Sum(terms, number) => {
                let parts: Vec<_> = terms.iter().map(|&(term, factor)| (Some(term), factor)).collect();
                self.write_sum(&parts, *number, names, text);
            }
            Node::Product(factors) => self.write_list(factors, " * ", names, Level::Power, text),
            Node::Div(a, b) => self.write_list(&[*a, *b], " // ", names, Level::Power, text),
            Node::Mod(a, b) => self.write_list(&[*a, *b], " % ", names, Level::Power, text),
            Node::Max(list) | Node::Min(list) => {
                text.push_str(if matches!(self.node(expr), Node::Max(_)) { "max(" } else { "min(" });
                self.write_list(list, ", ", names, Level::Or, text);
                text.push(')');
            }
            Node::IsZero(it) => self.write_test(*it, " == ", names, text),
            Node::IsNonNegative(it) => self.write_test(*it, " >= ", names, text),
            Node::Not(it) => {
                text.push_str("not ");
                self.write(*it, names, Level::Power, text);
            }
            Node::Any(list) => self.write_list(list, " or ", names, Level::And, text),
            Node::All(list) => self.write_list(list, " and ", names, Level::Not, text),
        }
        if level < around {
            text.push(')');
        }
    }

    fn write_list(&self, list: &[Expr], between: &str, names: Names<'_>, around: Level, text: &mut String) {
        for (at, &it) in list.iter().enumerate() {
            if at > 0 {
                text.push_str(between);
            }
            self.write(it, names, around, text);
        }
    }

    /// Writes a sum, monomials with a positive coefficient first.
    fn write_sum(&self, parts: &[(Option<Expr>, i64)], number: i64, names: Names<'_>, text: &mut String) {
        let positive = parts.iter().filter(|(_, factor)| *factor > 0).copied();
        let negative = parts.iter().filter(|(_, factor)| *factor < 0).copied();
        let number = (number != 0).then_some((None, number));
        let before = number.filter(|_| parts.iter().all(|(_, factor)| *factor < 0));
        let after = if before.is_some() { None } else { number };
        for (at, (term, factor)) in before.into_iter().chain(positive).chain(negative).chain(after).enumerate() {
            text.push_str(match (at, factor < 0) {
                (0, true) => "-",
                (0, false) => "",
                (_, true) => " - ",
                (_, false) => " + ",
            });
            match (term, factor.unsigned_abs()) {
                (None, number) => drop(write!(text, "{number}")),
                // A leading minus binds more strongly than a division.
                (Some(term), 1) if at == 0 && factor < 0 => self.write(term, names, Level::Power, text),
                (Some(term), 1) => self.write(term, names, Level::Term, text),
                (Some(term), factor) => {
                    let _ = write!(text, "{factor} * ");
                    let level = if matches!(self.node(term), Node::Product(_)) { Level::Term } else { Level::Power };
                    self.write(term, names, level, text);
                }
            }
        }
        if text.is_empty() {
            text.push('0');
        }
    }

    /// Writes a comparison with 0: what is added on the left, what is subtracted on the right.
    fn write_test(&self, difference: Expr, relation: &str, names: Names<'_>, text: &mut String) {
        let (terms, number) = self.terms(difference);
        let (left, right): (Terms, Terms) = terms.into_iter().partition(|&(_, factor)| factor > 0);
        let (mut left, mut right): (Vec<_>, Vec<_>) = (
            left.into_iter().map(|(term, factor)| (Some(term), factor)).collect(),
            right.into_iter().map(|(term, factor)| (Some(term), -factor)).collect(),
        );
        let (mut left_number, mut right_number) = if number > 0 { (number, 0) } else { (0, -number) };
        let relation = if left.is_empty() {
            std::mem::swap(&mut left, &mut right);
            std::mem::swap(&mut left_number, &mut right_number);
            if relation == " >= " { " <= " } else { relation }
        } else {
            relation
        };
        self.write_side(&left, left_number, names, text);
        text.push_str(relation);
        self.write_side(&right, right_number, names, text);
    }

    fn write_side(&self, parts: &[(Option<Expr>, i64)], number: i64, names: Names<'_>, text: &mut String) {
        let mut side = String::new();
        self.write_sum(parts, number, names, &mut side);
        text.push_str(&side);
    }

    fn level(&self, expr: Expr) -> Level {
        match self.node(expr) {
            Node::Number(0..) | Node::Symbol(_) | Node::Max(_) | Node::Min(_) => Level::Atom,
            Node::Sum(..) | Node::Number(_) => Level::Sum,
            Node::Product(_) | Node::Div(..) | Node::Mod(..) => Level::Term,
            Node::IsZero(_) | Node::IsNonNegative(_) => Level::Test,
            Node::Not(_) => Level::Not,
            Node::Any(_) => Level::Or,
            Node::All(_) => Level::And,
        }
    }
}

/// How strongly an expression binds, in Python's order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Or,
    And,
    Not,
    Test,
    Sum,
    Term,
    Power,
    Atom,
}

fn children(node: &Node) -> impl DoubleEndedIterator<Item = Expr> + '_ {
    type Parts<'a> = (&'a [(Expr, i64)], &'a [Expr], [Option<Expr>; 2]);
    let (terms, list, pair): Parts<'_> = match node {
        Node::Number(_) | Node::Symbol(_) => (&[], &[], [None; 2]),
        Node::Sum(terms, _) => (terms, &[], [None; 2]),
        Node::Product(list) | Node::Max(list) | Node::Min(list) | Node::Any(list) | Node::All(list) => {
            (&[], list, [None; 2])
        }
        Node::Div(a, b) | Node::Mod(a, b) => (&[], &[], [Some(*a), Some(*b)]),
        Node::IsZero(it) | Node::IsNonNegative(it) | Node::Not(it) => (&[], &[], [Some(*it), None]),
    };
    terms.iter().map(|&(term, _)| term).chain(list.iter().copied()).chain(pair.into_iter().flatten())
}

pub(super) fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.wrapping_abs() } else { gcd(b, a % b) }
}

fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

/// Adds ends of ranges; an unlimited one stays unlimited.
fn added(a: i64, b: i64) -> i64 {
    match (a, b) {
        (OPEN | i64::MIN, _) => a,
        (_, OPEN | i64::MIN) => b,
        _ => a.saturating_add(b),
    }
}

fn multiplied(a: i64, b: i64) -> i64 {
    match (a, b) {
        (0, _) | (_, 0) => 0,
        (OPEN | i64::MIN, _) | (_, OPEN | i64::MIN) if (a < 0) == (b < 0) => OPEN,
        (OPEN | i64::MIN, _) | (_, OPEN | i64::MIN) => i64::MIN,
        _ => a.saturating_mul(b),
    }
}

fn scaled(range: (i64, i64), by: i64) -> (i64, i64) {
    let (low, high) = (multiplied(range.0, by), multiplied(range.1, by));
    if by < 0 { (high, low) } else { (low, high) }
}

fn times(a: (i64, i64), b: (i64, i64)) -> (i64, i64) {
    let ends = [multiplied(a.0, b.0), multiplied(a.0, b.1), multiplied(a.1, b.0), multiplied(a.1, b.1)];
    (ends.into_iter().min().unwrap_or(i64::MIN), ends.into_iter().max().unwrap_or(OPEN))
}

fn divided(a: i64, b: i64) -> i64 {
    match (a, b) {
        (OPEN | i64::MIN, _) => a,
        (0.., OPEN) => 0,
        _ => floor_div(a, b).unwrap_or(a),
    }
}
