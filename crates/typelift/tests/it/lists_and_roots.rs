//! Rules with lists, with several roots, and with conditions on names and shapes.

use typelift::Model;
use typelift::rewrite::{Pattern, Replacement, Rule};

fn model(text: &str) -> Model {
    let mut model = Model::from_text(text).unwrap_or_else(|error| panic!("{error}"));
    let findings = typelift::infer(&mut model);
    assert!(findings.iter().all(|finding| !finding.is_error()), "{findings:?}");
    model
}

fn rule(text: &str) -> Rule {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the model after one rule, and the number of applications.
fn rewritten(text: &str, rule_text: &str) -> (String, usize) {
    let mut model = model(text);
    let report = model.rewrite(&[rule(rule_text)]).unwrap_or_else(|error| panic!("{error}"));
    model.graph().verify().unwrap();
    assert!(typelift::infer(&mut model).iter().all(|finding| !finding.is_error()));
    (model.to_text(), report.applied.len())
}

/// Returns the reason why a rule does not match at a layer.
fn reason(text: &str, rule_text: &str, layer: &str) -> String {
    model(text).explain(&rule(rule_text), Some(layer)).unwrap().to_string()
}

const JOINED: &str = "\
a = Parameter : f32[1,2]
b = Parameter : f32[1,3]
c = Parameter : f32[1,4]
d = Parameter : f32[1,5]
inner = Concat(b, c) {axis=1}
outer = Concat(a, inner, d) {axis=1}
r = Result(outer)
";

#[test]
fn a_list_is_any_number_of_inputs_in_their_order() {
    let flat = "Concat(before..., Concat(own...) {axis=$a}, after...) {axis=$a} => Concat(before..., own..., after...) {axis=$a}";
    let (text, count) = rewritten(JOINED, flat);
    assert!(text.contains("outer = Concat(0, 1, 2, 3) {axis=1} : f32[1,14]"), "{text}");
    assert_eq!(count, 1);
    // The list is at the start, at the end, and alone among the inputs.
    for inputs in ["inner, a, d", "a, d, inner", "inner"] {
        let (text, count) = rewritten(&JOINED.replace("a, inner, d", inputs), flat);
        assert!(text.contains("outer = Concat(") && !text.contains("inner"), "{text}");
        assert_eq!(count, 1);
    }
    let (_, count) =
        rewritten(&JOINED.replace("(b, c) {axis=1}", "(b, b) {axis=0}").replace("a, inner, d", "inner"), flat);
    assert_eq!(count, 0, "the axes differ");
    let (text, count) = rewritten(&JOINED.replace("a, inner, d", "inner, a, inner"), flat);
    assert!(text.contains("outer = Concat(1, 2, 0, 1, 2) "), "{text}");
    assert_eq!(count, 2);
    // Lists without a name need not be equal.
    let any = "Concat(_..., Concat(x, y) {axis=$a}, _...) {axis=$a} => Concat(x, y) {axis=$a}";
    assert!(reason(JOINED, any, "outer").contains("\n  matches"), "{}", reason(JOINED, any, "outer"));
    let used = JOINED.replace("r = Result(outer)", "r = Result(outer)\ns = Result(inner)");
    assert_eq!(rewritten(&used, flat).1, 0);
}

#[test]
fn a_list_that_is_there_twice_is_the_same_tensors() {
    let both = "Add(Concat(xs...) {axis=$a}, Concat(xs...) {axis=$a}) => Multiply(Concat(xs...) {axis=$a}, 2)";
    let text = "\
a = Parameter : f32[1,2]
b = Parameter : f32[1,2]
p = Concat(a, b) {axis=1}
q = Concat(a, b) {axis=1}
s = Add(p, q)
r = Result(s)
";
    assert_eq!(rewritten(text, both).1, 1);
    assert_eq!(rewritten(&text.replace("q = Concat(a, b)", "q = Concat(b, a)"), both).1, 0);
}

#[test]
fn a_list_of_outputs_takes_tensors_or_a_layer() {
    let text = "\
a = Parameter : f32[1,2]
b = Parameter : f32[1,2]
axis = Const(1) : i64[]
all = Concat(a, b) {axis=1}
parts = Split(all, axis) {num_splits=2}
x = Relu(parts.0)
y = Relu(parts.1)
r = Result(x)
s = Result(y)
";
    let undone = "(ys...) = Split(Concat(xs...) {axis=$a}, n) {num_splits=$k} => (xs...) if axis($a, root) == axis(n, root) && count(xs) == $k";
    let (result, count) = rewritten(text, undone);
    assert!(result.contains("x = ReLU(0)") && result.contains("y = ReLU(1)") && !result.contains("Split"), "{result}");
    assert_eq!(count, 1);
    // Parts of other lengths are refused, and the model is unchanged.
    let uneven = text.replace("a = Parameter : f32[1,2]", "a = Parameter : f32[1,4]");
    let error = model(&uneven).rewrite(&[rule(undone)]).unwrap_err().to_string();
    assert!(error.contains("from f32[1,3] to f32[1,4]"), "{error}");
    let three = text.replace("Concat(a, b)", "Concat(a, b, b)");
    assert_eq!(rewritten(&three, undone).1, 0, "two outputs, three tensors");
    let unequal = "(ys...) = Split(Concat(xs...), n) => (xs...)";
    let error = model(&three).rewrite(&[rule(unequal)]).unwrap_err().to_string();
    assert!(error.contains("2 outputs cannot be replaced by 3 tensors"), "{error}");
    let morphed = "(ys...) = Split(x, n) {num_splits=$k} => (ys...) = VariadicSplit(x, n, [2, -1]) if count(ys) == 2";
    let (result, count) = rewritten(text, morphed);
    assert!(result.contains("parts = VariadicSplit(3, 2, "), "{result}");
    assert_eq!(count, 1);
}

const HALVES: &str = "\
x = Parameter : f32[2,8]
zero = Const([0]) : i64[1]
three = Const([3]) : i64[1]
end = Const([8]) : i64[1]
one = Const([1]) : i64[1]
front = Slice-8(x, zero, three, one, one)
back = Slice-8(x, three, end, one, one)
a = Relu(front)
b = Sigmoid(back)
r = Result(a)
s = Result(b)
";
const SPLIT: &str = "a = Slice(x, [0], h: const, [1], n: const), b = Slice(x, h, e: const, [1], n) \
    => (a, b) = VariadicSplit(x, reshape(n, []), concat(h, [-1])) if all(e >= dim(x, n))";

#[test]
fn several_roots_are_replaced_together() {
    let (text, count) = rewritten(HALVES, SPLIT);
    assert_eq!(count, 1);
    assert!(!text.contains("Slice") && text.contains(" = VariadicSplit(0, "), "{text}");
    assert!(text.contains(" : f32[2,3], f32[2,5]"), "{text}");
    for (from, to) in [("back = Slice-8(x, three, end", "back = Slice-8(x, one, end"), ("Const([8])", "Const([7])")] {
        assert_eq!(rewritten(&HALVES.replace(from, to), SPLIT).1, 0);
    }
    // Each of three pairs finds its own partner.
    let more: String = (1..3)
        .map(|at| {
            let mut text = HALVES.to_owned();
            for name in ["zero", "three", "end", "one", "front", "back", "x", "a", "b", "r", "s"] {
                text = text
                    .lines()
                    .map(|line| {
                        line.split_inclusive([' ', '(', ')', ','])
                            .map(|word| {
                                let bare = word.trim_end_matches([' ', '(', ')', ',']);
                                if bare == name { word.replace(bare, &format!("{name}{at}")) } else { word.to_owned() }
                            })
                            .collect::<String>()
                            + "\n"
                    })
                    .collect();
            }
            text
        })
        .collect();
    assert_eq!(rewritten(&(HALVES.to_owned() + &more), SPLIT).1, 3);
}

#[test]
fn roots_that_are_computed_from_each_other_are_left_alone() {
    let text = "\
x = Parameter : f32[2]
y = Relu(x)
z = Tanh(y)
w = Add(x, z)
r = Result(w)
s = Result(y)
";
    let pair = "a = Relu(x), b = Add(x, z) => (Tanh(z), Tanh(x))";
    assert_eq!(rewritten(text, pair).1, 0);
    assert!(reason(text, pair, "y").contains("one of the roots depends on another"), "{}", reason(text, pair, "y"));
    assert_eq!(rewritten(&text.replace("Tanh(y)", "Tanh(x)"), pair).1, 1);
}

#[test]
fn explain_says_which_root_or_list_is_not_there() {
    let text = "x = Parameter : f32[2]\na = Relu(x)\nb = Concat(a, x) {axis=0}\nr = Result(b)\n";
    let why = reason(text, "a = Relu(x), b = Tanh(x) => (x, x)", "a");
    assert!(why.contains("no layer that depends on Parameter 0 `x` matches"), "{why}");
    let why = reason(text, "Concat(xs..., Concat(ys...)) => Concat(xs..., ys...)", "b");
    assert!(why.contains("Parameter 0 `x` is here"), "{why}");
    let why = reason(text, "Concat(x, y..., x) => Concat(x, y...)", "b");
    assert!(why.contains("is not the same tensor"), "{why}");
}

#[test]
fn a_root_is_found_downstream_of_other_layers() {
    let text = "\
x = Parameter : f32[2]
c = Const(2) : f32[]
p = Exp(x)
q = Exp(x)
u = Multiply(p, c)
v = Tanh(q)
r = Result(u)
s = Result(v)
";
    let pair = "a = Exp(x) * 2, b = Tanh(Exp(x)) => (Add(Exp(x), Exp(x)), Tanh(Exp(x)))";
    let (result, count) = rewritten(text, pair);
    assert_eq!((count, result.matches(" = Exp(").count()), (1, 1), "{result}");
}

#[test]
fn conditions_say_what_names_and_shapes_are_like() {
    let text = "\
x = Parameter : f32[?,4,1,1]
\"net/attn/a\" = Relu(x)
\"net/mlp/b\" = Relu(\"net/attn/a\")
r = Result(\"net/mlp/b\")
";
    let named = "Relu(x) => Tanh(x) if name(root) like \"*/attn/*\"";
    let (result, count) = rewritten(text, named);
    assert_eq!((count, result.matches("Tanh").count()), (1, 1), "{result}");
    let why = reason(text, named, "net/mlp/b");
    assert!(why.contains("is false: it is `net/mlp/b`"), "{why}");
    let holds = |like: &str| rewritten(text, &format!("Relu(x) => Tanh(x) if shape(x) like {like}")).1;
    for like in [
        "[?, 4, 1, 1]",
        "[?, C, 1...]",
        "[..., 1]",
        "[?, 4, 1, 1, 1?]",
        "[?, 4...]",
        "[...]",
        "[?, C, d, d]",
        "[2?, ?, 4, 1...]",
    ] {
        let fits = like != "[?, 4...]";
        assert_eq!(holds(like), if fits { 2 } else { 0 }, "{like}");
    }
    for like in ["[1, 4, 1, 1]", "[n, 4, 1, 1]", "[?, 4, 1]", "[?, C, C, 1]", "[]"] {
        assert_eq!(holds(like), 0, "{like}");
    }
    let bound = "Relu(x) => Reshape(x, concat([-1], reshape(C, [1]))) {special_zero=false} if shape(x) like [?, C, 1...] && C > 3";
    let flat = model(&text.replace("Relu(\"net/attn/a\")", "Tanh(\"net/attn/a\")"));
    let error = flat.clone().rewrite(&[rule(bound)]).unwrap_err().to_string();
    assert!(error.contains("f32[?,4]"), "{error}");
}

#[test]
fn code_is_given_lists_and_takes_several_roots() {
    let flat = "Concat(xs...) {axis=$a}".parse::<Pattern>().unwrap().to(|m, graph| {
        assert_eq!(m.tensors("x").unwrap_err().to_string(), "there is no list `x`; the match has `xs`");
        let reversed: Vec<_> = m.tensors("xs")?.iter().rev().copied().collect();
        let concat = typelift::graph::NewLayer::new("Concat", "opset1").with_attribute("axis", m.attribute("a")?);
        Ok(graph.add(concat, &reversed)?.into())
    });
    let mut reversed = model(JOINED);
    assert_eq!(reversed.rewrite(&[flat.once()]).unwrap().applied.len(), 2);
    let pair: Pattern = "a = Relu(x), b = Sigmoid(x)".parse().unwrap();
    let text = "x = Parameter : f32[2]\na = Relu(x)\nb = Sigmoid(x)\nc = Add(a, b)\nr = Result(c)\n";
    let swapped = pair.clone().to(|m, _| Ok(Replacement::Tensors(vec![m.tensor("x")?, m.tensor("x")?])));
    let mut both = model(text);
    assert_eq!(both.rewrite(&[swapped]).unwrap().applied.len(), 1);
    assert!(both.to_text().contains("c = Add(0, 0)"), "{}", both.to_text());
    let one = pair.to(|m, _| Ok(m.tensor("x")?.into()));
    let error = model(text).rewrite(&[one]).unwrap_err().to_string();
    assert!(error.contains("the pattern has 2 roots, so the replacement needs one tensor for each"), "{error}");
}

#[test]
fn what_cannot_be_read_says_where_and_why() {
    let texts = [
        "Concat(xs..., y?) => y",
        "Concat(xs...) => xs",
        "Concat(xs...) => Relu(ys...)",
        "Concat(x, x...) => x",
        "Concat(xs..., ...) => Concat(xs...)",
        "Concat(xs...) => Concat(xs...) if count(x) == 2",
        "Concat(xs...) => Concat(xs...) if rank(xs) == 2",
        "a = Relu(x), b = Tanh(y) => (x, y)",
        "a = Relu(x), Tanh(x) => (x, x)",
        "a = Relu(x), a = Tanh(x) => (x, x)",
        "a = Relu(x), b = Tanh(a) => (x, x)",
        "a = Relu(x), b = Tanh(x) => x",
        "a = Relu(x), b = Tanh(x) => (x, x, x)",
        "(xs...) = Split(x, 0) => (ys...) = Split(x, 0)",
        "Relu(x) => x if name(root) == \"a\"",
        "Relu(x) => x if shape(x) like [n?]",
        "Relu(x) => x if shape(x) like [x, 3]",
        "Relu(x) => x if shape(x) like [root]",
        "Concat(_...) => Concat(_...)",
        "Relu(x) => x if shape(x) like [..., 1?, 2?, 3?, 4?]",
        "Relu(x) => x if shape(x) like 3",
    ];
    let errors = texts.map(|text| format!("{}\n", text.parse::<Rule>().map(drop).unwrap_err()));
    insta::assert_snapshot!(errors.join("\n"));
}
