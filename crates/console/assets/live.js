// The requests in flight: a table that changes in place, and their events per second.
import { announce, el, formatCount, formatMs, replace } from "./dom.js";
import { api, ApiFailure, changes } from "./api.js";
import { line } from "./chart.js";
import { badge, empty, failureNotice, names, openForm, row, table, words } from "./parts.js";

/** @type {Column[]} */
const COLUMNS = [
  { title: "Model and key" },
  { title: "Request", class: "wide" },
  { title: "Route", class: "wide" },
  { title: "Target", class: "mid" },
  { title: "State" },
  { title: "Age", class: "num" },
  { title: "Events", class: "num mid" },
  { title: "Events/s", class: "num mid" },
  { title: "End", class: "num", hidden: true },
];
const MOST_ROWS = 100;
const ROWS_A_FRAME = 15;
const SPAN_MS = 120_000;
const STATES = /** @type {const} */ ({
  waiting: ["waiting for a limit", "idle"],
  asking: ["asking the target", "warn"],
  streaming: ["streaming", "good"],
});

/** @type {import("./app.js").Screen} */
export const screen = {
  id: "live",
  title: "Live",
  mount(container) {
    const view = new LiveView(container);
    const load = () =>
      api("GET", "/admin/v1/live").then(
        ({ requests }) => view.show(requests),
        (error) => view.fail(error),
      );
    return changes.listen({
      live: ({ requests }) => view.show(requests),
      open: () => void load(),
      lost: () => (view.isEmpty ? void load() : view.lost()),
    });
  },
};

class LiveView {
  /** @type {Map<string, LiveRow>} */
  #rows = new Map();
  /** @type {{ at: number, value: number }[]} */
  #samples = [];
  /** @type {{ at: number, events: Map<string, number> } | null} */
  #counts = null;
  /** @type {Api.LiveRequest[]} */
  #latest = [];
  #summary = el("p", { class: "stream-state" });
  #body = el("tbody", { role: "rowgroup" });
  #more = el("p", { class: "soft" });
  #plot;
  #table;
  #content = el("div");
  /** @type {"" | "table" | "empty"} */
  #showing = "";

