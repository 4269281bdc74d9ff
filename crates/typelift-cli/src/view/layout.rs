//! Where the boxes of a picture go.

use rust_sugiyama::configure::{Config, RankingType};

/// Boxes with their sizes, and arrows between them.
pub(super) struct Picture<'a> {
    pub(super) sizes: &'a [(f64, f64)],
    pub(super) arrows: &'a [(usize, usize)],
}

/// Beyond this many boxes, fewer crossings are not worth their time.
const LARGE: usize = 400;
/// The space between parts that no arrow joins.
const GAP: f64 = 60.0;

/// The middle of each box.
pub(super) fn places(picture: &Picture<'_>) -> Vec<(f64, f64)> {
    let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let boxes: Vec<_> = picture.sizes.iter().enumerate().map(|(at, &size)| (number(at), size)).collect();
    let arrows: Vec<_> = picture.arrows.iter().map(|&(from, to)| (number(from), number(to))).collect();
    let config = Config {
        vertex_spacing: 34.0,
        dummy_size: 0.4,
        transpose: boxes.len() <= LARGE,
        ranking_type: if boxes.len() <= LARGE { RankingType::MinimizeEdgeLength } else { RankingType::Up },
        ..Config::default()
    };
    let mut places = vec![(0.0, 0.0); boxes.len()];
    let mut parts = rust_sugiyama::from_vertices_and_edges(&boxes, &arrows, &config);
    // The largest part first, single boxes last.
    parts.sort_by_key(|(part, ..)| std::cmp::Reverse(part.len()));
    let mut left = 0.0;
    for (part, ..) in parts {
        let reach = |pick: fn(f64, f64) -> f64, start: f64, edge: f64| {
            part.iter().map(|&(at, (x, _))| x + edge * picture.sizes[at].0 / 2.0).fold(start, pick)
        };
        let (first, last) = (reach(f64::min, f64::INFINITY, -1.0), reach(f64::max, f64::NEG_INFINITY, 1.0));
        let top = part.iter().map(|&(at, (_, y))| y - picture.sizes[at].1 / 2.0).fold(f64::INFINITY, f64::min);
        for &(at, (x, y)) in &part {
            places[at] = (x - first + left, y - top);
        }
        left += last - first + GAP;
    }
    places
}
