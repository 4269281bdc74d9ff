// Placement of boxes in rows from top to bottom, each box below its producers. Arrows that pass rows have lanes of their
// own there, so that none runs through a box. The time grows linearly with boxes and arrows.

/**
 * @typedef {{from: number, to: number, trunk?: string, out?: number, into?: number | null}} Arrow Joins two boxes. Arrows
 *   of one trunk share a lane. `out` and `into` are fixed ends, in pixels from the middle of the box.
 * @typedef {{sizes: number[][], arrows: Arrow[], pins?: number[]}} Picture Pins are -1 for the top border, 1 for the bottom.
 * @typedef {{places: number[][], routes: (number[][] | null)[], w: number, h: number}} Layout Centres of boxes, and points
 *   of arrows: straight down from each even point to the next, and a curve from each odd one.
 */

const GAP = 34, LANE = 12, MARGIN = 56, ROUNDS = 10, ASPECT = 1.5;
/** Limit on the lanes of a part: beyond it, long arrows are only named at their end. */
const mostLanes = (boxes) => 400 + 6 * boxes;

/** Returns the places of boxes and the routes of arrows. @param {Picture} picture @returns {Layout} */
function layout({ sizes, arrows, pins }) {
  const placed = parts(sizes.length, arrows, pins).map((part) => placePart(part, sizes, arrows, pins));
  placed.sort((a, b) => b.boxes.length - a.boxes.length);
  const area = placed.reduce((area, part) => area + (part.w + MARGIN) * (part.h + MARGIN), 0);
  const width = placed.reduce((width, part) => Math.max(width, part.w), Math.sqrt(area * ASPECT));
  const result = { places: Array(sizes.length), routes: Array(arrows.length).fill(null), w: 0, h: 0 };
  let left = 0, top = 0, height = 0;
  for (const part of placed) {
    if (left > 0 && left + part.w > width) [left, top, height] = [0, top + height + MARGIN, 0];
    part.boxes.forEach((box, at) => { result.places[box] = [part.places[at][0] + left, part.places[at][1] + top]; });
    for (const [arrow, points] of part.routes) result.routes[arrow] = points.map(([x, y]) => [x + left, y + top]);
    result.w = Math.max(result.w, left + part.w);
    left += part.w + MARGIN;
    height = Math.max(height, part.h);
    result.h = Math.max(result.h, top + height);
  }
  return result;
}

/** Returns the connected parts: boxes, and positions of arrows. Boxes with pins are one part. */
function parts(count, arrows, pins) {
  const all = { boxes: Array.from({ length: count }, (_, at) => at), arrows: arrows.map((_, at) => at) };
  if (pins?.some(Boolean)) return [all];
  const root = all.boxes.slice();
  const top = (at) => { while (root[at] !== at) at = root[at] = root[root[at]]; return at; };
  for (const { from, to } of arrows) root[top(to)] = top(from);
  const found = new Map();
  for (const box of all.boxes) {
    if (!found.has(top(box))) found.set(top(box), { boxes: [], arrows: [] });
    found.get(top(box)).boxes.push(box);
  }
  arrows.forEach(({ from }, at) => found.get(top(from)).arrows.push(at));
  return [...found.values()];
}

function placePart(part, sizes, arrows, pins) {
  const local = new Map(part.boxes.map((box, at) => [box, at]));
  const own = part.arrows.filter((at) => arrows[at].from !== arrows[at].to).map((at) => ({ ...arrows[at], at, from: local.get(arrows[at].from), to: local.get(arrows[at].to) }));
  const grid = new Grid(part.boxes.map((box) => sizes[box]), own, pins ? part.boxes.map((box) => pins[box]) : []);
  grid.order();
  grid.align();
  grid.spread();
  return { boxes: part.boxes, ...grid.result() };
}

/** Rows of boxes and lanes. */
class Grid {
  /** @param {number[][]} sizes @param {any[]} arrows @param {number[]} pins */
  constructor(sizes, arrows, pins) {
    this.sizes = sizes;
    this.pins = pins;
    this.count = sizes.length;
    this.arrows = arrows;
    this.rank();
    this.join();
  }