  /** @param {HTMLElement} container */
  constructor(container) {
    const drawn = el("div");
    this.#plot = { node: drawn, width: 0 };
    new ResizeObserver(
      ([entry]) => (this.#plot.width = Math.floor(entry?.contentRect.width ?? 0)),
    ).observe(drawn);
    this.#table = table("Requests in flight", COLUMNS, [], "live");
    this.#table.querySelector("tbody")?.replaceWith(this.#body);
    container.append(this.#summary, this.#content);
  }

  get isEmpty() {
    return this.#showing === "";
  }

  /** @param {unknown} error */
  fail(error) {
    this.#showing = "";
    replace(this.#summary);
    replace(this.#content, failureNotice(error));
  }

  lost() {
    replace(this.#summary, badge("The connection is lost; trying again", "warn"));
  }

  /** @param {Api.LiveRequest[]} requests */
  show(requests) {
    const oldest = [...requests].sort((a, b) => b.age_ms - a.age_ms).slice(0, MOST_ROWS);
    this.#latest = oldest;
    this.#update(oldest);
    this.#note(requests);
    if (requests.length === 0) return this.#showEmpty();
    if (this.#showing !== "table") {
      replace(
        this.#content,
        el(
          "figure",
          { class: "rate" },
          el("figcaption", { class: "soft" }, "Events per second, all requests"),
          this.#plot.node,
        ),
        this.#table,
        this.#more,
      );
      this.#showing = "table";
    }
    const rest = requests.length - MOST_ROWS;
    replace(this.#more, rest > 0 && `${formatCount(rest)} younger requests are not shown.`);
    this.#draw();
  }

  #showEmpty() {
    if (this.#showing === "empty") return;
    this.#samples = [];
    this.#counts = null;
    this.#showing = "empty";
    replace(
      this.#content,
      empty(
        "Nothing is in flight",
        "Requests appear here when their key is accepted, and leave with their last byte. ",
        el("a", { href: "#/play" }, "Send one from Play"),
        ".",
      ),
    );
  }

  /**
   * Changes the rows in place, so that the focus stays where it is. Many new rows are added frame
   * by frame.
   * @param {Api.LiveRequest[]} requests
   */
  #update(requests) {
    const now = new Set(requests.map((request) => request.request_id));
    for (const [id, old] of this.#rows) {
      if (now.has(id)) continue;
      old.remove();
      this.#rows.delete(id);
    }
    let added = 0;
    for (const [index, request] of requests.entries()) {
      const known = this.#rows.get(request.request_id);
      if (!known && (added += 1) > ROWS_A_FRAME) {
        requestAnimationFrame(() => this.#latest === requests && this.#update(requests));
        return;
      }
      const shown = known ?? new LiveRow(request);
      this.#rows.set(request.request_id, shown);
      shown.update(request);
      if (this.#body.children[index] !== shown.node) {
        this.#body.insertBefore(shown.node, this.#body.children[index] ?? null);
      }
    }
  }

  /** @param {Api.LiveRequest[]} requests */
  #note(requests) {
    const waiting = requests.filter(({ state }) => state === "waiting").length;
    const rate = this.#rate(requests);
    replace(
      this.#summary,
      requests.length > 0 && [
        el("strong", null, formatCount(requests.length)),
        " in flight",
        waiting > 0 && [", ", el("strong", null, waiting), " of them waiting for a limit"],
        rate && [
          ", ",
          el("strong", null, formatCount(Math.round(rate.value))),
          " events per second",
        ],
      ],
    );
  }

  /**
   * Samples the events per second of all requests since the last call; of new requests, all events
   * count. Calls that follow closely, as at the start, would give a wrong rate.
   * @param {Api.LiveRequest[]} requests
   */
  #rate(requests) {
    const [before, at] = [this.#counts, performance.now()];
    if (!before || at - before.at >= 500) {
      const events = new Map(requests.map(({ request_id: id, events }) => [id, events]));
      this.#counts = { at, events };
      let fresh = 0;
      for (const [id, count] of events) fresh += count - (before?.events.get(id) ?? 0);
      if (before) this.#samples.push({ at, value: (fresh * 1000) / (at - before.at) });
    }
    while ((this.#samples[0]?.at ?? at) < at - SPAN_MS) this.#samples.shift();
    return this.#samples[this.#samples.length - 1];
  }

  #draw() {
    const { node, width } = this.#plot;
    const last = this.#samples[this.#samples.length - 1]?.value ?? 0;
    const label = `Events per second of the last two minutes, now ${Math.round(last)}`;
    if (width > 0 && this.#samples.length > 0) replace(node, line(this.#samples, width, label));
  }
}

class LiveRow {
  #state = el("span");
  #target = el("span", { class: "line" });
  #age = el("span");
  #events = el("span");
  #rate = el("span");
  #shown = "";
  /** @type {Api.LiveRequest} */
  #last;
  #perSecond = 0;

  /** @param {Api.LiveRequest} request */
  constructor(request) {
    this.#last = request;
    const end = el(
      "button",
      {
        type: "button",
        class: "quiet risky",
        onclick: () => confirmEnd(this.#last),
        "aria-label": `End ${request.request_id}`,
      },
      "End",
    );
    this.node = row(COLUMNS, [
      names(request),
      el("code", null, request.request_id),
      [
        words(request.route),
        request.stream ? "" : el("span", { class: "soft line" }, "not streamed"),
      ],
      this.#target,
      this.#state,
      this.#age,
      this.#events,
      this.#rate,
      end,
    ]);
  }

  remove() {
    this.node.remove();
  }

  /** @param {Api.LiveRequest} request */
  update(request) {
    const span = request.age_ms - this.#last.age_ms;
    if (span > 0) this.#perSecond = ((request.events - this.#last.events) * 1000) / span;
    this.#last = request;
    const [word, tone] = STATES[request.state] ?? [request.state, "idle"];
    if (this.#shown !== word) replace(this.#state, badge(word, tone));
    this.#shown = word;
    this.#target.textContent = request.target ?? "–";
    this.#age.textContent = formatMs(request.age_ms);
    this.#events.textContent = formatCount(request.events);
    this.#rate.textContent = formatCount(Math.round(this.#perSecond));
  }
}

/** @param {Api.LiveRequest} request */
function confirmEnd(request) {
  openForm({
    title: "End this request?",
    content: [
      el(
        "p",
        null,
        `The client of the key “${request.key}” gets an error, and the target has to stop. ` +
          "The tokens until now are charged.",
      ),
      el("p", null, el("code", null, request.request_id)),
    ],
    action: "End the request",
    isDangerous: true,
    cancel: "Let it run",
    submit: async () => {
      try {
        await api("DELETE", `/admin/v1/live/${encodeURIComponent(request.request_id)}`);
      } catch (error) {
        // It ended by itself in the meantime, which is what was wanted.
        if (!(error instanceof ApiFailure && error.status === 404)) throw error;
      }
      announce("The request was ended");
    },
  });
}
