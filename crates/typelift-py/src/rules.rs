//! Rules whose conditions and right sides are Python functions.

use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use typelift::graph::EditError;
use typelift::rewrite::{Match, New, Pattern, Replacement, Rule, Script, library};

use crate::failure::{self, Failure};
use crate::graph::{Graph, Task, Tensor, output, tensor};
use crate::model::Model;
use crate::state::State;
use crate::work::{self, Caller};

/// A rule of the Python package.
#[derive(FromPyObject)]
pub(crate) struct Spec {
    name: Option<String>,
    pattern: String,
    /// The right side in the notation.
    text: Option<String>,
    /// The function that builds the replacement.
    to: Option<Py<PyAny>>,
    /// The condition on a match.
    when: Option<Py<PyAny>>,
    once: bool,
    tried: bool,
}

/// A rule of the package, or one in the notation.
#[derive(FromPyObject)]
pub(crate) enum RuleOrText {
    Text(String),
    Rule(Spec),
}

/// Applies statements, rules and built-in rules to a model, and returns the report as JSON.
#[pyfunction]
pub(crate) fn rewrite(
    py: Python<'_>,
    model: &Bound<'_, Model>,
    statements: String,
    rules: Vec<Spec>,
    sets: Vec<String>,
) -> PyResult<String> {
    let calls_python = rules.iter().any(Spec::calls_python);
    let rewrite = move |state: &mut State, caller: &Caller| {
        let mut script: Script = statements.parse()?;
        let raised = Raised::default();
        let own = rules.into_iter().map(|spec| spec.rule(caller, &raised));
        script = script.with_rules(own.collect::<Result<Vec<_>, _>>()?);
        for name in &sets {
            let known = || library::SETS.iter().map(|set| set.name).collect::<Vec<_>>().join(", ");
            let set = library::get(name)
                .ok_or_else(|| Failure::Value(format!("no rules are called `{name}`; there are {}", known())))?;
            script = script.with_rules(set.rules()?);
        }
        let edits_interface = script.edits_interface();
        let (model, report) = raised.or(script.run(state.model.clone()).map_err(Failure::from))?;
        state.model = model;
        state.refresh_ports |= edits_interface || calls_python;
        state.inferred = typelift::infer(&mut state.model);
        failure::json(&report)
    };
    let model = model.get();
    if calls_python {
        model.edit_from(py, model.state(), rewrite)
    } else {
        model.edit_to(py, rewrite).map(|(report, _)| report)
    }
}

/// Explains why a rule matches at a layer of a model, or why it does not.
#[pyfunction]
pub(crate) fn explain_rule(
    py: Python<'_>,
    model: &Bound<'_, Model>,
    rule: RuleOrText,
    layer: Option<String>,
) -> PyResult<String> {
    let state = model.get().state();
    work::run(py, move |caller| {
        let raised = Raised::default();
        let rule = match rule {
            RuleOrText::Text(text) => text.parse()?,
            RuleOrText::Rule(spec) => spec.rule(caller, &raised)?,
        };
        let explanation = state.model.explain(&rule, layer.as_deref());
        let explanation =
            explanation.map_err(|error| Failure::find(&state.model, layer.as_deref().unwrap_or_default(), &error));
        Ok(raised.or(explanation)?.to_string())
    })
}

