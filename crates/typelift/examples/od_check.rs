use typelift::{Severity, Weights, check, infer, xml};
fn main() {
    let mut total = 0;
    for path in std::env::args().skip(1) {
        let path = std::path::PathBuf::from(path);
        let text = std::fs::read_to_string(&path).unwrap();
        let reading = xml::parse(text.as_str().into());
        let mut list = reading.diagnostics;
        if let Some(mut model) = reading.model {
            model.weights = Weights::beside(&path).unwrap();
            list.extend(infer(&mut model));
            let t = std::time::Instant::now();
            list.extend(check(&model));
            if std::env::var("TIME").is_ok() {
                println!("{:?} {}", t.elapsed(), path.display());
            }
        }
        let mut shown = 0;
        for d in &list {
            if d.severity == Severity::Note && std::env::var("NOTES").is_err() {
                continue;
            }
            total += 1;
            shown += 1;
            if shown > 4 {
                continue;
            }
            let at = d.labels.first().map(|l| l.span.line_column(&text));
            println!(
                "{} {:?} {d} {:?} {:?} {:?}",
                path.file_name().unwrap().to_str().unwrap(),
                at,
                d.labels.iter().skip(1).map(|l| (l.span.line_column(&text), &l.message)).collect::<Vec<_>>(),
                d.notes,
                d.help
            );
        }
        if shown > 4 {
            println!("   ... {shown}");
        }
    }
    println!("{total}");
}
