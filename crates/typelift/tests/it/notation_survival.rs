//! Laws that hold for any text as a listing, a rule and statements, for tests and fuzz targets.

use typelift::Model;
use typelift::rewrite::{Rule, Script};

const MODEL: &str = "
    x = Parameter : f32[2,3]
    c = Const(2) : f32[]
    y = Divide(x, c)
    z = Relu(y)
    r = Result(z)
";

/// Panics if a law is violated: a listing that was read prints the same again, and statements are applied to a model or
/// leave it unchanged.
pub(crate) fn survive(text: &str) {
    if let Ok(model) = Model::from_text(text) {
        let listing = model.to_text();
        let again = Model::from_text(&listing).unwrap_or_else(|error| panic!("{error}\n{listing}"));
        assert_eq!(again.to_text(), listing);
    }
    let model = Model::from_text(MODEL).expect("a good listing");
    if let Ok(rule) = text.parse::<Rule>() {
        let explained = model.explain(&rule, None).map(|explanation| explanation.to_string());
        assert!(explained.is_ok_and(|text| !text.is_empty()));
        let mut rewritten = model.clone();
        match rewritten.rewrite(&[rule]) {
            Ok(_) => assert_eq!(rewritten.graph().verify(), Ok(())),
            Err(_) => assert_eq!(rewritten.to_text(), model.to_text()),
        }
    }
    if let Ok(script) = text.parse::<Script>()
        && let Ok((model, _)) = script.run(model)
    {
        assert_eq!(model.graph().verify(), Ok(()));
    }
}
