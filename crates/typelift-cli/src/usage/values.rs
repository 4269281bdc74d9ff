//! Values of options of other programs, as the options here take them.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Command;
use clap::error::ErrorKind;
use typelift::ops::Release;
use typelift::precision::KeepPattern;
use typelift::rewrite::library;
use typelift::{Layer, ops};

use super::line::{has, has_place, is_optional, refused, split, takes, valued};
use super::words::{is_like, meanings, scoped};
use super::{Asked, wish};
use crate::input::{element_type, is_xml};
use crate::parts::by_parts;
use crate::precision::keeps_constants;

impl Asked<'_> {
    /// The words for an option of ours with the value that was typed, if it takes that.
    pub(super) fn fitted(&self, verb: &Command, meant: &str, given: &str) -> Option<Vec<String>> {
        let option = meant.split(' ').next()?;
        let place = valued(verb, option);
        let place = place.split_once(' ')?.1;
        let given = if place.starts_with("NAME=") { given.trim_matches(['{', '}', '"']) } else { given };
        // `types=["Gather"]`.
        if place == "PATTERN" && given.contains(['"', '\'']) {
            let quoted = given.split(['"', '\'']).skip(1).step_by(2);
            let names = quoted.filter(|name| !["names", "patterns", "types"].contains(name));
            return Some(names.flat_map(|name| self.fitted(verb, meant, name)).flatten().collect());
        }
        // `--input a,b --input_shape [1,3],[1]`.
        let names = self.value_of("--input").filter(|names| place == "NAME=SHAPE" && !names.contains('['));
        let shapes =
            names.filter(|_| given.starts_with('[')).map(|names| names.split(',').zip(given.split_inclusive("],")));
        let named = shapes.map(|shapes| shapes.map(|(name, shape)| format!("{name}{shape}")).collect::<String>());
        let given = named.as_deref().unwrap_or(given).trim_end_matches(',');
        let plain = given.replace('"', "");
        let given = if place == "NAME=SHAPE" { &plain } else { given };
        // `image[1,3]{f32}`, `image{f32}`.
        if let Some((shape, ty)) = given.split_once('{').filter(|_| place == "NAME=SHAPE" && !given.contains("},")) {
            let of_shape = if shape.contains('[') { self.fitted(verb, meant, shape)? } else { Vec::new() };
            let name = of_shape.get(1).map_or(shape, String::as_str).split('=').next()?;
            let of_type = self.fitted(verb, "--set-type", &format!("{name}={}", ty.trim_end_matches('}')));
            return Some([of_shape, of_type.unwrap_or_default()].concat());
        }
        if given.contains(['{', '"']) || given.starts_with('@') || is_xml(given) {
            return None;
        }
        let lower = given.to_lowercase();
        if option == "--rules"
            && !Path::new(given).exists()
            && let Some(words) = self.fitted(verb, "--use", given)
        {
            return Some(words);
        }
        let list = Some(()).filter(|()| option == "--use" && given.contains(','));
        if let Some(words) = list.and_then(|()| self.repeated(verb, option, given)) {
            return Some(words);
        }
        let mode = lower.replace('-', "_");
        let sets = library::SETS.iter().map(|set| set.name).filter(|_| option == "--use");
        let is_alias = by_parts(&lower, sets).is_none();
        let alias = scoped(option, |text| text == mode || is_like(text, &lower)).filter(|_| is_alias);
        if let Some(words) = alias.filter(|it| it.starts_with("--") && !it.contains('`') && !has_place(it)) {
            return Some(split(words));
        }
        let several = match given.split_once([',', ':']) {
            Some((a, b)) if option == "--device" => Some(split(&format!("--device-a {a} --device-b {b}"))),
            Some((mode, group)) if option == "--quantize" && lower.contains(':') => {
                Some(split(&format!("--quantize {} --group-size {group}", mode.to_lowercase())))
            }
            _ if option == "--only" && verb.get_name() == "show" => self.operation(given),
            _ if place.starts_with("NAME=") => self.repeated(verb, option, given),
            _ => None,
        };
        if let Some(words) = several.filter(|words| refused(self.program, verb, words).is_none()) {
            return Some(words);
        }
        let forms = match place {
            "NAME=SHAPE" => vec![self.shape(given)],
            "NAME=LAYOUT" => vec![self.layout(option, given)],
            "NAME=N" => {
                match self.length(option, meant.split_once(' ').map(|it| it.1.trim_end_matches("=N")), given)? {
                    words if words.is_empty() => return None,
                    words if words[0] != option || words.len() > 2 => return Some(words),
                    mut words => vec![words.pop()],
                }
            }
            "PATTERN" => vec![self.pattern(given)],
            _ if place.starts_with("FILE") || place.starts_with("OUT") => {
                let is_path = given.ends_with('/')
                    || [".bin", ".npy", ".npz", ".rules", ".txt"].iter().any(|end| lower.ends_with(end));
                vec![Some(given.to_owned()).filter(|_| is_path && !lower.contains(':'))]
            }
            _ => self.forms(option, place, given),
        };
        let form = forms.into_iter().flatten().find(|form| takes(self.program, verb, option, form));
        let is_whole = |words: &Vec<String>| *words != [option, given] && refused(self.program, verb, words).is_none();
        let own = |meant: &'static str| meant.strip_prefix(verb.get_name()).map_or(meant, str::trim_start);
        let other = || meanings(given).into_iter().map(own).filter(|own| has(verb, own)).map(split).find(is_whole);
        let whole = form.map(|form| vec![option.to_owned(), form]).or_else(|| self.repeated(verb, option, given));
        whole.or_else(|| if is_optional(verb, option) || place.starts_with("NAME=") { None } else { other() })
    }

    /// A pattern of layers: `type:Softmax` for the name of an operation, and `@FILE` for a file.
    fn pattern(&self, given: &str) -> Option<String> {
        // `(0|1)` of a regular expression.
        if let Some(form) = self
            .forms("", "", given)
            .into_iter()
            .flatten()
            .find(|form| form != given && given.contains('\\') && self.keeps(form))
        {
            return Some(form);
        }
        // The name of a module, which a longer path contains.
        let wide = format!("*{given}");
        if given.contains('*') && !self.keeps(given) && self.keeps(&wide) {
            return Some(wide);
        }
        let is_name = self.model().is_none_or(|model| model.find_all(given).is_ok());
        let operation =
            wish::operation(given).or_else(|| ops::meant(given)?.operation).map(|name| format!("type:{name}"));
        let file = Path::new(given).is_file().then(|| format!("@{given}"));
        if given.contains(',') && !is_name {
            return None;
        }
        if is_name { Some(given.to_owned()) } else { file.or(operation).or_else(|| Some(given.to_owned())) }
    }

    fn keeps(&self, pattern: &str) -> bool {
        self.model().is_some_and(|model| keeps_constants(model, &KeepPattern::from(pattern)))
    }

    /// Spellings of a value, the likeliest first.
    fn forms(&self, option: &str, place: &str, given: &str) -> Vec<Option<String>> {
        let lower = given.to_lowercase();
        // `fp16:chw`.
        let bare = if place == "NAME=TYPE" { lower.trim_end_matches(":chw").trim_end_matches(":hwc") } else { &lower };
        let given = if bare.len() < given.len() { bare } else { given };
        let (ends, kind) = (self.ends(option), element_type(bare).ok().map(|ty| ty.to_string()));
        let is_bare = place == "NAME=TYPE" && kind.is_some() && !given.contains([':', '=', '>']);
        let end = if ends.len() > 1 { Some("*".to_owned()) } else { ends.into_iter().next().map(|it| it.0) };
        let end = end.filter(|_| is_bare).map(|end| format!("{end}={given}"));
        let is_from = place.starts_with("FROM") && kind.as_ref().is_some_and(|kind| kind != "f32");
        let pair = given.replace("->", "=").replace(' ', "");
        let pair = if place.starts_with("FROM") { pair.replace(':', "=") } else { pair.replacen(':', "=", 1) };
        let percent =
            given.strip_suffix('%').and_then(|number| Some((number.parse::<f64>().ok()? / 100.0).to_string()));
        let layer = given.rsplit_once(':').filter(|(_, ty)| element_type(ty).is_ok()).map(|it| it.0.to_owned());
        let glob = given.replace(".*", "*").replace(['\\', '|'], "").replace('(', "[").replace(')', "]");
        let glob = glob.trim_matches(['^', '$']).to_owned();
        let is_small = ["--align", "--compress", "--for", "--quantize"].contains(&option);
        // `v2024.1.0`, `2024`.
        let number = lower.trim_start_matches(|it: char| !it.is_numeric());
        let opset = number.parse().ok().filter(|_| option == "--target" && !number.contains('.'));
        let opset = opset.filter(|opset| (3..=16).contains(opset)).map(|opset| Release::of_opset(opset).to_string());
        let begins = |one: &str, other: &str| format!("{one}.").starts_with(&format!("{other}."));
        let releases = Release::all().map(|it| it.to_string()).filter(|_| option == "--target");
        let release = releases.filter(|it| begins(it, number) || begins(number, it)).last();
        let sets = library::SETS.iter().map(|set| set.name).filter(|_| option == "--use");
        let set = by_parts(&lower, sets.clone()).or_else(|| typelift::near(&lower.replace('_', "-"), sets));
        let unit =
            |sign, factor: u64| Some((given.split_once(sign)?.0.trim().parse::<u64>().ok()? * factor).to_string());
        let seconds = unit('m', 60).or_else(|| unit('h', 3600)).filter(|_| place == "SECONDS");
        let forms = [
            end,
            Some(pair).filter(|_| place.contains('=')),
            is_from.then(|| format!("f32={lower}")),
            percent,
            seconds,
            layer,
            is_small.then(|| lower.clone()),
            Some(glob).filter(|_| given.contains(".*")),
            Some(given.to_owned()),
            Some(lower.clone()),
            Some(lower.replace('-', "_")),
            kind,
            opset,
            release,
            set,
            Some(given.trim_end_matches(|letter: char| letter.is_alphabetic()).to_owned()),
        ];
        forms
            .into_iter()
            .chain(lower.split(['.', '-']).map(|part| Some(part.to_owned()).filter(|_| !given.contains('='))))
            .collect()
    }

    /// A shape as `NAME=[…]`, for `NAME[…]`, `NAME:1x3`, `1,3`, and for one without the first dimensions.
    pub(super) fn shape(&self, given: &str) -> Option<String> {
        let given = given.rfind([']', ')']).map_or(given, |end| &given[..end]);
        let (name, dims) = match given.find(['[', '(']) {
            Some(at) => (&given[..at], &given[at + 1..]),
            None => given.rsplit_once([':', '=']).unwrap_or(("", given)),
        };
        let is_letter = |letter: char| letter.is_alphabetic() || letter == '_';
        let is_open = |text: &str| text.starts_with('-') || text.chars().all(is_letter);
        let is_named = dims.contains([',', ';', ' ']);
        let texts = dims.split(|letter: char| !is_named && letter == 'x' || [',', ';', ' ', '*'].contains(&letter));
        let texts = texts.filter(|text| !text.is_empty());
        let mut dims: Vec<String> = texts.map(|text| if is_open(text) { "?" } else { text }.to_owned()).collect();
        // The width of a picture is named first.
        if dims.len() == 2 && name.is_empty() && !is_named && given.contains('x') {
            dims.reverse();
        }
        // The size of an image is its height and its width.
        let is_size = |own: &[String]| dims.len() == 1 && dims[0].len() > 1 && own.len() == 4;
        let is_same = |(a, b): (&String, &String)| a == b || [a, b].iter().any(|dim| dim.parse::<u64>().is_err());
        let is_end = |own: &[String]| own.len() >= dims.len() && own.iter().rev().zip(dims.iter().rev()).all(is_same);
        let fits = |own: &[String]| is_end(own) || is_size(own);
        let whole = self.input(name, |own| own.len() == dims.len() && fits(own));
        // `[8,3,64,64]` is another batch than `[1,3,64,64]`.
        let near = whole.or_else(|| self.input(name, fits));
        let (name, own) = near.or_else(|| self.input(name, |own| own.len() == dims.len()))?;
        let is_fit = fits(&own);
        let dims = if is_size(&own) { [&dims[..], &dims].concat() } else { dims };
        let is_shape =
            given.contains('[') || dims.iter().any(|dim| dim.contains(|letter: char| letter.is_ascii_digit()));
        let more = &own[..own.len().saturating_sub(dims.len())];
        (is_shape && (more.len() < 2 || is_fit)).then(|| format!("{name}=[{}]", [more, &dims].concat().join(",")))
    }

    /// A layout as `NAME=NCHW:NHWC`, for `nhwc`, `NAME(nchw->nhwc)`, and for two options for the source and the target.
    pub(super) fn layout(&self, option: &str, given: &str) -> Option<String> {
        let side = |word: &str| self.options().find(|(name, _)| name.contains(word)).and_then(|(_, value)| value);
        let (source, target) = (side("source"), side("target"));
        let text = target.map_or(given.to_owned(), |target| format!("{}:{target}", source.unwrap_or_default()));
        let words = || text.split(['(', ')', '[', ']', ':', '=', '-', '>', ',', ' ']).filter(|word| !word.is_empty());
        let is_layout =
            |word: &&str| word.len() > 1 && word.to_uppercase().chars().all(|letter| "NCDHWTL".contains(letter));
        let layouts: Vec<_> = words().filter(is_layout).map(str::to_uppercase).collect();
        let (from, to) = (layouts.first()?, layouts.last()?);
        let name = words().find(|word| !is_layout(word)).unwrap_or_default();
        let end = self.ends(option).into_iter().find(|it| it.0 == name || name.is_empty() && it.1.len() == to.len());
        let (name, dims) = end.or_else(|| Some((name.to_owned(), Vec::new())).filter(|_| !name.is_empty()))?;
        // The layout that the model has is not asked for.
        let is_own = to.get(1..2) == Some("C") && dims.get(1).is_some_and(|dim| ["1", "3", "4"].contains(&&**dim));
        Some(match layouts.len() {
            1 if is_own || source.is_some() => format!("{name}={to}:{}", exchanged(to)),
            1 => format!("{name}={}:{to}", exchanged(to)),
            _ => format!("{name}={from}:{to}"),
        })
    }

    /// The open lengths of the name that was typed or that a row has, or the first length of each shape.
    fn length(&self, option: &str, row: Option<&str>, given: &str) -> Option<Vec<String>> {
        let pair = |option: &str, value: String| vec![option.to_owned(), value];
        let row = row.filter(|row| *row != "NAME");
        let symbols = self.model().map(|model| typelift::shapes(model).symbols).unwrap_or_default();
        // `x[10,2,6]`.
        if given.contains('[') && !given.contains("]=") {
            let shape = self.shape(given)?;
            let (name, dims) = shape.trim_end_matches(']').split_once("=[")?;
            let of_axis = |(axis, dim)| {
                let symbol = symbols.iter().find(|it| it.axis() == format!("{name}[{axis}]"))?;
                Some(pair(option, format!("{}={dim}", symbol.name)))
            };
            return Some(dims.split(',').enumerate().filter_map(of_axis).flatten().collect())
                .filter(|it: &Vec<_>| !it.is_empty());
        }
        let (name, number) =
            given.split_once(['=', ':']).map_or((row, given), |(name, number)| (Some(name.trim()), number));
        let number = number.trim().replace('-', "..");
        let (is_batch, is_seq) = (name == Some("batch"), name == Some("seq"));
        if let Some(name) = name {
            let is_known = number != "0" && symbols.iter().any(|it| it.name == name || it.axis() == name);
            let near = || by_parts(name, symbols.iter().map(|it| &*it.name));
            let axis = || name.rsplit_once('.').map(|(end, axis)| format!("{end}[{axis}]"));
            let axis = || axis().filter(|axis| symbols.iter().any(|it| it.axis() == *axis));
            let all = || self.lengths(name).or_else(|| self.lengths(&near()?)).or_else(axis);
            let own = if is_known && row.is_none() { Some(name.to_owned()) } else { all() };
            let own =
                own.or_else(|| Some(name.to_owned()).filter(|_| self.model().is_none() || row.is_none() && !is_batch));
            if let Some(own) = own {
                let words = if number == "0" && option == "--set-length" {
                    self.without_length(&own)
                } else {
                    pair(option, format!("{own}={number}"))
                };
                return Some(words);
            }
        } else if number.parse::<u64>().is_err() {
            return Some(pair(option, number));
        }
        if self.model().is_none() {
            return Some(pair(option, format!("batch={number}")));
        }
        let is_shaped = |name: &str| self.values().any(|value| value.starts_with(&format!("{name}=")));
        if let Some(own) = self.lengths("seq").filter(|_| !is_batch) {
            return Some(pair(option, format!("{own}={number}")));
        }
        let mut words = Vec::new();
        let is_any_open = symbols.iter().any(|it| it.axis().ends_with("[0]"));
        for (name, dims) in self.ends("").into_iter().filter(|(name, dims)| !dims.is_empty() && !is_shaped(name)) {
            // `--at 128` is the length of a text, unless only the batch is open.
            let mut axes = (1..dims.len()).rev().filter(|_| !is_batch).chain((!is_seq).then_some(0));
            let of_axis = |axis| symbols.iter().find(|it| it.axis() == format!("{name}[{axis}]"));
            if let Some(symbol) = axes.find_map(of_axis) {
                words.extend(pair(option, format!("{}={number}", symbol.name)));
            } else if option == "--set-length" && dims[0].parse::<u64>().is_ok() && !is_any_open {
                let dims = [std::slice::from_ref(&number), &dims[1..]].concat().join(",");
                words.extend(pair("--set-shape", format!("{name}=[{dims}]")));
            }
        }
        Some(words).filter(|words| !words.is_empty())
    }

    /// The shapes of the inputs that have an open length, with 0 in its place.
    fn without_length(&self, own: &str) -> Vec<String> {
        let known = self.model().map(typelift::shapes);
        let symbols = known.iter().flat_map(|known| known.symbols_of(own));
        let axes: Vec<_> = symbols.flat_map(|symbol| symbol.named_axes()).collect();
        let emptied = self.ends("").into_iter().filter_map(|(name, mut dims)| {
            let is_own = |at: &usize| axes.iter().any(|(input, axis)| **input == *name && axis == at);
            let open: Vec<_> = (0..dims.len()).filter(is_own).collect();
            open.iter().for_each(|at| "0".clone_into(&mut dims[*at]));
            (!open.is_empty()).then(|| (format!("=[{}]", dims.join(",")), name))
        });
        let mut groups = BTreeMap::<String, Vec<String>>::new();
        emptied.for_each(|(shape, name)| groups.entry(shape).or_default().push(name));
        let values = groups
            .into_iter()
            .flat_map(|(shape, names)| self.globbed("", names).into_iter().map(move |it| it + &shape));
        values.flat_map(|value| ["--set-shape".to_owned(), value]).collect()
    }

    /// A pattern that only these inputs or outputs match, or their names.
    pub(super) fn globbed(&self, kind: &str, names: Vec<String>) -> Vec<String> {
        let first = names.first().map_or("", String::as_str);
        let starts = (1..=first.len()).rev().filter_map(|size| first.get(..size));
        let start =
            starts.into_iter().find(|start| names.iter().all(|name| name.starts_with(start))).unwrap_or_default();
        let is_other = |name: &String| name.starts_with(start) && !names.contains(name);
        let is_pattern = names.len() > 1 && !self.ends(kind).iter().any(|(name, _)| is_other(name));
        if is_pattern { vec![format!("{start}*")] } else { names }
    }

    /// The options of `show` for the operation or the layer that a word means: `--only Convolution` for `conv`.
    pub(super) fn operation(&self, word: &str) -> Option<Vec<String>> {
        if word.contains(',') {
            return Some(word.split(',').map(|word| self.operation(word)).collect::<Option<Vec<_>>>()?.concat());
        }
        let (model, lower) = (self.model()?, word.trim_matches('*').to_lowercase());
        let mut names: Vec<_> = model.graph().layers().filter_map(Layer::operation).map(|it| it.name).collect();
        names.sort_unstable();
        names.dedup();
        let meant = ops::meant(&lower).and_then(|meant| Some(meant.operation?.to_lowercase()));
        let is_same = |name: &&str| [Some(&lower), meant.as_ref()].contains(&Some(&name.to_lowercase()));
        let found = match names.iter().copied().find(is_same) {
            Some(name) => vec![name],
            None if ops::all().any(|it| it.name.to_lowercase() == lower) => vec![word],
            None => names.into_iter().filter(|name| name.to_lowercase().contains(&lower)).take(3).collect(),
        };
        let around = || model.find(word).is_ok().then(|| vec!["--around".to_owned(), word.to_owned()]);
        let only = found.iter().flat_map(|name| ["--only", name].map(str::to_owned)).collect();
        if found.is_empty() { around() } else { Some(only) }
    }

    /// Writes a list once for each of its values: `--for cpu --for gpu` for `MULTI:CPU,GPU`.
    fn repeated(&self, verb: &Command, option: &str, list: &str) -> Option<Vec<String>> {
        let is_device = |first: &str| first.chars().all(char::is_uppercase);
        let list = list.split_once(':').filter(|(first, _)| is_device(first)).map_or(list, |it| it.1);
        // A separator in brackets is part of a shape.
        let parts = |separator: char| {
            let mut depth = 0;
            list.split(move |letter| {
                depth += i32::from("[(".contains(letter)) - i32::from("])".contains(letter));
                letter == separator && depth == 0
            })
        };
        let is_blank = parts(' ').filter(|part| part.contains([':', '=', '['])).count() > 1;
        let mut values = Vec::<String>::new();
        for value in parts(if is_blank { ' ' } else { ',' }).map(str::trim) {
            match values.last_mut().filter(|_| value.parse::<f64>().is_ok()) {
                // `a:1,3,b:1`.
                Some(last) => *last += &format!(",{value}"),
                None => values.push(value.to_owned()),
            }
        }
        let words = values.iter().filter(|_| values.len() > 1).map(|value| self.fitted(verb, option, value));
        let words = words.collect::<Option<Vec<_>>>()?.concat();
        let fault =
            refused(self.program, verb, &words).filter(|fault| fault.kind() != ErrorKind::MissingRequiredArgument);
        (!words.is_empty() && fault.is_none()).then_some(words)
    }

    /// The inputs or the outputs of the model with their dimensions.
    pub(super) fn ends(&self, option: &str) -> Vec<(String, Vec<String>)> {
        let Some(model) = self.model() else { return Vec::new() };
        let layers: Vec<_> =
            if option.contains("output") { model.outputs().collect() } else { model.inputs().collect() };
        let end = |layer: &&Layer| {
            let dims = layer.outputs().first().and_then(|port| port.shape().dims()).unwrap_or_default();
            (model.end_name(layer), dims.iter().map(ToString::to_string).collect())
        };
        layers.iter().map(end).collect()
    }

    /// The input that was typed, or the first one whose dimensions fit.
    pub(super) fn input(&self, name: &str, fits: impl Fn(&[String]) -> bool) -> Option<(String, Vec<String>)> {
        let (name, inputs) = (name.trim_end_matches([':', '=', '-', '>', ' ']), self.ends(""));
        let known = inputs.into_iter().find(|(own, dims)| own == name || name.is_empty() && fits(dims));
        known.or_else(|| Some((name.to_owned(), Vec::new())).filter(|_| !name.is_empty()))
    }
}

/// The other of the layouts with channels first and last.
fn exchanged(layout: &str) -> String {
    let (first, rest) = layout.split_at(layout.len().min(1));
    let last = rest.strip_suffix('C').map(|rest| format!("{first}C{rest}"));
    rest.strip_prefix('C').map(|rest| format!("{first}{rest}C")).or(last).unwrap_or_else(|| layout.to_owned())
}
