//! `typelift convert`: makes promotion explicit.

use std::path::{Path, PathBuf};

use clap::ArgGroup;
use clap::builder::PossibleValuesParser;
use typelift::convert::strip::{Stripped, Values};
use typelift::convert::{ConvertError, Converted, Unneeded};
use typelift::findings::{Diagnostics, Voice};
use typelift::ops::Release;
use typelift::passes::Align;
use typelift::precision::{KeepError, KeepPattern, Storage, TypeMap};
use typelift::values::Export;
use typelift::{Device, Layer, Model};

use crate::batch::Inputs;
use crate::changing::ChangeArgs;
use crate::check;
use crate::columns::count;
use crate::failure::Failure;
use crate::findings;
use crate::input::{self, Input, InputChanges, InterfaceChanges, Loaded, parsed};
use crate::output::{self, OutputArgs, Target};
use crate::plan::{Plan, Totals};
use crate::precision::{self, StorageArgs};
use crate::promote::OpenVinoArgs;
use crate::quantize::{self, QuantizeArgs};
use crate::render::{self, Show};
use crate::settings::settings_args;
use crate::status::Status;
use crate::terminal::{self, Page, Terminal};
use crate::texts;
use crate::verify::Verdict;

settings_args! {
/// Insert Converts so that element types agree and every promotion is explicit
///
/// Infers types and shapes, gives inputs that disagree their common type, and replaces each ConvertPromoteTypes by
/// Converts, in bodies too. Converts without effect are removed. Unchanged parts of the file are kept byte for byte. A
/// model with errors is not written. OUT and its .bin are written completely or not at all; the next run to the same
/// place completes or removes what a killed run leaves in .typelift-*.tmp.
///
/// With --types, --compress, --decompress or --mark-keeps it does only that. Promotions are kept unless inputs of one
/// layer would get two types, and Converts are kept where no type changes. --eliminate-converts and
/// --keep-noop-converts override this.
///
/// Several models are converted in parallel into a directory, which is created if needed. A directory as input means
/// every .xml below it, and each keeps its path; files that are not IR are named and skipped. A model that is refused
/// does not stop the others, and the exit status is the worst of all.
#[derive(clap::Args)]
#[command(group(ArgGroup::new("keepable").args(["types", "compress", "quantize", "dequantize", "mark_keeps"]).multiple(true)))]
#[command(group(ArgGroup::new("auditable").args(["types", "compress", "decompress", "quantize", "dequantize"]).multiple(true)))]
#[command(after_help = "Examples:
  typelift convert model.xml -o out.xml
  typelift convert --in-place model.xml
  typelift convert --dry-run model.xml
  typelift convert models -o converted
  typelift convert --input-layout image=NCHW:NHWC model.xml -o out.xml
  typelift convert --input-type image=u8 --output-type scores=f16 model.xml -o out.xml
  typelift convert --align pytorch --set-type x=f16 model.xml -o out.xml
  typelift convert --target 2022.3 model.xml -o out.xml
  typelift convert --compress f16 model.xml -o out.xml
  typelift convert --compress f16 --audit model.xml
  typelift convert --quantize int4_sym --group-size 64 model.xml -o out.xml
  typelift convert --quantize int8_sym --only 'type:MatMul' model.xml -o out.xml
  cat model.xml | typelift convert - -o - > out.xml")]
pub(crate) struct Args for typelift::convert::Conversion {
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    output: OutputArgs,
    /// Keep the Converts that OpenVINO's own pass keeps: two for each ConvertPromoteTypes, needed or not, and Converts
    /// without effect in the file
    #[arg(long)]
    keep_noop_converts: bool,
    /// Also remove every Convert whose values another tensor provably holds, and shorten chains of Converts that keep
    /// every value
    #[arg(long, conflicts_with = "keep_noop_converts")]
    eliminate_converts: bool,
    #[command(flatten)]
    changes: InputChanges,
    #[command(flatten)]
    interface: InterfaceChanges,
    /// Change types in the whole model, as f64=f32. Bodies and attributes change too. Pairs such as f64=f32,i64=i32
    /// apply at once: a=b,b=c does not turn a into c. Operations that do not support the new type keep the old one,
    /// with Converts around them
    #[arg(long, value_name = "FROM=TO,…")]
    types: Option<TypeMap>,
    /// Keep the types of inputs and outputs when --types changes others, with a Convert at each
    #[arg(long, requires = "types")]
    keep_io: bool => keep_io,
    /// Keep the types of these layers and constants. Goes with --types, --compress, --quantize and others. Accepts
    /// names (loop/body/add*), type:Softmax, type:MVN-6, @FILE with one pattern per line, or auto for the layers that
    /// OpenVINO keeps when it computes in f16; repeatable
    #[arg(long, value_name = "PATTERN", value_parser = parse_keep, requires = "keepable")]
    keep: Vec<Vec<KeepPattern>>,
    /// Change only these layers and the constants that no other layer uses. Patterns as for --keep, whose layers are left
    /// out; repeatable
    #[arg(long, value_name = "PATTERN", value_parser = parse_keep, requires = "keepable", hide_short_help = true)]
    only: Vec<Vec<KeepPattern>>,
    /// Also mark the layers of --keep, so that OpenVINO keeps them in f32 when it computes in f16 or bf16
    #[arg(long, requires = "keep")]
    mark_keeps: bool => mark_keeps,
    #[command(flatten)]
    storage: StorageArgs,
    #[command(flatten)]
    quantize: QuantizeArgs,
    /// Type of inputs that must agree and do not: the type that the file declares, or the common type of these rules
    #[arg(long, value_name = "RULES", default_value = "declared", value_parser = PossibleValuesParser::new(Align::names()))]
    align: String,
    #[command(flatten)]
    openvino: OpenVinoArgs,
    /// Write for this OpenVINO release, such as 2023.3: operations that it lacks are replaced, and before 2022.1 the
    /// format becomes version 10. If that is impossible, or its CPU plugin refuses a layer, all reasons are reported
    #[arg(long, value_name = "RELEASE")]
    target: Option<Release> => target,
    /// Device whose plugin of that release must compile the model; by default the CPU
    #[arg(long = "for", value_name = "DEVICE", value_parser = parsed::<Device>(&["cpu", "gpu", "npu"]), requires = "target", hide_short_help = true)]
    device: Option<Device> => device,
    /// Replace the values of constants that no shape depends on, so that the model can be sent to others. It still loads, and
    /// its .bin holds one run of bytes that constants share
    #[arg(long, value_name = "VALUES", value_parser = parsed::<Values>(&["zero", "random"]), conflicts_with = "verify")]
    strip_weights: Option<Values> => strip,
    /// Also write the constants of the result to this file, under the names of their layers
    #[arg(long, value_name = "FILE.safetensors")]
    save_weights: Option<PathBuf>,
    #[command(flatten)]
    change: ChangeArgs,
}
}

