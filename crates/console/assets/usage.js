// Usage over time by key or by model: stacked bars of cost, tokens or requests, and a table.
import { el, formatCount, formatMoney, formatShort, replace } from "./dom.js";
import { api } from "./api.js";
import { fitted, stackedBars } from "./chart.js";
import { priceList } from "./prices.js";
import { empty, facts, loader, row, table, whenRequestsFinish } from "./parts.js";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const PERIODS = [
  { name: "Last 24 hours", per: "hour", step: HOUR, count: 24 },
  { name: "Last 7 days", per: "day", step: DAY, count: 7 },
  { name: "Last 30 days", per: "day", step: DAY, count: 30 },
  { name: "Last 90 days", per: "day", step: DAY, count: 90 },
];
/** @type {Record<string, Measure>} */
const MEASURES = {
  cost: {
    name: "Cost",
    of: (sum) => Number(sum.cost),
    format: (value) => formatMoney(String(value)),
  },
  tokens: { name: "Tokens", of: tokens, format: formatShort },
  requests: { name: "Requests", of: (sum) => sum.requests, format: formatShort },
};
const MOST_SERIES = 5;

/** @type {import("./app.js").Screen} */
export const screen = {
  id: "usage",
  title: "Usage",
  mount(container) {
    const view = new UsageView(container);
    return whenRequestsFinish(() => void view.load(), 10_000);
  },
};

/** @param {Api.UsageSum} sum */
function tokens(sum) {
  return sum.input + sum.cache_read + sum.cache_write + sum.output;
}

