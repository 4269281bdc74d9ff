//! Replacement of scatter operations with a reduction: each position is compared with each update.

use super::facts::{Written, axis_of, dims, integers, is_true, list, rank};
use crate::rewrite::Match;

/// Maximum number of such comparisons.
const MOST: u64 = 1 << 28;

/// Comparison of all elements with all updates, which are along `axis`. An element without an update keeps its value.
struct Hits {
    data: String,
    updates: String,
    /// Mask that is true where an update belongs to an element.
    mask: String,
    axis: usize,
    /// The padding that extends the reduced tensor to the shape of the data, if it is needed.
    pad: Option<String>,
}

impl Hits {
    fn reduced(&self, how: &str, what: &str) -> String {
        let reduced = format!("{how}({what}, {}) {{keep_dims=false}}", self.axis);
        match &self.pad {
            None => reduced,
            Some(shape) => {
                let zeros = format!("Multiply({shape}, 0)");
                let missing = format!("Subtract({shape}, ShapeOf-3({reduced}) {{output_type=i64}})");
                format!("Pad-1({reduced}, {zeros}, {missing}) {{pad_mode=constant}}")
            }
        }
    }

    /// Writes the updated data. `keep` is true if the old value of an updated element is included in the reduction.
    fn write(&self, reduction: &str, keep: bool) -> Written {
        let Self { data, updates, mask, axis, .. } = self;
        let filled = |neutral: &str| format!("Select({mask}, {updates}, {neutral})");
        // This reduction has no neutral value, so other values of the tensor replace missing updates.
        let any = |reduce: &str| format!("{reduce}({updates}, {axis}) {{keep_dims=true}}");
        let sum = self.reduced("ReduceSum", &filled("0"));
        let count = self.reduced("ReduceSum", &format!("Convert({mask}) {{destination_type=i32}}"));
        let (reduced, merge) = match reduction {
            "sum" | "mean" => (sum, "Add"),
            "sub" => (sum, "Subtract"),
            "prod" => (self.reduced("ReduceProd", &filled("1")), "Multiply"),
            "min" => (self.reduced("ReduceMin", &filled(&any("ReduceMax"))), "Minimum"),
            "max" => (self.reduced("ReduceMax", &filled(&any("ReduceMin"))), "Maximum"),
            _ => return Err(format!("reduction={reduction} is not known")),
        };
        let mut value = if keep { format!("{merge}({data}, {reduced})") } else { reduced };
        if reduction == "mean" {
            let parts = if keep { format!("Add({count}, 1)") } else { format!("Maximum({count}, 1)") };
            value = format!("Divide({value}, ConvertLike({parts}, {data})) {{m_pythondiv=true}}");
        }
        Ok(format!("Select(Greater({count}, 0), {value}, {data})"))
    }
}

/// Writes `ScatterElementsUpdate-12`. The indices must count from the front.
pub(super) fn elements(m: &Match, indices: &str) -> Written {
    let rank = rank(m, "x")?;
    let Some(&[axis]) = integers(m, "a").as_deref() else { return Err("the axis is not a constant".to_owned()) };
    let axis = axis_of(axis, || Ok(rank))? as usize;
    let (data, picks) = (dims(m, "x", 0), dims(m, "i", 0));
    if let (Ok(data), Ok(picks)) = (&data, &picks) {
        few(picks.iter().product::<u64>().saturating_mul(data[axis]))?;
    }
    let shape = "ShapeOf-3(x) {output_type=i64}";
    let size = match &data {
        Ok(data) => data[axis].to_string(),
        Err(_) => format!("Gather-7({shape}, {axis}, 0)"),
    };
    let mut places = format!("Range-4(0, {size}, 1) {{output_type=i64}}");
    if axis + 1 < rank {
        places = format!("Unsqueeze({places}, {})", list(1..rank - axis));
    }
    let others_agree = data.ok().zip(picks.ok()).is_some_and(|(data, picks)| {
        data.iter().zip(&picks).enumerate().all(|(at, (data, picks))| at == axis || data == picks)
    });
    let hits = Hits {
        data: "x".to_owned(),
        updates: format!("Unsqueeze(u, [{}])", axis + 1),
        mask: format!("Equal(Unsqueeze(Convert({indices}) {{destination_type=i64}}, [{}]), {places})", axis + 1),
        axis,
        pad: (!others_agree).then(|| shape.to_owned()),
    };
    hits.write(&m.attribute("r")?.to_ascii_lowercase(), is_true(m.attribute("v")?))
}

/// Writes `ScatterNDUpdate-15` with a reduction. The indexed dimensions are merged into one.
pub(super) fn nd(m: &Match) -> Written {
    let (rank, picks) = (rank(m, "x")?, rank(m, "i")?);
    let depth = m.shape("i").and_then(|shape| shape.dims()?.last()?.value());
    let depth = depth.and_then(|depth| usize::try_from(depth).ok()).filter(|depth| (1..=rank).contains(depth));
    let depth = depth.ok_or("the last dimension of the indices is not known")?;
    let shape = "ShapeOf-3(x) {output_type=i64}";
    let known = dims(m, "x", 0).ok();
    if let (Some(data), Ok(picks)) = (&known, dims(m, "i", 0)) {
        few(data.iter().product::<u64>().saturating_mul(picks[..picks.len() - 1].iter().product()))?;
    }
    let part = |from: usize, to: usize| match &known {
        Some(dims) => list(&dims[from..to]),
        None => format!("Gather-1({shape}, {}, 0)", list(from..to)),
    };
    let product = |from: usize, to: usize| match &known {
        _ if from == to => "[1]".to_owned(),
        Some(dims) => list([dims[from..to].iter().product::<u64>()]),
        None => format!("ReduceProd({}, [0]) {{keep_dims=true}}", part(from, to)),
    };
    let join = |parts: &[String]| format!("Concat({}) {{axis=0}}", parts.join(", "));
    let flat = |tensor: &str, first: String| {
        format!("Reshape({tensor}, {}) {{special_zero=false}}", join(&[first, product(depth, rank)]))
    };
    let strides: Vec<_> = (0..depth).map(|axis| product(axis + 1, depth)).collect();
    let indices = "Convert(i) {destination_type=i64}";
    let front = format!("Select(Less({indices}, 0), Add({indices}, {}), {indices})", part(0, depth));
    let place = format!("ReduceSum(Multiply({front}, {}), {}) {{keep_dims=false}}", join(&strides), picks - 1);
    let count = match &known {
        Some(dims) => dims[..depth].iter().product::<u64>().to_string(),
        None => format!("ReduceProd({}, [0]) {{keep_dims=false}}", part(0, depth)),
    };
    let hits = Hits {
        data: flat("x", product(0, depth)),
        updates: format!("Unsqueeze({}, [1])", flat("u", "[-1]".to_owned())),
        mask: format!(
            "Unsqueeze(Equal(Reshape({place}, [-1, 1]) {{special_zero=false}}, Range-4(0, {count}, 1) {{output_type=i64}}), [2])"
        ),
        axis: 0,
        pad: None,
    };
    let written = hits.write(&m.attribute("r")?.to_ascii_lowercase(), true)?;
    Ok(format!("Reshape({written}, {}) {{special_zero=false}}", part(0, rank)))
}

fn few(comparisons: u64) -> Result<(), String> {
    if comparisons <= MOST {
        Ok(())
    } else {
        Err(format!("without the reduction it needs {comparisons} comparisons, which is too many"))
    }
}