/// Result for a model.
struct Conversion {
    /// The changes; empty if it has errors.
    totals: Option<Totals>,
    /// The report as JSON, with each change or the refusal, if it was requested.
    report: Option<String>,
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    args.change.check(&args.inputs, &args.output, !args.writes_nothing())?;
    let plan = args.quantize.write_plan.as_deref().map(|path| (path, "the plan"));
    let weights = args.save_weights.as_deref().map(|path| (path, "the constants"));
    let documents: Vec<_> = args.change.document().into_iter().chain(plan).chain(weights).collect();
    let batch = args.inputs.find(Some(&args.output), &documents, &[])?;
    if let Some(file) = &args.save_weights {
        output::check_ending(file, "safetensors", "constants")?;
        if batch.single().is_none() {
            return Err(Failure::new("--save-weights takes one model, because its file has the constants of one"));
        }
    }
    let conversions = args.change.each(
        &batch,
        terminal,
        |input, page| args.convert(input, page),
        |conversion| conversion.report.take(),
    )?;
    let status = conversions.status(|conversion| conversion.totals.is_none());
    if batch.single().is_none() {
        let totals: Vec<_> = conversions.done.iter().filter_map(|conversion| conversion.totals).collect();
        let unchanged = totals.iter().filter(|totals| totals.change_nothing()).count();
        let counts = [
            (totals.len() - unchanged, if args.writes_nothing() { "to convert" } else { "converted" }),
            (unchanged, "with no pair to convert"),
            (conversions.done.len() - totals.len(), "refused"),
        ];
        let all: Totals = totals.into_iter().sum();
        let done = if all == Totals::default() { String::new() } else { format!("; {all}") };
        terminal.say(&format!("{}{done}\n", conversions.summary(&counts)));
    }
    Ok(status)
}

impl Args {
    fn writes_nothing(&self) -> bool {
        self.change.dry_run || self.storage.audit
    }

