// One finished request in detail: its explanation, attempts, limits, losses and tokens.
import { el, formatCount, formatMoney, formatMs } from "./dom.js";
import { fitted, timeline } from "./chart.js";
import { badge, copyButton, facts, outcomeBadge, row, table, tags, time, words } from "./parts.js";

/**
 * @param {string} id
 * @param {Api.Explanation} explained
 */
export function requestDetail(id, { text, request, usage }) {
  const head = closeLink(id);
  head.insertBefore(copyButton(id, "the id of the request"), head.lastChild);
  return [
    head,
    request && summary(request),
    section(
      "What happened",
      el(
        "ol",
        { class: "sentences" },
        text.map((sentence) => el("li", null, sentence)),
      ),
    ),
    request && request.attempts.length > 0 && attempts(request),
    request?.admission && admission(request.admission),
    request && losses(request),
    usage && stored(usage),
  ];
}

/**
 * @param {string} title
 * @param {...any} children
 */
function section(title, ...children) {
  return el("section", { class: "section" }, el("h2", null, title), children);
}

/** @param {Api.Request} request */
function summary(request) {
  const cached = request.cache_read_tokens
    ? ` (${formatCount(request.cache_read_tokens)} cached)`
    : "";
  return facts([
    ["Outcome", outcomeBadge(request.outcome)],
    ["Status", request.code ? `${request.status} ${request.code}` : request.status],
    ["Took", formatMs(request.took_ms)],
    ["First event", formatMs(request.first_event_ms)],
    ["Tokens in", formatCount(request.input_tokens) + cached],
    ["Tokens out", formatCount(request.output_tokens)],
    ["Cost", request.cost === null ? "no price" : formatMoney(request.cost)],
    ["Received", time(request.at)],
    ["Key", request.key],
    ["Model", request.model],
    ["Route", `${words(request.route)}${request.stream ? ", streamed" : ""}`],
    ["Id of the client", request.client_request_id],
  ]);
}

/** @type {Column[]} */
const COLUMNS = [
  { title: "Target" },
  { title: "Road", class: "mid" },
  { title: "Result" },
  { title: "Asked at", class: "num mid" },
  { title: "Answered at", class: "num" },
];

/** @param {Api.Request} request */
function attempts(request) {
  const spans = request.attempts.flatMap((attempt) => attemptSpans(request, attempt));
  const queued = request.admission?.queued_ms;
  if (queued)
    spans.unshift({ name: "Queue", kind: "wait", from: 0, to: queued, note: formatMs(queued) });
  const label = `${request.attempts.length} attempts; the table below has their times`;
  const rows = request.attempts.map((attempt) =>
    row(COLUMNS, [
      [attempt.target, attempt.model && el("span", { class: "soft line" }, attempt.model)],
      attempt.road,
      [
        resultBadge(attempt),
        attempt.code && el("span", { class: "soft line" }, attempt.code),
        attempt.cause && el("span", { class: "soft line" }, attempt.cause),
        attempt.upstream_request_id && el("code", { class: "line" }, attempt.upstream_request_id),
      ],
      formatMs(attempt.started_ms),
      attempt.result === "circuit_open" ? "–" : formatMs(attempt.answered_ms),
    ]),
  );
  return section(
    "Attempts",
    el(
      "ul",
      { class: "legend", "aria-hidden": "true" },
      queued ? el("li", null, el("span", { class: "swatch wait" }), "in a queue") : null,
      el("li", null, el("span", { class: "swatch s1 pale" }), "until the answer began"),
      el("li", null, el("span", { class: "swatch s1" }), "answer"),
      spans.some(({ kind }) => kind === "bad-fill") &&
        el("li", null, el("span", { class: "swatch bad-fill" }), "failed"),
    ),
    fitted((width) => timeline(spans, request.took_ms, width, label)),
    table("Attempts", COLUMNS, rows),
  );
}

/**
 * @param {Api.Request} request
 * @param {Api.Attempt} attempt
 * @returns {import("./chart.js").Span[]}
 */
function attemptSpans(request, attempt) {
  const { target: name, started_ms: from, answered_ms: to, result } = attempt;
  if (result === "circuit_open")
    return [{ name, kind: "wait", from, to: from, note: "circuit open, not asked" }];
  if (result === "cancelled")
    return [{ name, kind: "wait", from, to, note: "cancelled, another target has answered" }];
  if (result === "failed")
    return [{ name, kind: "bad-fill", from, to, note: attempt.code ?? "failed" }];
  const note = `began after ${formatMs(to - from)}`;
  return [{ name, kind: "s1 pale", from, to, note, then: request.took_ms }];
}

/** @param {Api.Attempt} attempt */
function resultBadge({ result }) {
  if (result === "answered") return badge("answered", "good");
  if (result === "cancelled") return badge("cancelled", "idle");
  return result === "failed" ? badge("failed", "bad") : badge("circuit open", "idle");
}

/** @param {Api.Admission} admission */
function admission({
  limits,
  refused_by: refused,
  queued_ms: queued,
  degraded,
  reserved_tokens: reserved,
}) {
  return section(
    "Limits",
    facts([
      [
        "Decision",
        refused ? badge(`refused by ${refused.limit}`, "warn") : badge("admitted", "good"),
      ],
      ["Dimension", refused ? words(refused.dimension) : null],
      [
        "Fits again after",
        refused && refused.retry_after_ms !== null ? formatMs(refused.retry_after_ms) : null,
      ],
      ["Waited", queued === null ? null : formatMs(queued)],
      ["Reserved tokens", reserved > 0 ? formatCount(reserved) : null],
      ["Store of shared limits", degraded ? badge("did not answer", "warn") : null],
      [
        "Limits that apply",
        tags(limits.map(({ limit, key }) => (key ? `${limit} (${key})` : limit))),
      ],
    ]),
  );
}

/** @param {Api.Request} request */
function losses({ attempts: all, left_out: leftOut }) {
  const dropped = all.filter((attempt) => attempt.dropped.length > 0);
  if (dropped.length === 0 && leftOut.length === 0) return null;
  return section(
    "Losses",
    facts([
      ...dropped.map(
        (attempt) =>
          /** @type {[string, any]} */ ([
            `Fields that ${attempt.target} was not given`,
            tags(attempt.dropped),
          ]),
      ),
      [
        "Parts of the answer that the client was not given",
        leftOut.length > 0 ? tags(leftOut) : null,
      ],
    ]),
  );
}

/** @param {Record<string, unknown>} usage the row of the store, whose fields may grow */
function stored(usage) {
  const rows = Object.entries(usage).filter(
    ([, value]) => value !== null && typeof value !== "object",
  );
  return section(
    "In the store",
    el(
      "details",
      null,
      el("summary", null, "The row of this request"),
      facts(rows.map(([name, value]) => [words(name), String(value)])),
    ),
  );
}

/** @param {string} id */
export function closeLink(id) {
  return el(
    "div",
    { class: "detail-head" },
    el("h2", { tabindex: "-1" }, id),
    el("a", { class: "close", href: "#/requests" }, "Close"),
  );
}