  isLane(item) { return item >= this.count; }
  width(item) { return this.isLane(item) ? LANE : this.sizes[item][0]; }
  height(item) { return this.isLane(item) ? 0 : this.sizes[item][1]; }
  /** The least distance between the middles of neighbours in a row. */
  apart(a, b) { return (this.width(a) + this.width(b)) / 2 + (this.isLane(a) && this.isLane(b) ? 4 : this.isLane(a) || this.isLane(b) ? 14 : GAP); }

  // Gives each box a row below its producers. An arrow that closes a cycle leads up.
  rank() {
    const { count, arrows, pins } = this, next = lists(count), waits = new Int32Array(count), outs = new Int32Array(count);
    for (const arrow of arrows) { waits[arrow.to]++; outs[arrow.from]++; next[arrow.from].push(arrow.to); }
    const balance = outs.map((out, at) => out - waits[at]);
    const position = new Int32Array(count).fill(-1), order = [], ready = [];
    for (let at = count - 1; at >= 0; at--) if (!waits[at]) ready.push(at);
    while (order.length < count) {
      let at = ready.pop();
      // In a cycle the box comes first that waits for the fewest others and leads to the most.
      if (at === undefined) for (let next = 0; next < count; next++) {
        if (position[next] < 0 && (at === undefined || outs[next] - 2 * waits[next] > outs[at] - 2 * waits[at])) at = next;
      }
      if (position[at] >= 0) continue;
      position[at] = order.length;
      order.push(at);
      for (const to of next[at]) if (--waits[to] === 0) ready.push(to);
    }
    const above = lists(count), below = lists(count);
    for (const arrow of arrows) {
      arrow.up = position[arrow.from] > position[arrow.to];
      [arrow.start, arrow.end] = arrow.up ? [arrow.to, arrow.from] : [arrow.from, arrow.to];
      above[arrow.end].push(arrow.start);
      below[arrow.start].push(arrow.end);
    }
    const base = pins.some((pin) => pin < 0) ? 1 : 0;
    const ranks = this.ranks = new Int32Array(count);
    for (const at of order) {
      ranks[at] = pins[at] < 0 ? 0 : base;
      for (const from of above[at]) ranks[at] = Math.max(ranks[at], ranks[from] + 1);
    }
    // A box with more arrows out than in moves down next to its consumers. Most are Parameters.
    for (const at of order.toReversed()) {
      if (balance[at] > 0 && !pins[at] && below[at].length) ranks[at] = Math.max(ranks[at], below[at].reduce((least, to) => Math.min(least, ranks[to]), Infinity) - 1);
    }
    const lowest = ranks.reduce((most, rank, at) => pins[at] > 0 ? most : Math.max(most, rank), 0);
    pins.forEach((pin, at) => { if (pin > 0) ranks[at] = lowest + 1; });
  }