    fn convert(&self, input: &Input, page: &mut Page) -> Result<Conversion, Failure> {
        let target = if self.writes_nothing() { None } else { Target::new(&self.output, input)? };
        let mut loaded = input.read()?;
        let Loaded { model, diagnostics, read_from, .. } = &mut loaded;
        let version = model.as_ref().map(Model::version);
        let mut converted = None;
        if let Some(model) = model {
            let mut conversion = self.conversion()?;
            conversion.set_shapes = self.changes.shapes(model)?;
            page.said = self.changes.other_ranks(model, &diagnostics.file);
            converted = match conversion.run_after(model, std::mem::take(&mut diagnostics.list)) {
                Ok(mut done) => {
                    diagnostics.list = std::mem::take(&mut done.found);
                    Some(done)
                }
                Err(ConvertError::Refused(found)) => {
                    diagnostics.list = found;
                    None
                }
                Err(error) => return Err(failure(model, &error)),
            };
            diagnostics.list.extend(target.as_ref().and_then(|target| target.objection(model, input)));
            input.name_weights(model, &mut diagnostics.list);
        }
        let (Some(model), Some(converted), false) = (model, converted, diagnostics.has_errors()) else {
            self.changes.say_what_fits(input, diagnostics);
            let file = self.offer(input, diagnostics);
            page.said += &render::text(diagnostics, Voice::Shell(file), Show::Briefly);
            page.said.extend(check::suggestion(input, &diagnostics.source));
            let report = self.change.report.as_ref().map(|_| findings::refused(diagnostics)).transpose()?;
            return Ok(Conversion { totals: None, report });
        };
        let &Converted { refresh_ports, ref stripped, ref stored, ref quantized, .. } = &converted;
        let mut remarks = stored.as_ref().map(precision::remarks).unwrap_or_default();
        if let Some(plan) = quantized {
            remarks.push(quantize::remark(plan));
            remarks.extend(quantize::left(plan, model));
        }
        remarks.extend(stripped.map(stripped_remark));
        remarks.extend(self.changes.left_open(model));
        let is_told = stored.is_some();
        let is_stored = is_told || quantized.is_some();
        if is_told && version < Some(model.version()) {
            remarks.push(UPGRADED.to_owned());
        }
        let tables = [stored.as_ref().map(precision::table), quantized.as_ref().map(quantize::table)];
        let table = if self.writes_nothing() { tables.into_iter().flatten().collect() } else { String::new() };
        if let (Some(plan), Some(path)) = (quantized, &self.quantize.write_plan) {
            quantize::write_plan(plan, path)?;
        }
        let dangers = if self.storage.audit { precision::dangers(&converted.risks) } else { String::new() };
        let is_compiled = converted.is_compiled;
        let plan = Plan::new(&diagnostics.file, converted);
        diagnostics.list.extend(plan.warnings(model));
        diagnostics.list.extend(typelift::unknown_operations(model));
        page.said = render::text(diagnostics, Voice::Shell(None), Show::Briefly);
        for pattern in self.keep.iter().chain(&self.only).flatten() {
            page.said += &input::other_meaning(model, &pattern.to_string());
        }
        // With --types, a pattern keeps layers.
        let is_of_constants = is_stored && self.types.is_none() && !self.mark_keeps;
        for pattern in self.keep.iter().flatten().filter(|_| is_of_constants) {
            let (file, is_vain) = (&diagnostics.file, !precision::keeps_constants(model, pattern));
            let warning = format!("warning: {file}: --keep `{pattern}` matches layers without constants\n");
            page.said.extend(Some(warning).filter(|_| is_vain && *pattern != KeepPattern::Automatic));
        }
        let totals = plan.totals();
        let is_decompressed = matches!(self.storage.storage(), Some(Storage::Decompress(_))) && totals.change_nothing();
        let is_packed = |layer: &Layer| layer.outputs().iter().any(|it| (1..=8).contains(&it.element_type().bits()));
        let is_packed = is_decompressed && model.graph().layers().any(is_packed);
        remarks.extend(is_packed.then(|| "`--dequantize` stores quantized constants as plain values".to_owned()));
        let ready = self.target.filter(|_| totals.change_nothing());
        remarks.extend(ready.filter(|_| is_compiled).map(|release| format!("OpenVINO {release} reads it as it is")));
        match self.change.before.compare(input, model)? {
            Verdict::Agree(remark) => remarks.extend(remark),
            Verdict::Differ(report) => {
                page.said +=
                    &format!("{report}{}: not written, because the result computes something else\n", diagnostics.file);
                return Ok(Conversion { totals: None, report: None });
            }
        }
        let rounding = plan.rounding().filter(|_| !is_told);
        let remarks = plan.outputs(model).into_iter().chain(rounding).chain(remarks).chain(plan.options());
        let remarks = remarks.map(|remark| format!("; {remark}"));
        let summary = format!("{}: {totals}{}\n", diagnostics.file, remarks.collect::<String>());
        if target.is_none() && !self.change.reports_on_stdout() {
            page.styled = true;
            page.printed = format!("{}{table}{dangers}{summary}", plan.text(true));
        }
        // A plan that no report needs is freed before writing.
        let plan = self.change.report.is_some().then_some(plan);
        if let Some(target) = &target {
            let export = self.save_weights.as_ref().map(|_| Export::safetensors(model)).transpose();
            let export = export.map_err(|error| output::not_exported(&error))?;
            let options = self.output.text(input, refresh_ports);
            target.write(model, read_from, options, page)?;
            let written = target.written().map(|written| format!("; {written}")).unwrap_or_default();
            page.said += &format!("{}{written}\n", summary.trim_end());
            if let (Some(export), Some(file)) = (export, &self.save_weights) {
                output::write_export(file, &export)?;
                page.said += &format!("wrote {}\n", file.display());
            }
        }
        let report = plan.map(|plan| terminal::json(&plan.with_lines(model))).transpose()?;
        Ok(Conversion { totals: Some(totals), report })
    }