/// A match: the layer, tensors by name, lists of tensors, and the values of variables.
type Record = (
    (u64, String, String, String, Vec<(String, String)>),
    Vec<(String, Option<Tensor>, Option<(&'static str, String)>, Option<Vec<f64>>)>,
    Vec<(String, Vec<Tensor>)>,
    Vec<(String, String)>,
);

fn record(matched: &Match) -> Record {
    let root = &matched.root;
    let attributes = root.attributes().iter().map(|of| (of.name().to_owned(), of.value().to_owned())).collect();
    let root = (root.id().0, root.name().to_owned(), root.ty().to_owned(), root.version().to_owned(), attributes);
    let names = matched.names().map(|name| {
        let ty = matched.element_type(name).zip(matched.shape(name)).map(|(ty, shape)| (ty.name(), shape.to_string()));
        (name.to_owned(), matched.tensor(name).ok().map(tensor), ty, matched.constant(name).map(<[f64]>::to_vec))
    });
    let variables = matched.attributes().map(|(name, value)| (name.to_owned(), value.to_owned()));
    let lists = matched.lists().map(|(name, tensors)| (name.to_owned(), tensors.iter().copied().map(tensor).collect()));
    (root, names.collect(), lists.collect(), variables.collect())
}

/// The first exception of a Python function in rules. After it, no Python function is called.
#[derive(Clone, Default)]
struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    fn is_some(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn set(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    fn or<T>(&self, done: Result<T, Failure>) -> Result<T, Failure> {
        let raised = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        raised.map_or(done, |error| Err(Failure::Raised(error)))
    }
}

/// A placeholder. The caller receives the exception itself.
const RAISED: &str = "it raised an exception";

impl Spec {
    fn calls_python(&self) -> bool {
        self.to.is_some() || self.when.is_some()
    }

    /// Parses the rule to check its syntax.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match &self.text {
            Some(text) => format!("{} => {text}", self.pattern).parse::<Rule>().map(drop)?,
            None => self.pattern.parse::<Pattern>().map(drop)?,
        }
        Ok(())
    }

    fn rule(self, caller: &Caller, raised: &Raised) -> Result<Rule, Failure> {
        let mut rule = match (self.text, self.to) {
            (Some(text), _) => format!("{} => {text}", self.pattern).parse::<Rule>()?,
            (None, Some(to)) => {
                let (caller, raised, to) = (caller.clone(), raised.clone(), Arc::new(to));
                self.pattern.parse::<Pattern>()?.to(move |matched, new| replace(&caller, &raised, &to, matched, new))
            }
            (None, None) => return Err(Failure::Value("a rule has nothing to put in the place of a match".to_owned())),
        };
        if let Some(when) = self.when {
            let (caller, raised, when) = (caller.clone(), raised.clone(), Arc::new(when));
            rule = rule.when(move |matched| holds(&caller, &raised, &when, matched));
        }
        rule = if self.once { rule.once() } else { rule };
        rule = if self.tried { rule.tried() } else { rule };
        Ok(self.name.iter().fold(rule, |rule, name| rule.named(name)))
    }
}

/// Calls a Python condition. Returns true, or the reason why the condition does not hold.
fn holds(caller: &Caller, raised: &Raised, when: &Arc<Py<PyAny>>, matched: &Match) -> Result<(), String> {
    if raised.is_some() {
        return Err(RAISED.to_owned());
    }
    let (when, record) = (when.clone(), record(matched));
    let called = caller.call(move |py| {
        let reason = py.import("typelift._rules")?.getattr("holds")?.call1((when.bind(py), record))?;
        reason.extract::<Option<String>>()
    });
    match called {
        Some(Ok(None)) => Ok(()),
        Some(Ok(Some(reason))) => Err(reason),
        Some(Err(error)) => {
            raised.set(error);
            Err(RAISED.to_owned())
        }
        None => Err(RAISED.to_owned()),
    }
}

/// Lets Python build the replacement of a match, while this thread makes the edits that it requests.
fn replace(
    caller: &Caller,
    raised: &Raised,
    to: &Arc<Py<PyAny>>,
    matched: &Match,
    new: &mut New<'_, '_>,
) -> Result<Replacement, EditError> {
    let raised_one = || EditError::Other(RAISED.to_owned());
    if raised.is_some() {
        return Err(raised_one());
    }
    let (tasks, asked) = mpsc::channel();
    let (answer, answered) = mpsc::sync_channel(1);
    let (to, record) = (to.clone(), record(matched));
    caller.ask(move |py| {
        let call = || -> PyResult<Vec<Tensor>> {
            let graph = Bound::new(py, Graph::lent(tasks.clone()))?;
            py.import("typelift._rules")?.getattr("replacement")?.call1((to.bind(py), record, graph))?.extract()
        };
        let _given_up = answer.send(call());
        let _given_up = tasks.send(Task::End);
    });
    while let Ok(Task::Edit(edit)) = asked.recv() {
        edit(new);
    }
    match answered.recv() {
        Ok(Ok(tensors)) => Ok(match tensors[..] {
            [tensor] => Replacement::Tensor(output(tensor)),
            _ => Replacement::Tensors(tensors.into_iter().map(output).collect()),
        }),
        Ok(Err(error)) => {
            raised.set(error);
            Err(raised_one())
        }
        Err(_) => Err(raised_one()),
    }
}