  // Joins boxes of neighbouring rows, with lanes through the rows between.
  join() {
    const { ranks, arrows } = this;
    let longest = Infinity;
    const lanes = (limit) => arrows.reduce((sum, { start, end }) => { const span = ranks[end] - ranks[start]; return sum + (span > limit ? 0 : span); }, 0);
    while (longest > 4 && lanes(longest) > mostLanes(this.count)) longest = longest === Infinity ? 1000 : longest / 3;
    const rows = this.rows = lists(ranks.reduce((most, rank) => Math.max(most, rank), 0) + 1);
    ranks.forEach((rank, at) => rows[rank].push(at));
    this.rowOf = [...ranks];
    this.above = lists(this.count);
    this.below = lists(this.count);
    this.links = [];
    const trunks = new Map(), known = new Map();
    const link = (a, b, out, into) => {
      const key = `${a} ${b} ${into ?? ""}`;
      if (!known.has(key)) {
        const made = { a, b, out, into };
        known.set(key, made);
        this.links.push(made);
        this.below[a].push(made);
        this.above[b].push(made);
      }
      return known.get(key);
    };
    for (const arrow of arrows) {
      const { start, end, up } = arrow, [out, into] = up ? [arrow.into ?? 0, arrow.out ?? 0] : [arrow.out ?? 0, arrow.into ?? null];
      if (ranks[end] - ranks[start] > longest) continue;
      const key = `${start} ${up ? "up" + arrow.at : arrow.trunk ?? ""} ${out}`;
      if (!trunks.has(key)) trunks.set(key, []);
      const lane = trunks.get(key);
      for (let row = ranks[start] + 1 + lane.length; row < ranks[end]; row++) {
        const item = this.above.length;
        this.above.push([]);
        this.below.push([]);
        rows[row].push(item);
        this.rowOf.push(row);
        lane.push(link(lane.length ? lane.at(-1).b : start, item, lane.length ? 0 : out, 0));
      }
      const passed = lane.slice(0, ranks[end] - ranks[start] - 1);
      arrow.links = [...passed, link(passed.length ? passed.at(-1).b : start, end, passed.length ? 0 : out, into)];
    }
  }

  // Orders each row by the neighbours' positions, so that few arrows cross.
  order() {
    const { rows } = this, count = this.above.length;
    const position = this.position = new Float64Array(count), means = new Float64Array(count);
    const place = (row) => row.forEach((item, at) => { position[item] = at; });
    rows.forEach(place);
    let best = this.crossings(), kept = rows.map((row) => row.slice());
    for (let round = 0; round < ROUNDS && best > 0; round++) {
      const down = round % 2 === 0;
      for (let at = 0; at < rows.length; at++) {
        const row = rows[down ? at : rows.length - 1 - at];
        for (const item of row) {
          const others = down ? this.above[item] : this.below[item];
          means[item] = others.length ? others.reduce((sum, link) => sum + position[down ? link.a : link.b] + (down ? link.out : link.into ?? 0) / 1e4, 0) / others.length : position[item];
        }
        row.sort((a, b) => means[a] - means[b]);
        place(row);
      }
      const crossings = this.crossings();
      if (crossings < best) [best, kept] = [crossings, rows.map((row) => row.slice())];
    }
    this.rows = kept;
    this.rows.forEach(place);
  }

  /** Returns the number of pairs of arrows that cross. */
  crossings() {
    let crossings = 0;
    for (let at = 0; at + 1 < this.rows.length; at++) {
      // A tree of counts: the number of arrows so far that end at or left of a position.
      const counts = new Int32Array(this.rows[at + 1].length + 1);
      let ends = 0;
      for (const item of this.rows[at]) {
        const targets = this.below[item].map((link) => this.position[link.b]);
        for (const target of targets) {
          let left = 0;
          for (let place = target + 1; place > 0; place &= place - 1) left += counts[place];
          crossings += ends - left;
        }
        ends += targets.length;
        for (const target of targets) for (let place = target + 1; place < counts.length; place += place & -place) counts[place]++;
      }
    }
    return crossings;
  }

  // Returns the links of the longest way through the boxes, from the upper border to the lower one if there are borders. As
  // it is straight, the exit of an open group is below its entry.
  spine() {
    const { rows, above, pins } = this, hasBorder = pins.some(Boolean);
    const length = new Float64Array(above.length).fill(-Infinity), last = Array(above.length).fill(null);
    for (const item of rows.flat()) {
      if (!above[item].length && (!hasBorder || pins[item] < 0)) length[item] = 0;
      for (const link of above[item]) {
        const next = length[link.a] + (this.isLane(item) ? 0 : 1);
        if (next > length[item]) [length[item], last[item]] = [next, link];
      }
    }
    const found = new Set(), isEnd = (item) => hasBorder ? pins[item] > 0 : !this.below[item].length;
    let end = rows.flat().filter(isEnd).reduce((most, item) => most === null || length[item] > length[most] ? item : most, null);
    for (let link; end !== null && (link = last[end]); end = link.a) found.add(link);
    return found;
  }