    fn conversion(&self) -> Result<typelift::convert::Conversion, Failure> {
        let unneeded = match self {
            Self { keep_noop_converts: true, .. } => Unneeded::Kept,
            Self { eliminate_converts: true, .. } => Unneeded::Redundant,
            _ => Unneeded::Noops,
        };
        let (InputChanges { set_type, .. }, InterfaceChanges { input_type, output_type, input_layout, output_layout }) =
            (self.changes.clone(), self.interface.clone());
        let mut conversion = typelift::convert::Conversion::default();
        self.fill(&mut conversion);
        conversion.align = Align::named(&self.align, self.openvino.attributes()).unwrap_or_default();
        conversion.unneeded = unneeded;
        conversion.set_types = set_type;
        (conversion.input_layouts, conversion.output_layouts) = (input_layout, output_layout);
        conversion.input_types = input_type;
        conversion.output_types = output_type;
        conversion.types = self.types.clone().unwrap_or_default();
        conversion.keep = self.keep.concat();
        conversion.only = self.only.concat();
        conversion.storage = self.storage.storage();
        conversion.quantize = self.quantize.request()?;
        conversion.max_error = self.storage.max_error;
        conversion.is_brief = self.change.report.is_none() && !self.writes_nothing();
        Ok(conversion)
    }

    /// Tries conversions that would succeed where this one did not, and returns the file that they read.
    fn offer<'i>(&self, input: &'i Input, diagnostics: &mut Diagnostics) -> Option<&'i Path> {
        let file = input.as_argument().filter(|_| self.changes.is_empty() && self.interface.is_empty())?;
        let original = input.read().ok()?.model.take()?;
        typelift::try_actions(&original, &mut diagnostics.list);
        Some(file)
    }
}

const UPGRADED: &str = "the file becomes version 11, because version 10 has no marks; its inputs and outputs are those \
                        that OpenVINO gives version 10";

fn stripped_remark(stripped: Stripped) -> String {
    let kept = if stripped.kept == 0 { String::new() } else { format!(", {} kept for shapes and axes", stripped.kept) };
    format!("{} without their values{kept}", count(stripped.replaced, "constant"))
}

/// Parses a pattern, or the patterns of a file, one per line; empty lines and lines with `#` are ignored.
fn parse_keep(text: &str) -> Result<Vec<KeepPattern>, String> {
    let Some(file) = text.strip_prefix('@') else { return Ok(vec![text.into()]) };
    let text = texts::read(file.as_ref()).map_err(|failure| failure.message)?;
    if let Some(kind) = texts::kind(&text) {
        return Err(format!(
            "`{file}` is {kind}, and each line of such a file is a pattern, as `layer.0/*` or `type:MatMul`"
        ));
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.map(KeepPattern::from).collect())
}

fn failure(model: &Model, error: &ConvertError) -> Failure {
    match error {
        ConvertError::Interface(error) => input::refused_name(model, error),
        ConvertError::IllTyped(_) => {
            Failure::new(error.to_string()).help("keep these layers, with those that compute their shapes: --keep NAME")
        }
        ConvertError::Edit(error) => Failure::new(error.to_string()),
        ConvertError::Keep(error) => unmatched("--keep", error),
        ConvertError::Only(error) => unmatched("--only", error),
        error => {
            Failure::new(error.to_string()).help("this is a bug in typelift, not in the model; nothing was written")
        }
    }
}

/// The failure for a pattern that means no layers, which may be the name of a file of patterns.
fn unmatched(option: &str, error: &KeepError) -> Failure {
    let KeepError::Unmatched { pattern, near } = error else { return Failure::new(format!("{option} {error}")) };
    let failure = Failure::new(format!("{option} `{pattern}` matches no layer"));
    let file = Path::new(pattern).is_file().then(|| format!("@{pattern}"));
    match file.as_ref().or(near.as_ref()) {
        Some(near) => failure.did_you_mean(pattern, near),
        None => failure,
    }
}
