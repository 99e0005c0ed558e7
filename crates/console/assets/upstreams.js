// The upstreams: circuit breakers of their hosts, and how they answered the last thousand requests.
import { el, formatCount, formatMs, formatTime, replace, svg } from "./dom.js";
import { api } from "./api.js";
import { badge, empty, loader, row, table, whenRequestsFinish, words } from "./parts.js";

/** @type {Column[]} */
const COLUMNS = [
  { title: "Upstream" },
  { title: "Hosts" },
  { title: "Attempts", class: "num" },
  { title: "Answered", class: "num" },
  { title: "Failures" },
  { title: "Time to answer, p50 to p95" },
  { title: "Cache read", class: "num" },
];

/** @type {import("./app.js").Screen} */
export const screen = {
  id: "upstreams",
  title: "Upstreams",
  mount(container) {
    const load = loader(
      container,
      () => api("GET", "/admin/v1/upstreams"),
      ({ upstreams }) => {
        replace(
          container,
          upstreams.length === 0
            ? empty(
                "No upstream is configured",
                "Upstreams appear here when the configuration has some.",
              )
            : upstreamTable(upstreams),
        );
      },
    );
    return whenRequestsFinish(() => void load(), 2000);
  },
};

/** @param {Api.Upstream[]} upstreams */
function upstreamTable(upstreams) {
  const slowest = Math.max(0, ...upstreams.map(({ recent }) => recent.answer_ms?.p95 ?? 0));
  return [
    el(
      "p",
      { class: "soft lead" },
      "Figures are of the last 1,000 requests. A host with an open circuit has failed repeatedly " +
        "and is not asked until the next probe.",
    ),
    table(
      "Upstreams",
      COLUMNS,
      upstreams.map((upstream) => upstreamRow(upstream, slowest)),
      "cards",
    ),
  ];
}

/**
 * @param {Api.Upstream} upstream
 * @param {number} slowest the end of the axis of latencies, in milliseconds
 */
function upstreamRow({ name, protocol, hosts, recent }, slowest) {
  const {
    attempts,
    answered,
    failures,
    answer_ms: times,
    input_tokens: input,
    cache_read_tokens: read,
  } = recent;
  return row(COLUMNS, [
    [name, el("span", { class: "soft line" }, protocol ?? "in this process")],
    hosts.length > 0
      ? el("div", null, hosts.map(hostLine))
      : el("span", { class: "soft" }, "no network"),
    formatCount(attempts),
    attempts > 0 ? percent(answered, attempts) : "–",
    failures.length > 0
      ? el(
          "ul",
          null,
          failures.map(({ code, count }) =>
            el("li", null, `${formatCount(count)} × `, words(code)),
          ),
        )
      : el("span", { class: "soft" }, "none"),
    times
      ? el(
          "div",
          null,
          el("span", { class: "line figures" }, `${formatMs(times.p50)} to ${formatMs(times.p95)}`),
          range(times, slowest),
        )
      : "–",
    input > 0 ? percent(read, input) : "–",
  ]);
}

/** @param {Api.Host} host */
function hostLine({ host, circuit, probe_in_ms: probe, idle_connections: idle }) {
  const state =
    circuit === "closed"
      ? badge("closed", "good")
      : circuit === "open"
        ? badge("open", "bad")
        : badge("half open", "warn");
  const notes = [
    probe !== null &&
      circuit === "open" &&
      `next probe at ${formatTime(new Date(Date.now() + probe).toISOString())}`,
    `${idle} idle connections`,
  ].filter(Boolean);
  return el(
    "div",
    { class: "host" },
    el("code", { class: "line" }, host),
    state,
    el("span", { class: "soft" }, ` ${notes.join(", ")}`),
  );
}

/**
 * Draws the span from the median to the 95th percentile on an axis that all rows share.
 * @param {{ p50: number, p95: number }} times
 * @param {number} slowest
 */
function range({ p50, p95 }, slowest) {
  const x = (/** @type {number} */ ms) => (slowest > 0 ? (ms / slowest) * 168 : 0);
  return svg(
    "svg",
    { class: "range", viewBox: "0 0 180 12", width: 180, height: 12, "aria-hidden": "true" },
    svg("rect", { class: "range-track", x: 0, y: 5, width: 180, height: 2 }),
    svg("rect", {
      class: "s1 pale",
      x: x(p50) + 4,
      y: 3,
      width: Math.max(2, x(p95) - x(p50)),
      height: 6,
    }),
    svg("circle", { class: "s1", cx: x(p50) + 5, cy: 6, r: 4.5 }),
  );
}

/**
 * @param {number} part
 * @param {number} whole
 */
function percent(part, whole) {
  const share = (part / whole) * 100;
  return `${share > 99 && share < 100 ? share.toFixed(1) : Math.round(share)}%`;
}
