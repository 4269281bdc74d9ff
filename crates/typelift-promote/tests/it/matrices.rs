//! The complete matrix of every rule set, in the layout of the vendors' own tables: row with column.
#![allow(clippy::panic, clippy::unwrap_used, reason = "test helpers fail by panicking")]

use typelift_promote::{Category, Operand, RuleSet, openvino};

/// Returns the results of an operation on rows of one category with columns of another; `-` where it is refused.
fn matrix(rules: &RuleSet, operation: &str, row: Category, column: Category) -> String {
    let operands = |category| -> Vec<Operand> {
        match category {
            Category::Number => ["True", "int", "float", "complex"].map(|word| rules.operand(word).unwrap()).to_vec(),
            category => rules.types().map(|element_type| Operand::new(element_type, category)).collect(),
        }
    };
    let name = |operand: Operand| operand.number_name().unwrap_or_else(|| rules.type_name(operand.element_type));
    let takes = |operand: &Operand| operand.is_number() || rules.promote(operation, &[*operand, *operand]).is_ok();
    let columns: Vec<_> = operands(column).into_iter().filter(takes).collect();
    let width = |operand: Operand| {
        let cells = operands(row).into_iter().filter_map(move |row| {
            rules.promote(operation, &[row, operand]).ok().map(|promotion| rules.type_name(promotion.result).len())
        });
        cells.max().unwrap_or(0).max(name(operand).len()) + 2
    };
    let mut text = format!("{} {operation}, {row:?} with {column:?}\n\n{:>18}", rules.name(), "");
    for &operand in &columns {
        text += &format!("{:>1$}", name(operand), width(operand));
    }
    for row in operands(row).into_iter().filter(takes) {
        text += &format!("\n{:>18}", name(row));
        for &column in &columns {
            let answer = rules.promote(operation, &[row, column]);
            let cell = answer.map_or("-", |promotion| rules.type_name(promotion.result));
            text += &format!("{:>1$}", cell, width(column));
        }
    }
    text
}

const CATEGORIES: [Category; 3] = [Category::Dimensioned, Category::ZeroDim, Category::Number];

#[test]
fn openvino() {
    let settings = [(false, false), (true, false), (false, true), (true, true)];
    for (promote_unsafe, pytorch_scalar_promotion) in settings {
        let rules = RuleSet::OpenVino(openvino::Options {
            promote_unsafe,
            pytorch_scalar_promotion,
            ..openvino::Options::default()
        });
        let column = if pytorch_scalar_promotion { Category::ZeroDim } else { Category::Dimensioned };
        let safety = if promote_unsafe { "unsafe" } else { "safe" };
        let name = format!("openvino_{safety}{}", if pytorch_scalar_promotion { "_with_scalar" } else { "" });
        insta::assert_snapshot!(name, matrix(&rules, "add", Category::Dimensioned, column));
    }
}

#[test]
fn pytorch() {
    let rules = RuleSet::from_name("pytorch").unwrap();
    for column in CATEGORIES {
        insta::assert_snapshot!(
            format!("pytorch_{column:?}"),
            matrix(&rules, "result_type", Category::Dimensioned, column)
        );
    }
    insta::assert_snapshot!("pytorch_div", matrix(&rules, "div", Category::Dimensioned, Category::Dimensioned));
}

#[test]
fn paddle() {
    for name in ["paddle", "paddle-2.6"] {
        let rules = RuleSet::from_name(name).unwrap();
        for column in CATEGORIES {
            let text = matrix(&rules, "operator +", Category::Dimensioned, column);
            insta::assert_snapshot!(format!("{name}_{column:?}"), text);
        }
    }
}