  // Chooses the arrows that are straight: first the spine, then those from a box with one arrow out to a box with one in, then lanes.
  // No two of them cross, so that the columns that they form have an order.
  align() {
    const count = this.above.length, upper = Array(count).fill(null), lower = Array(count).fill(null), spine = this.spine();
    const rank = (link) => {
      if (spine.has(link)) return 6;
      const { a, b } = link;
      const [lanes, single] = [Number(this.isLane(a)) + Number(this.isLane(b)), this.below[a].length === 1 && this.above[b].length === 1];
      if (!lanes && single) return 5;
      if (lanes === 2) return 4;
      // What ends here, such as a Result, stands beside what goes on.
      const [isEnd, isStart] = [!this.below[b].length && !this.pins[b], !this.above[a].length && !this.pins[a]];
      return (isEnd ? 0 : isStart ? 1 : lanes ? 2 : 3) + 1 / (this.below[a].length + this.above[b].length);
    };
    const ranked = this.links.map((link) => [rank(link), link]).sort((x, y) => y[0] - x[0]);
    const taken = this.rows.map(() => []);
    for (const [, link] of ranked) {
      const { a, b } = link;
      if (lower[a] || upper[b]) continue;
      // The straight arrows below a row, by their upper ends.
      const list = taken[this.rowOf[a]], x = this.position[a], y = this.position[b];
      let from = 0, to = list.length;
      while (from < to) { const middle = (from + to) >> 1; if (list[middle][0] < x) from = middle + 1; else to = middle; }
      if (from > 0 && list[from - 1][1] > y || from < list.length && list[from][1] < y) continue;
      list.splice(from, 0, [x, y]);
      lower[a] = upper[b] = link;
    }
    // A column is named by its first item. Its items may be shifted, so that ends of arrows meet.
    this.column = new Int32Array(count);
    this.shift = new Float64Array(count);
    this.straight = upper;
    for (const row of this.rows) for (const item of row) {
      const link = upper[item];
      this.column[item] = link ? this.column[link.a] : item;
      this.shift[item] = link ? this.shift[link.a] + link.out - (link.into ?? 0) : 0;
    }
  }

  // Places the columns: between as far left and as far right as they can be, then towards their neighbours.
  spread() {
    const { column, shift } = this, count = this.above.length, after = lists(count), waits = new Int32Array(count);
    for (const row of this.rows) for (let at = 1; at < row.length; at++) {
      const [a, b] = [row[at - 1], row[at]];
      after[column[a]].push([column[b], this.apart(a, b) + shift[a] - shift[b]]);
      waits[column[b]]++;
    }
    const order = [];
    for (let item = 0; item < count; item++) if (column[item] === item && !waits[item]) order.push(item);
    const left = new Float64Array(count), right = new Float64Array(count).fill(Infinity);
    for (const at of order) for (const [to, apart] of after[at]) {
      left[to] = Math.max(left[to], left[at] + apart);
      if (--waits[to] === 0) order.push(to);
    }
    const most = order.reduce((most, at) => Math.max(most, left[at]), 0);
    for (const at of order.toReversed()) {
      right[at] = after[at].reduce((least, [to, apart]) => Math.min(least, right[to] - apart), most);
    }
    this.x = new Float64Array(count);
    for (const at of order) this.x[at] = (left[at] + right[at]) / 2;
    this.relax(order);
  }

  place(item) { return this.x[this.column[item]] + this.shift[item]; }

