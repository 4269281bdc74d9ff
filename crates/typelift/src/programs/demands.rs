//! Checks of a model against single rules.

use typelift_promote::ElementType;

use super::facts::{Facts, Port};
use super::faults::{Fault, KNOWN, is_cache, is_other_type, shown};
use super::rules::{Demand, Form, Rule};
use crate::edit::inputs_outputs::End;
use crate::findings::{SubjectKind, Text, message};
use crate::model::graph::LayerId;
use crate::model::shape::{Dim, Shape};
use crate::rewrite::notation::Quoted;

/// The faults of a model under a rule. Inputs and outputs that an earlier fault explains are left out.
pub(super) fn of(rule: &Rule, loader: &str, facts: &Facts, explained: &[LayerId]) -> Vec<Fault> {
    let end = if rule.kind == SubjectKind::Output { End::Output } else { End::Input };
    let ports = || facts.ports(end).iter().filter(|port| !explained.contains(&port.layer));
    let port = facts.ports(end).iter().find(|port| port.is(rule.name));
    let verb = if end == End::Input { "sets" } else { "reads" };
    let one = |fault: Option<Fault>| fault.into_iter().collect();
    match &rule.demand {
        Demand::Exists(like) => {
            if port.is_some() {
                return Vec::new();
            }
            let mut fault = Fault::new(
                rule.name,
                message!("{} {} the {} `{}`, which the model does not have"; loader, verb, Text(end), rule.name),
            );
            if let Some(meant) = meant(rule.name, like, end, ports()) {
                fault.scripts = meant.addresses().map(|name| format!("rename {name} {}", rule.name)).collect();
                fault.message = message!("{} {} the {} `{}`, and the model has `{}`"; loader, verb, Text(end), rule.name, meant.shown);
                if meant.names.is_empty() {
                    fault.message = message!("{} {} the {} `{}`, and that of the model has no tensor name"; loader, verb, Text(end), rule.name);
                }
                fault.layer = Some(meant.layer);
                fault.explains.push(meant.layer);
            }
            vec![fault]
        }
        Demand::Type(types) => one(port.filter(|port| is_other_type(port, types)).map(|port| {
            let gives = if end == End::Input { "gives" } else { "reads" };
            let wanted: Vec<_> = types.iter().map(|ty| ty.name()).collect();
            let message = message!("{} {} `{}` as {}, and the {} is {}"; loader, gives, port.shown, Text(wanted.join(" or ")), Text(end), port.element_type());
            Fault::of(port, message).script(format!("{end} {} : {}", port.address(), types[0].name()))
        })),
        Demand::Rank(ranks) => one(port.filter(|port| port.rank().is_some_and(|rank| !ranks.contains(&rank))).map(|port| {
            let wanted: Vec<_> = ranks.iter().map(ToString::to_string).collect();
            let message = message!("`{}` has the shape {}, and {} needs rank {}"; port.shown, port.tensor.shape, loader, Text(wanted.join(" or ")));
            Fault::of(port, message)
        })),
        Demand::Open(axes) => one(port.filter(|port| axes.iter().any(|&axis| port.length(axis).is_some())).map(|port| {
            let mut shape = port.tensor.shape.clone();
            let dims = shape.dims_mut().unwrap_or_default();
            axes.iter().for_each(|&axis| dims[axis] = Dim::ANY);
            let message = message!("`{}` has the fixed shape {}, and {} gives it other lengths: {}"; port.shown, port.tensor.shape, loader, shape);
            let script = format!("input {} : {}{shape}", port.address(), port.element_type());
            Fault::of(port, message).script(script)
        })),
        Demand::Only => {
            let kept = port.or_else(|| facts.outputs.iter().find(|port| !port.shown.contains("aux")));
            let others: Vec<_> = ports().filter(|other| Some(other.layer) != kept.map(|port| port.layer)).collect();
            let (Some(kept), Some(first)) = (kept, others.first()) else { return Vec::new() };
            let message = message!("{} needs exactly one output, `{}`, and the model also has {}"; loader, kept.shown, shown(others.iter().copied()));
            let names: Vec<_> = others.iter().map(|port| port.address()).collect();
            vec![Fault::of(first, message).script(format!("remove output {}", names.join(", ")))]
        }
        Demand::NoOther(known) => {
            let is_known = |port: &&Port| {
                let of_group = |part: &&&str| matches!(**part, "past" | "cache") && port.shown.contains(**part);
                known.iter().any(|name| port.is(name)) || known.iter().any(|part| of_group(&part))
            };
            let others: Vec<_> = ports().filter(|port| port.is_used && !is_known(port)).collect();
            let Some(first) = others.first() else { return Vec::new() };
            let message = message!("{} does not set {}"; loader, shown(others.iter().copied()));
            vec![Fault::of(first, message).explaining(others.iter().map(|port| port.layer))]
        }
        Demand::Named => {
            let nameless: Vec<_> = ports().filter(|port| port.names.is_empty()).collect();
            let Some(first) = nameless.first() else { return Vec::new() };
            let message = message!("the {} {} has no tensor name, by which {} finds it"; Text(end), shown(nameless.iter().copied()), loader);
            let names: Vec<_> = nameless.iter().map(|port| format!("rename {0} {0}", port.address())).collect();
            vec![Fault::of(first, message).script(names.join("\n"))]
        }
        Demand::Value(form) => one(value(rule.name, *form, loader, facts)),
        Demand::OneOf(files) => {
            let is_there = facts.file.is_none() || files.iter().any(|file| facts.has_file(file));
            let message = || message!("{} loads `{}`, which is missing"; loader, rule.name);
            one((!is_there).then(|| Fault::new(rule.name, message())))
        }
        Demand::Fact(_, find) => {
            let mut faults = find(facts);
            faults.retain(|fault| fault.layer.is_none_or(|layer| !explained.contains(&layer)));
            faults
        }
    }
}

