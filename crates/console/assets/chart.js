// Draws plots as SVG: stacked bars, a line of the last minutes, and the attempts of a request.
import { el, formatMs, replace, svg } from "./dom.js";

/**
 * Makes a node whose drawing is made anew when its width changes.
 * @param {(width: number) => SVGSVGElement} draw
 */
export function fitted(draw) {
  const node = el("div");
  let width = 0;
  new ResizeObserver(([entry]) => {
    const now = Math.floor(entry?.contentRect.width ?? 0);
    if (now === width || now === 0) return;
    width = now;
    replace(node, draw(width));
  }).observe(node);
  return node;
}

/**
 * Makes a drawing that a screen reader reads as one picture with a text.
 * @param {number} width
 * @param {number} height
 * @param {string} label
 */
function canvas(width, height, label) {
  return svg("svg", {
    class: "plot",
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: "img",
    "aria-label": label,
  });
}

/**
 * Returns about `count` round values from 0 to at least `most`.
 * @param {number} most
 * @param {number} count
 */
export function ticks(most, count) {
  if (!(most > 0)) return [0, 1];
  const power = 10 ** Math.floor(Math.log10(most / count));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n * count >= most) ?? most;
  const last = Math.ceil(most / step - 1e-9);
  return Array.from({ length: last + 1 }, (_, n) => Number((n * step).toPrecision(6)));
}

/**
 * @typedef {object} Bars
 * @property {string} label what the plot shows, for screen readers
 * @property {{ long: string, short: string }[]} intervals
 * @property {{ name: string, values: number[] }[]} series at most six
 * @property {(value: number) => string} format
 */

const LEFT = 58;
const BOTTOM = 24;
const HEIGHT = 240;
const WIDEST = 64;

/**
 * Draws stacked bars. `onPoint` gets the interval under the pointer, or -1.
 * @param {Bars} bars
 * @param {number} width
 * @param {(index: number) => void} onPoint
 */
export function stackedBars(bars, width, onPoint) {
  const root = canvas(width, HEIGHT, bars.label);
  const sums = bars.intervals.map((_, i) =>
    bars.series.reduce((sum, { values }) => sum + (values[i] ?? 0), 0),
  );
  const marks = ticks(Math.max(...sums, 0), 4);
  const top = marks[marks.length - 1] ?? 1;
  const floor = HEIGHT - BOTTOM;
  const isWhole = top < 1000 && marks.every(Number.isInteger);
  const names = marks.map((mark) => (isWhole ? String(mark) : bars.format(mark)));
  const left = Math.max(LEFT, 12 + 7 * Math.max(...names.map(({ length }) => length)));
  const y = (/** @type {number} */ value) => floor - (value / top) * (floor - 10);
  for (const [index, mark] of marks.entries()) {
    root.append(
      svg("line", { class: mark ? "grid" : "axis", x1: left, x2: width, y1: y(mark), y2: y(mark) }),
      svg("text", { x: left - 8, y: y(mark) + 4, "text-anchor": "end" }, names[index]),
    );
  }
  const step = (width - left) / Math.max(1, bars.intervals.length);
  const every = Math.ceil(58 / step);
  bars.intervals.forEach(({ short }, index) => {
    const x = left + index * step;
    root.append(column(bars, index, x, step, y, onPoint));
    if (index % every === 0 && x + step / 2 < width - 18) {
      root.append(svg("text", { x: x + step / 2, y: HEIGHT - 6, "text-anchor": "middle" }, short));
    }
  });
  return root;
}

/**
 * @param {Bars} bars
 * @param {number} index
 * @param {number} x
 * @param {number} step
 * @param {(value: number) => number} y
 * @param {(index: number) => void} onPoint
 */
