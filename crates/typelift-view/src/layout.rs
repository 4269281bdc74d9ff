//! Placement of the boxes of a picture in rows from top to bottom, each box below its producers. The time grows
//! linearly with boxes and arrows, and there is no recursion.

/// Boxes with their sizes, and arrows between them.
pub(crate) struct Picture<'a> {
    pub(crate) sizes: &'a [(f64, f64)],
    pub(crate) arrows: &'a [(usize, usize)],
}

/// The space between boxes of a row, and between rows.
const GAP: f64 = 34.0;
/// The space between parts that no arrow joins.
const MARGIN: f64 = 60.0;
/// The width of a row of parts in relation to its height.
const ASPECT: f64 = 1.6;
/// The width of an arrow's lane past other boxes.
const LANE: f64 = 10.0;
/// The number of rounds that reorder rows and move boxes towards their neighbours.
const ROUNDS: usize = 8;

/// Returns the centre of each box.
pub(crate) fn places(picture: &Picture<'_>) -> Vec<(f64, f64)> {
    let mut places = vec![(0.0, 0.0); picture.sizes.len()];
    let mut parts: Vec<_> = parts(picture).iter().map(|(boxes, arrows)| Part::new(picture, boxes, arrows)).collect();
    // The largest part is placed first, single boxes last.
    parts.sort_by_key(|part| std::cmp::Reverse(part.boxes.len()));
    let area: f64 = parts.iter().map(|part| (part.size.0 + MARGIN) * (part.size.1 + MARGIN)).sum();
    let width = parts.iter().map(|part| part.size.0).fold((area * ASPECT).sqrt(), f64::max);
    let (mut left, mut top, mut height) = (0.0, 0.0, 0.0_f64);
    for part in parts {
        if left > 0.0 && left + part.size.0 > width {
            (left, top, height) = (0.0, top + height + MARGIN, 0.0);
        }
        for (&at, (x, y)) in part.boxes.iter().zip(&part.places) {
            places[at] = (x + left, y + top);
        }
        left += part.size.0 + MARGIN;
        height = height.max(part.size.1);
    }
    places
}

/// Boxes, and the arrows between them.
type Joined = (Vec<usize>, Vec<(usize, usize)>);

/// Returns the connected parts: boxes and arrows, by their positions in the list of boxes.
fn parts(picture: &Picture<'_>) -> Vec<Joined> {
    let count = picture.sizes.len();
    let mut next = vec![Vec::new(); count];
    for &(from, to) in picture.arrows {
        next[from].push(to);
        next[to].push(from);
    }
    let mut part_of = vec![(usize::MAX, 0); count];
    let mut parts: Vec<Joined> = Vec::new();
    for start in 0..count {
        if part_of[start].0 != usize::MAX {
            continue;
        }
        part_of[start] = (parts.len(), 0);
        let mut boxes = vec![start];
        let mut done = 0;
        while let Some(&at) = boxes.get(done) {
            for &to in &next[at] {
                if part_of[to].0 == usize::MAX {
                    part_of[to] = (parts.len(), boxes.len());
                    boxes.push(to);
                }
            }
            done += 1;
        }
        parts.push((boxes, Vec::new()));
    }
    for &(from, to) in picture.arrows.iter().filter(|(from, to)| from != to) {
        parts[part_of[from].0].1.push((part_of[from].1, part_of[to].1));
    }
    parts
}

/// Connected boxes with their coordinates.
struct Part {
    boxes: Vec<usize>,
    places: Vec<(f64, f64)>,
    size: (f64, f64),
}