/// The only input or output that fits `like`, or the one whose name says most.
fn meant<'p>(name: &str, like: &str, end: End, ports: impl Iterator<Item = &'p Port>) -> Option<&'p Port> {
    let (ty, shape) = like.split_at(like.find('[')?);
    let rank = shape.parse::<Shape>().ok()?.rank();
    let is_float = ty.starts_with('f');
    let fitting = ports.filter(|port| {
        let is_number = |ty: ElementType| if is_float { ty.is_float() } else { ty.is_integer() || name == "timestep" };
        let has_rank = port.rank() == rank
            || name == "logits" && port.rank() == Some(2)
            || name == "timestep" && port.rank() == Some(0);
        let is_free = port.names.iter().all(|name| !KNOWN.contains(&name.as_str()));
        is_free && has_rank && is_number(port.element_type())
    });
    let fitting: Vec<_> = fitting.filter(|port| !is_cache(port)).collect();
    match fitting.as_slice() {
        [only] => Some(only),
        several => several
            .iter()
            .find(|port| {
                let shown = port.shown.to_lowercase();
                let parts = name.split('_').filter(|part| part.len() > 2 && *part != "ids");
                parts.clone().any(|part| shown.contains(part)) || name.contains(&*shown) && shown.len() > 2
            })
            .copied()
            .or_else(|| several.first().copied().filter(|_| end == End::Output || name == "input_ids")),
    }
}

/// Finds a wrong value in the metadata.
fn value(path: &str, form: Form, loader: &str, facts: &Facts) -> Option<Fault> {
    let statement = |value: &str| format!("info : {path} = {}", Quoted::text(value));
    let written = facts.key(path);
    let Some(value) = written else {
        let message = message!("the metadata has no `{}`, which {} reads"; path, loader);
        return matches!(form, Form::Text).then(|| Fault::new(path, message));
    };
    let wrong =
        |what: &str| Some(Fault::new(path, message!("`{}` is `{}`, and {} reads {}"; path, value, loader, what)));
    match form {
        Form::Text => None,
        Form::Integer if value.trim().parse::<i64>().is_err() => {
            let number: String = value.chars().filter(char::is_ascii_digit).collect();
            let advice = message!("write the number: -e 'info : {} = NUMBER'"; path);
            let fault = wrong("an integer")?.advice(advice);
            Some(if number.is_empty() { fault } else { fault.script(statement(&number)) })
        }
        Form::Number if value.trim().parse::<f64>().is_err() => {
            let decimal = value.trim().replace(',', ".");
            wrong("a number")
                .map(|fault| if decimal.parse::<f64>().is_ok() { fault.script(statement(&decimal)) } else { fault })
        }
        Form::Numbers if value.split_whitespace().any(|word| word.parse::<f64>().is_err()) => {
            let spaced = value.replace([',', ';', '[', ']', '(', ')'], " ");
            let spaced: Vec<_> = spaced.split_whitespace().collect();
            wrong("numbers separated by spaces").map(|fault| fault.script(statement(&spaced.join(" "))))
        }
        Form::Flag if ["true", "TRUE", "1", "yes", "Yes", "on", "On", "ON"].contains(&value.trim()) => {
            wrong("only `True` or `YES` as true")
        }
        Form::Word(words) if !words.iter().any(|word| word.eq_ignore_ascii_case(value.trim())) => {
            let near = crate::near(&value, words.iter().copied());
            let fault = wrong("another word")?;
            let message = match words.len() {
                0..=5 => message!("`{}` is `{}`, which is not one of {}"; path, value, Text(words.join(", "))),
                _ => message!("`{}` is `{}`, which {} does not know"; path, value, loader),
            };
            let fault = Fault { message, ..fault };
            Some(match near {
                Some(near) => fault.script(statement(&near)),
                None => fault,
            })
        }
        _ => None,
    }
}