function column(bars, index, x, step, y, onPoint) {
  const gap = Math.max(step - WIDEST, Math.min(8, step * 0.25));
  const group = svg(
    "g",
    { class: "column", onpointerenter: () => onPoint(index), onpointerleave: () => onPoint(-1) },
    svg("rect", { class: "hit", x, y: 0, width: step, height: HEIGHT - BOTTOM }),
  );
  let sum = 0;
  bars.series.forEach(({ values }, number) => {
    const value = values[index] ?? 0;
    if (value <= 0) return;
    const [low, high] = [y(sum), y(sum + value)];
    sum += value;
    // A line of the background separates the parts, so that they differ not by colour alone.
    const height = Math.max(0.5, low - high - (number > 0 && low - high > 3 ? 1 : 0));
    group.append(
      svg("rect", {
        class: `s${number + 1}`,
        x: x + gap / 2,
        y: high,
        width: Math.max(1, step - gap),
        height,
      }),
    );
  });
  return group;
}

const SHORTEST_MS = 20_000;

/**
 * Draws a value over the last time as a line. The axis grows with the samples.
 * @param {{ at: number, value: number }[]} samples oldest first, times in milliseconds
 * @param {number} width
 * @param {string} label
 */
export function line(samples, width, label) {
  const height = 112;
  const [left, floor] = [LEFT, height - BOTTOM];
  const root = canvas(width, height, label);
  const marks = ticks(Math.max(...samples.map(({ value }) => value), 1), 2);
  const top = marks[marks.length - 1] ?? 1;
  const end = samples[samples.length - 1]?.at ?? 0;
  const spanMs = Math.max(SHORTEST_MS, end - (samples[0]?.at ?? end));
  const x = (/** @type {number} */ at) => left + (1 - (end - at) / spanMs) * (width - left);
  const y = (/** @type {number} */ value) => floor - (value / top) * (floor - 8);
  for (const mark of marks) {
    root.append(
      svg("line", { class: mark ? "grid" : "axis", x1: left, x2: width, y1: y(mark), y2: y(mark) }),
      svg("text", { x: left - 8, y: y(mark) + 4, "text-anchor": "end" }, String(mark)),
    );
  }
  const points = samples.map(({ at, value }) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
  const first = samples[0]?.at ?? end;
  root.append(
    svg("path", {
      class: "spark-area",
      d: `M${x(first)},${floor}L${points.join("L")}L${x(end)},${floor}Z`,
    }),
    svg("polyline", { class: "spark", points: points.join(" ") }),
    svg("text", { x: left, y: height - 6 }, `${Math.round(spanMs / 1000)} s ago`),
    svg("text", { x: width, y: height - 6, "text-anchor": "end" }, "now"),
  );
  return root;
}

/**
 * @typedef {object} Span
 * @property {string} name
 * @property {string} kind a class that fills it
 * @property {number} from in milliseconds
 * @property {number} to
 * @property {string} note
 * @property {number} [then] the end of what followed, drawn darker
 */

/**
 * Draws spans of time below each other, on one axis.
 * @param {Span[]} spans
 * @param {number} total the end of the axis, in milliseconds
 * @param {number} width
 * @param {string} label
 */
export function timeline(spans, total, width, label) {
  const height = spans.length * 38 + BOTTOM + 2;
  const root = canvas(width, height, label);
  const marks = ticks(total, width < 480 ? 3 : 5);
  const end = Math.max(total, marks[marks.length - 1] ?? 1) || 1;
  const x = (/** @type {number} */ ms) => 1 + (ms / end) * (width - 2);
  for (const mark of marks) {
    const anchor = mark === 0 ? "start" : x(mark) > width - 20 ? "end" : "middle";
    root.append(
      svg("line", { class: "grid", x1: x(mark), x2: x(mark), y1: 0, y2: height - BOTTOM }),
      svg("text", { x: x(mark), y: height - 8, "text-anchor": anchor }, formatMs(mark)),
    );
  }
  spans.forEach(({ name, kind, from, to, note, then }, index) => {
    const top = index * 38;
    const rect = (
      /** @type {string} */ name,
      /** @type {number} */ left,
      /** @type {number} */ right,
    ) =>
      svg("rect", {
        class: name,
        x: left,
        y: top + 20,
        width: Math.max(2, right - left),
        height: 10,
      });
    if (then !== undefined) root.append(rect("s1", x(to), x(then)));
    root.append(
      svg(
        "text",
        { class: "span-name", x: 6, y: top + 14 },
        `${name} `,
        svg("tspan", { class: "span-note" }, note),
      ),
      rect(kind, x(from), x(to)),
    );
  });
  return root;
}