class UsageView {
  /** @type {Api.UsageSum[]} */
  #sums = [];
  #starts = /** @type {number[]} */ ([]);
  #period = choice(
    PERIODS.map(({ name }, index) => [String(index), name]),
    "1",
    () => this.load(),
  );
  #by = choice(
    [
      ["key", "Key"],
      ["model", "Model"],
    ],
    "key",
    () => this.load(),
  );
  #measure = choice(
    Object.entries(MEASURES).map(([id, { name }]) => [id, name]),
    "cost",
    () => this.#show(),
  );
  #content = el("div");
  #isOpen = false;
  load;

  /** @param {HTMLElement} container */
  constructor(container) {
    const label = (/** @type {string} */ name, /** @type {HTMLSelectElement} */ select) =>
      el("label", { class: "field" }, name, select);
    const toolbar = el(
      "div",
      { class: "toolbar", hidden: true },
      label("Period", this.#period),
      label("By", this.#by),
      label("Show", this.#measure),
    );
    container.append(toolbar, this.#content, priceList());
    this.load = loader(
      this.#content,
      () => this.#fetch(),
      ({ usage }) => {
        toolbar.hidden = false;
        this.#sums = usage;
        this.#show();
      },
    );
  }

  #fetch() {
    const { per, step, count } =
      PERIODS[Number(this.#period.value)] ?? /** @type {any} */ (PERIODS[1]);
    // Intervals begin at whole hours and days of UTC, like the intervals of the gateway.
    const last = Math.floor(Date.now() / step) * step;
    this.#starts = Array.from({ length: count }, (_, n) => last - (count - 1 - n) * step);
    const from = new Date(this.#starts[0] ?? last).toISOString();
    return api(
      "GET",
      `/admin/v1/usage?by=${this.#by.value}&per=${per}&from=${encodeURIComponent(from)}`,
    );
  }

  #show() {
    if (this.#sums.length === 0) {
      return replace(
        this.#content,
        empty(
          "Nothing was used in this period",
          "Requests appear here a moment after they have ended.",
        ),
      );
    }
    const by = /** @type {"key" | "model"} */ (this.#by.value);
    const measure = /** @type {Measure} */ (MEASURES[this.#measure.value]);
    const groups = groupBy(this.#sums, (sum) => sum[by] ?? "–");
    const ranked = [...groups].sort(([, a], [, b]) => total(b, measure.of) - total(a, measure.of));
    replace(
      this.#content,
      totals(this.#sums),
      this.#plot(ranked, measure),
      el(
        "section",
        { class: "section" },
        el("h2", null, by === "key" ? "Keys" : "Models"),
        sumTable(by, ranked),
      ),
    );
  }

  /**
   * @param {[string, Api.UsageSum[]][]} ranked
   * @param {Measure} measure
   */
  #plot(ranked, { name, of, format }) {
    const series = seriesOf(ranked, of, this.#starts);
    const isHourly = this.#period.value === "0";
    const intervals = this.#starts.map((start) => intervalName(start, isHourly));
    const label = `${name} per ${isHourly ? "hour" : "day"}; the table below has the values`;
    const readout = el(
      "p",
      { class: "readout" },
      `${name} per ${isHourly ? "hour, local time" : "day, UTC"}`,
    );
    const idle = readout.textContent;
    const onPoint = (/** @type {number} */ index) => {
      const parts = series
        .filter(({ values }) => (values[index] ?? 0) > 0)
        .map((one) => `${one.name} ${format(one.values[index] ?? 0)}`);
      readout.textContent =
        index < 0 ? idle : `${intervals[index]?.long}: ${parts.join(", ") || "nothing"}`;
    };
    return el(
      "section",
      { class: "section" },
      el(
        "ul",
        { class: "legend" },
        series.map((one, index) =>
          el("li", null, el("span", { class: `swatch s${index + 1}` }), one.name),
        ),
      ),
      readout,
      fitted((width) => stackedBars({ label, intervals, series, format }, width, onPoint)),
      this.#values(() => asTable(name, intervals, series, format)),
    );
  }

  /**
   * Makes the table of the plot when it is asked for; it stays open when the figures change.
   * @param {() => HTMLElement} build
   */
  #values(build) {
    const content = el("div");
    const ontoggle = () => {
      this.#isOpen = details.open;
      if (details.open && !content.hasChildNodes()) content.append(build());
    };
    const details = el(
      "details",
      { open: this.#isOpen, ontoggle },
      el("summary", null, "Values of the plot"),
      content,
    );
    return details;
  }
}

/**
 * @param {string[][]} options values and words
 * @param {string} chosen
 * @param {() => void} onchange
 */
function choice(options, chosen, onchange) {
  return el(
    "select",
    { onchange },
    options.map(([value, word]) => el("option", { value, selected: value === chosen }, word)),
  );
}

/**
 * @template T
 * @param {T[]} items
 * @param {(item: T) => string} name
 * @returns {Map<string, T[]>}
 */
function groupBy(items, name) {
  const groups = new Map();
  for (const item of items) {
    const group = groups.get(name(item));
    if (group) group.push(item);
    else groups.set(name(item), [item]);
  }
  return groups;
}

/**
 * @param {Api.UsageSum[]} sums
 * @param {(sum: Api.UsageSum) => number} of
 */
function total(sums, of) {
  return sums.reduce((all, sum) => all + of(sum), 0);
}

/**
 * Makes a series of each of the largest groups, and one of all others.
 * @param {[string, Api.UsageSum[]][]} ranked
 * @param {(sum: Api.UsageSum) => number} of
 * @param {number[]} starts
 */
function seriesOf(ranked, of, starts) {
  const large = ranked.length > MOST_SERIES + 1 ? ranked.slice(0, MOST_SERIES) : ranked;
  const rest = ranked.slice(large.length);
  const groups =
    rest.length > 0
      ? [
          ...large,
          /** @type {[string, Api.UsageSum[]]} */ ([
            `${rest.length} others`,
            rest.flatMap(([, sums]) => sums),
          ]),
        ]
      : large;
  const places = new Map(starts.map((start, index) => [start, index]));
  return groups.map(([name, sums]) => {
    const values = starts.map(() => 0);
    for (const sum of sums) {
      const place = places.get(Date.parse(sum.start ?? ""));
      if (place !== undefined) values[place] = (values[place] ?? 0) + of(sum);
    }
    return { name, values };
  });
}

/**
 * @param {number} start
 * @param {boolean} isHourly
 */
function intervalName(start, isHourly) {
  const time = new Date(start);
  if (isHourly) {
    const short = time.toTimeString().slice(0, 5);
    return { short, long: short };
  }
  const day = time.toLocaleString("en", { month: "short", timeZone: "UTC" });
  return {
    short: `${time.getUTCDate()} ${day}`,
    long: `${time.getUTCDate()} ${day} ${time.getUTCFullYear()}`,
  };
}

/** @param {Api.UsageSum[]} sums */
function totals(sums) {
  const prompt = total(
    sums,
    ({ input, cache_read: read, cache_write: write }) => input + read + write,
  );
  const read = total(sums, (sum) => sum.cache_read);
  const share = prompt > 0 ? `${Math.round((read / prompt) * 100)}%` : "–";
  const pictures = total(sums, (sum) => sum.pictures);
  return el(
    "div",
    { class: "totals" },
    facts([
      ["Cost", formatMoney(String(total(sums, ({ cost }) => Number(cost))))],
      ["Requests", formatCount(total(sums, (sum) => sum.requests))],
      ["Tokens in", formatShort(prompt)],
      ["Cache read", share],
      ["Tokens out", formatShort(total(sums, (sum) => sum.output))],
      ["Pictures", pictures > 0 ? formatCount(pictures) : null],
    ]),
  );
}

/**
 * @param {"key" | "model"} by
 * @param {[string, Api.UsageSum[]][]} ranked
 */
function sumTable(by, ranked) {
  const columns = [
    { title: by === "key" ? "Key" : "Model" },
    { title: "Requests", class: "num" },
    { title: "Input", class: "num" },
    { title: "Cache read", class: "num wide" },
    { title: "Cache write", class: "num wide" },
    { title: "Output", class: "num" },
    { title: "Reasoning", class: "num wide" },
    { title: "Cost", class: "num" },
  ];
  return table(
    `Usage by ${by}`,
    columns,
    ranked.map(([name, sums]) => {
      const sum = (/** @type {(sum: Api.UsageSum) => number} */ of) => formatCount(total(sums, of));
      const unpriced = total(sums, (one) => one.unpriced);
      const inexact = total(sums, (one) => one.inexact);
      return row(columns, [
        el("span", { class: "line" }, name),
        sum((one) => one.requests),
        sum((one) => one.input),
        sum((one) => one.cache_read),
        sum((one) => one.cache_write),
        sum((one) => one.output),
        sum((one) => one.reasoning),
        [
          formatMoney(String(total(sums, ({ cost }) => Number(cost)))),
          unpriced > 0 &&
            el("span", { class: "soft line" }, `${formatCount(unpriced)} without a price`),
          inexact > 0 && el("span", { class: "soft line" }, `${formatCount(inexact)} not exact`),
        ],
      ]);
    }),
    "cards",
  );
}

/**
 * The values of the plot, for who cannot see it or wants the numbers.
 * @param {string} name
 * @param {{ long: string }[]} intervals
 * @param {{ name: string, values: number[] }[]} series
 * @param {(value: number) => string} format
 */
function asTable(name, intervals, series, format) {
  const columns = [{ title: "Time" }, ...series.map((one) => ({ title: one.name, class: "num" }))];
  const rows = intervals.map(({ long }, index) =>
    row(columns, [long, ...series.map(({ values }) => format(values[index] ?? 0))]),
  );
  return table(`${name} over time`, columns, rows);
}