impl Part {
    fn new(picture: &Picture<'_>, boxes: &[usize], arrows: &[(usize, usize)]) -> Self {
        let sizes: Vec<(f64, f64)> = boxes.iter().map(|&at| picture.sizes[at]).collect();
        let (ranks, arrows) = ranks(sizes.len(), arrows);
        let mut rows = Rows::new(&sizes, &ranks, &arrows);
        rows.untangle();
        let across = rows.across();
        let heights: Vec<f64> =
            rows.rows.iter().map(|row| row.iter().map(|&at| rows.height(at)).fold(0.0, f64::max)).collect();
        let mut middles = Vec::new();
        let mut bottom = 0.0;
        for height in heights {
            middles.push(bottom + height / 2.0);
            bottom += height + GAP;
        }
        let edge = |side: f64| (0..sizes.len()).map(move |at| (at, side));
        let left = edge(-0.5).map(|(at, side)| across[at] + side * sizes[at].0).fold(f64::INFINITY, f64::min);
        let right = edge(0.5).map(|(at, side)| across[at] + side * sizes[at].0).fold(f64::NEG_INFINITY, f64::max);
        let places = (0..sizes.len()).map(|at| (across[at] - left, middles[ranks[at]])).collect();
        Self { boxes: boxes.to_vec(), places, size: (right - left, bottom - GAP) }
    }
}

/// Assigns a row to each box, below the boxes that lead to it. Returns the arrows too, all of them downwards: an arrow
/// that closes a cycle is reversed.
fn ranks(count: usize, arrows: &[(usize, usize)]) -> (Vec<usize>, Vec<(usize, usize)>) {
    let (mut waits, mut next) = (vec![0_usize; count], vec![Vec::new(); count]);
    for &(from, to) in arrows {
        waits[to] += 1;
        next[from].push(to);
    }
    let mut order = Vec::with_capacity(count);
    let mut position = vec![usize::MAX; count];
    let mut ready: Vec<usize> = (0..count).rev().filter(|&at| waits[at] == 0).collect();
    let mut first = 0;
    while order.len() < count {
        // In a cycle one box has to come first.
        let at = ready.pop().unwrap_or_else(|| {
            while position[first] != usize::MAX {
                first += 1;
            }
            first
        });
        if position[at] != usize::MAX {
            continue;
        }
        position[at] = order.len();
        order.push(at);
        for &to in &next[at] {
            waits[to] -= 1;
            if waits[to] == 0 {
                ready.push(to);
            }
        }
    }
    let down = |&(from, to): &(usize, usize)| if position[from] < position[to] { (from, to) } else { (to, from) };
    let mut arrows: Vec<_> = arrows.iter().map(down).collect();
    arrows.sort_unstable_by_key(|&(from, to)| (position[from], position[to]));
    let mut ranks = vec![0; count];
    arrows.iter().for_each(|&(from, to)| ranks[to] = ranks[to].max(ranks[from] + 1));
    // A box with more outgoing than incoming arrows moves down next to its consumers. Most of these boxes are
    // Parameters.
    let (mut lowest, mut pull) = (vec![usize::MAX; count], vec![0_i64; count]);
    for &(from, to) in &arrows {
        pull[from] += 1;
        pull[to] -= 1;
    }
    for &(from, to) in arrows.iter().rev() {
        // All arrows out of `to` have been visited before.
        if pull[to] > 0 && lowest[to] != usize::MAX {
            ranks[to] = ranks[to].max(lowest[to] - 1);
            pull[to] = 0;
        }
        lowest[from] = lowest[from].min(ranks[to]);
    }
    for at in 0..count {
        if pull[at] > 0 && lowest[at] != usize::MAX {
            ranks[at] = ranks[at].max(lowest[at] - 1);
        }
    }
    (ranks, arrows)
}

/// Rows of boxes, and of lanes for arrows that pass rows. Joined items are in neighbouring rows.
struct Rows<'a> {
    sizes: &'a [(f64, f64)],
    rows: Vec<Vec<usize>>,
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
}

impl<'a> Rows<'a> {
    fn new(sizes: &'a [(f64, f64)], ranks: &[usize], arrows: &[(usize, usize)]) -> Self {
        let mut rows = vec![Vec::new(); ranks.iter().max().map_or(0, |rank| rank + 1)];
        ranks.iter().enumerate().for_each(|(at, &rank)| rows[rank].push(at));
        let (mut above, mut below) = (vec![Vec::new(); sizes.len()], vec![Vec::new(); sizes.len()]);
        for &(from, to) in arrows {
            let mut last = from;
            for row in &mut rows[ranks[from] + 1..ranks[to]] {
                let way = above.len();
                row.push(way);
                below[last].push(way);
                above.push(vec![last]);
                below.push(Vec::new());
                last = way;
            }
            below[last].push(to);
            above[to].push(last);
        }
        Self { sizes, rows, above, below }
    }

