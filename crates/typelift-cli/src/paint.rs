//! Colours of element types in text for reading.

use anstyle::{AnsiColor, Color, Style};
use typelift::promote::{ElementType, Kind};

pub(crate) fn color(ty: ElementType) -> Style {
    let color = match ty.kind() {
        Kind::Float => AnsiColor::Blue,
        Kind::Signed => AnsiColor::Green,
        Kind::Unsigned => AnsiColor::Yellow,
        Kind::Boolean => AnsiColor::Magenta,
        _ => return Style::new(),
    };
    Style::new().fg_color(Some(Color::Ansi(color)))
}

/// Colours each type with its shape, `f32[2,?]`, by the kind of the type. Headings, which end in a colon, are bold.
pub(crate) fn types(text: &str) -> String {
    const HEADING: Style = Style::new().bold();
    let mut painted = String::with_capacity(text.len() + text.len() / 8);
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches('\n');
        if content.ends_with(':') && !content.starts_with(' ') && !content.contains('[') {
            painted.extend([&format!("{HEADING}{content}{HEADING:#}"), &line[content.len()..]]);
        } else {
            paint_line(&mut painted, line);
        }
    }
    painted
}

fn paint_line(painted: &mut String, line: &str) {
    let mut rest = line;
    while let Some(open) = rest.find('[') {
        let word = rest[..open].trim_end_matches(|c: char| c.is_ascii_alphanumeric()).len();
        let end = rest[open..].find(']').map_or(rest.len(), |close| open + close + 1);
        let style = ElementType::from_name(&rest[word..open]).map_or(Style::new(), color);
        painted.extend([&rest[..word], &format!("{style}{}{style:#}", &rest[word..end])]);
        rest = &rest[end..];
    }
    painted.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_coloured_and_the_rest_is_kept() {
        let text = "sources of `é[1]`:\nf32[2,?] `a` (Add 3): x\n  i64[] `[b`\n";
        let painted = types(text);
        assert_eq!(anstream::adapter::strip_str(&painted).to_string(), text);
        assert!(painted.contains("\u{1b}[34mf32[2,?]\u{1b}[0m"), "{painted:?}");
        assert_eq!(types("by way of:\n"), "\u{1b}[1mby way of:\u{1b}[0m\n");
    }
}