  // Moves columns towards the arrows that they do not straighten, as far as their neighbours leave space.
  relax(order) {
    const { column } = this, members = lists(this.above.length), neighbours = new Map();
    for (const row of this.rows) row.forEach((item, at) => {
      members[column[item]].push(item);
      neighbours.set(item, [row[at - 1], row[at + 1]]);
    });
    const wanted = (at) => {
      let [sum, weight] = [0, 0];
      for (const item of members[at]) {
        for (const { a, b, out, into } of [...this.above[item], ...this.below[item]]) {
          if (column[a] === column[b]) continue;
          const pull = this.isLane(a) && this.isLane(b) ? 4 : 1, apart = this.place(b) + (into ?? 0) - this.place(a) - out;
          sum += pull * (item === a ? apart : -apart);
          weight += pull;
        }
      }
      return weight ? sum / weight : 0;
    };
    const room = (at, side) => members[at].reduce((least, item) => {
      const other = neighbours.get(item)[side > 0 ? 1 : 0];
      return other === undefined ? least : Math.min(least, Math.abs(this.place(other) - this.place(item)) - this.apart(item, other));
    }, Infinity);
    for (let round = 0; round < ROUNDS; round++) {
      for (const side of [1, -1]) {
        const sorted = order.slice().sort((a, b) => side * (this.x[b] - this.x[a]));
        for (const at of sorted) {
          const move = wanted(at);
          if (move * side > 0.5) this.x[at] += side * Math.max(0, Math.min(Math.abs(move), room(at, side)));
        }
      }
    }
  }

  // Sets the points at which arrows enter each box: the straight one in the middle, others beside it.
  ends() {
    for (let box = 0; box < this.count; box++) {
      const free = this.above[box].filter((link) => link.into === null);
      if (!free.length) continue;
      const from = (link) => this.place(link.a) + link.out;
      free.sort((a, b) => from(a) - from(b));
      const step = Math.max(4, Math.min(18, (this.width(box) - 30) / free.length));
      let middle = free.indexOf(this.straight[box]);
      if (middle < 0) middle = (free.length - 1) / 2;
      const reach = this.width(box) / 2 - 12;
      free.forEach((link, at) => { link.end = Math.max(-reach, Math.min(reach, (at - middle) * step)); });
    }
  }

  result() {
    this.ends();
    const end = (link) => this.place(link.b) + (link.into ?? link.end ?? 0), start = (link) => this.place(link.a) + link.out;
    const slopes = this.rows.map(() => 0), counts = this.rows.map(() => 0);
    for (const link of this.links) {
      const row = this.rowOf[link.a];
      slopes[row] = Math.max(slopes[row], Math.abs(end(link) - start(link)));
      counts[row]++;
    }
    const tops = [], bottoms = [];
    let y = 0;
    this.rows.forEach((row, at) => {
      const height = row.reduce((most, item) => Math.max(most, this.height(item)), 0);
      tops.push(y);
      bottoms.push(y + height);
      y += height + (slopes[at] < 1 ? 28 : 34 + Math.min(46, slopes[at] / 14) + Math.min(20, counts[at] / 4));
    });
    const low = (item) => this.place(item) - this.width(item) / 2, high = (item) => this.place(item) + this.width(item) / 2;
    const all = this.above.map((_, item) => item);
    const left = all.reduce((least, item) => Math.min(least, low(item)), Infinity), right = all.reduce((most, item) => Math.max(most, high(item)), -Infinity);
    const top = (item) => { const row = this.rowOf[item], spare = bottoms[row] - tops[row] - this.height(item); return tops[row] + (spare < 80 ? spare / 2 : 0); };
    const places = [];
    for (let box = 0; box < this.count; box++) places.push([this.place(box) - left, top(box) + this.height(box) / 2]);
    const routes = [];
    for (const arrow of this.arrows) {
      if (!arrow.links) continue;
      const points = [];
      for (const link of arrow.links) {
        const [a, b] = [start(link) - left, end(link) - left], isFirst = link === arrow.links[0], isLast = link === arrow.links.at(-1);
        points.push([a, isFirst ? top(link.a) + this.height(link.a) : tops[this.rowOf[link.a]]], [a, bottoms[this.rowOf[link.a]]]);
        if (isLast) points.push([b, tops[this.rowOf[link.b]]], [b, top(link.b)]);
      }
      routes.push([arrow.at, arrow.up ? points.reverse() : points]);
    }
    return { places, routes, w: right - left, h: bottoms.at(-1) };
  }
}

const lists = (count) => Array.from({ length: count }, () => []);