    fn width(&self, at: usize) -> f64 {
        self.sizes.get(at).map_or(LANE, |size| size.0)
    }

    fn height(&self, at: usize) -> f64 {
        self.sizes.get(at).map_or(0.0, |size| size.1)
    }

    /// Orders each row by its neighbours' positions, so that few arrows cross.
    fn untangle(&mut self) {
        let (mut position, mut means) = (vec![0.0; self.above.len()], vec![0.0; self.above.len()]);
        let place = |position: &mut Vec<f64>, row: &[usize]| {
            row.iter().enumerate().for_each(|(at, &item)| position[item] = at as f64);
        };
        self.rows.iter().for_each(|row| place(&mut position, row));
        let mut best = (self.crossings(&position), self.rows.clone());
        for round in 0..ROUNDS {
            if best.0 == 0 {
                break;
            }
            let joined = if round % 2 == 0 { &self.above } else { &self.below };
            let count = self.rows.len();
            for at in 0..count {
                let row = &mut self.rows[if round % 2 == 0 { at } else { count - 1 - at }];
                for &item in &*row {
                    let others = &joined[item];
                    let sum: f64 = others.iter().map(|&other| position[other]).sum();
                    means[item] = if others.is_empty() { position[item] } else { sum / others.len() as f64 };
                }
                row.sort_by(|&one, &other| means[one].total_cmp(&means[other]));
                place(&mut position, row);
            }
            let crossings = self.crossings(&position);
            if crossings < best.0 {
                best = (crossings, self.rows.clone());
            }
        }
        self.rows = best.1;
    }

    /// Returns the number of pairs of arrows that cross.
    fn crossings(&self, position: &[f64]) -> u64 {
        let (mut crossings, mut counts, mut places) = (0, Vec::<u64>::new(), Vec::new());
        for (row, next) in self.rows.iter().zip(self.rows.iter().skip(1)) {
            // A tree of counts: the number of arrows so far that end at or left of a position.
            counts.clear();
            counts.resize(next.len() + 1, 0);
            let mut ends = 0;
            for &item in row {
                places.clear();
                places.extend(self.below[item].iter().map(|&to| position[to] as usize));
                places.sort_unstable();
                for &place in &places {
                    let mut at = place + 1;
                    let mut left = 0;
                    while at > 0 {
                        left += counts[at];
                        at &= at - 1;
                    }
                    crossings += ends - left;
                }
                ends += places.len() as u64;
                for &place in &places {
                    let mut at = place + 1;
                    while at < counts.len() {
                        counts[at] += 1;
                        at += at & at.wrapping_neg();
                    }
                }
            }
        }
        crossings
    }

    /// Returns the centre of each item from left to right, as close to its neighbours as the row has space for.
    fn across(&self) -> Vec<f64> {
        let mut across = vec![0.0; self.above.len()];
        for row in &self.rows {
            let mut right = 0.0;
            for &item in row {
                across[item] = right + self.width(item) / 2.0;
                right += self.width(item) + GAP;
            }
        }
        for round in 0..ROUNDS {
            let count = self.rows.len();
            for at in 0..count {
                let row = &self.rows[if round % 2 == 0 { at } else { count - 1 - at }];
                // The last rounds use the neighbours of both sides.
                let sides: &[_] = match (round + 2 < ROUNDS, round % 2) {
                    (true, 0) => &[&self.above],
                    (true, _) => &[&self.below],
                    (false, _) => &[&self.above, &self.below],
                };
                self.settle(row, sides, &mut across);
            }
        }
        across
    }

    /// Moves the items of a row to the mean of their neighbours, in their order and with space between them.
    fn settle(&self, row: &[usize], sides: &[&Vec<Vec<usize>>], across: &mut [f64]) {
        // Groups of touching items: the best start of the group, its weight and its count.
        let mut groups: Vec<(f64, f64, usize)> = Vec::new();
        let apart = |one, other| (self.width(one) + self.width(other)) / 2.0 + GAP;
        let step = |at: usize| if at > 0 { apart(row[at - 1], row[at]) } else { 0.0 };
        let mut offset = 0.0;
        for (at, &item) in row.iter().enumerate() {
            offset += step(at);
            let (mut sum, mut weight) = (0.0, 0.0);
            for &other in sides.iter().flat_map(|side| &side[item]) {
                // Long arrows are straightened before boxes are placed.
                let is_way = |at: usize| at >= self.sizes.len();
                let pull = [1.0, 2.0, 8.0][usize::from(is_way(item)) + usize::from(is_way(other))];
                sum += pull * across[other];
                weight += pull;
            }
            let (wanted, weight) = if weight > 0.0 { (sum / weight, weight) } else { (across[item], 0.01) };
            let mut group = (wanted - offset, weight, 1);
            while let Some(&(start, before, count)) = groups.last().filter(|last| last.0 > group.0) {
                let weight = before + group.1;
                group = ((start * before + group.0 * group.1) / weight, weight, count + group.2);
                groups.pop();
            }
            groups.push(group);
        }
        let starts = groups.iter().flat_map(|&(start, _, count)| std::iter::repeat_n(start, count));
        offset = 0.0;
        for ((at, &item), start) in row.iter().enumerate().zip(starts) {
            offset += step(at);
            across[item] = start + offset;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOX: (f64, f64) = (100.0, 60.0);

    fn placed(count: usize, arrows: &[(usize, usize)]) -> Vec<(f64, f64)> {
        let places = places(&Picture { sizes: &vec![BOX; count], arrows });
        let mut sorted: Vec<_> = places.iter().map(|&(x, y)| (y as i64, x)).collect();
        sorted.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
        for pair in sorted.windows(2) {
            let (rows, columns) = (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
            assert!(rows >= BOX.1 as i64 || rows == 0 && columns >= BOX.0, "boxes overlap: {pair:?}");
        }
        places
    }

    #[test]
    fn a_box_is_below_what_leads_to_it_and_a_chain_is_straight() {
        let places = placed(4, &[(0, 1), (1, 2), (2, 3)]);
        assert!(places.windows(2).all(|pair| pair[0].0 == pair[1].0 && pair[0].1 < pair[1].1), "{places:?}");
        // A source is directly above its consumer.
        let places = placed(5, &[(0, 1), (1, 2), (2, 3), (4, 3)]);
        assert_eq!(places[4].1, places[2].1);
    }

    #[test]
    fn circles_and_boxes_that_lead_to_themselves_have_places() {
        placed(1, &[(0, 0)]);
        placed(3, &[(0, 1), (1, 2), (2, 0)]);
        placed(4, &[(0, 1), (1, 0), (1, 2), (2, 3), (3, 1), (3, 3)]);
    }

    #[test]
    fn arrows_that_need_not_cross_do_not() {
        let places = placed(6, &[(0, 5), (1, 4), (2, 3)]);
        assert_eq!(places[0].0, places[5].0);
        let ladder: Vec<_> = (0..40).flat_map(|at| [(at, at + 2), (at, at + 3 - 2 * (at % 2))]).collect();
        placed(44, &ladder);
    }

    #[test]
    fn what_is_large_has_places_on_a_small_stack() {
        const MANY: usize = 100_000;
        let chain: Vec<_> = (1..MANY).map(|at| (at - 1, at)).collect();
        let star: Vec<_> = (1..MANY).map(|at| (0, at)).collect();
        let pairs: Vec<_> = (0..MANY / 2).map(|at| (2 * at, 2 * at + 1)).collect();
        let small = std::thread::Builder::new().stack_size(128 << 10);
        let drawn = small.spawn(move || [chain, star, pairs].map(|arrows| placed(MANY, &arrows)));
        let [_, _, pairs] = drawn.unwrap().join().unwrap();
        let reach = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).fold(0.0, f64::max);
        assert!(reach(|place| place.0) < 4.0 * reach(|place| place.1), "unconnected parts fill a page");
    }
}
