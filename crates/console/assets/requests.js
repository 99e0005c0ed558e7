// The last thousand finished requests, in a list that does not move while one reads.
import { announce, el, formatCount, formatMoney, formatMs, formatTime, replace } from "./dom.js";
import { api, changes } from "./api.js";
import {
  empty,
  failureNotice,
  isFailure,
  names,
  OUTCOMES,
  outcomeBadge,
  row,
  table,
  words,
} from "./parts.js";
import { closeLink, requestDetail } from "./request.js";

/** @type {Column[]} */
const COLUMNS = [
  { title: "Received" },
  { title: "Model and key" },
  { title: "Route", class: "wide" },
  { title: "Target", class: "wide" },
  { title: "Outcome" },
  { title: "Tokens in", class: "num wide" },
  { title: "Tokens out", class: "num wide" },
  { title: "First event", class: "num wide" },
  { title: "Took", class: "num mid" },
  { title: "Cost", class: "num wide" },
];
const KEPT = 1000;
const PAGE = 40;

/** @type {RequestsView | null} */
let view = null;

/** @type {import("./app.js").Screen} */
export const screen = {
  id: "requests",
  title: "Requests",
  mount(container, detail) {
    const mounted = (view = new RequestsView(container));
    mounted.open(detail);
    const stop = changes.listen({
      requests: ({ requests }) => mounted.add(requests),
      open: () => void mounted.load(),
      lost: () => void (mounted.isLoaded || mounted.load()),
    });
    return () => {
      stop();
      view = null;
    };
  },
  update: (detail) => view?.open(detail),
};

class RequestsView {
  isLoaded = false;
  /** @type {Api.Request[]} newest first, as shown */
  #requests = [];
  /** @type {Api.Request[]} newest first, finished since */
  #fresh = [];
  /** @type {string | undefined} */
  #opened;
  #search = el("input", {
    type: "search",
    id: "request-search",
    placeholder: "Id, key or model",
    oninput: () => this.#showRows(),
  });
  #outcome = el(
    "select",
    { id: "request-outcome", onchange: () => this.#showRows() },
    el("option", { value: "" }, "Any"),
    OUTCOMES.map((name) => el("option", { value: name }, words(name))),
  );
  #failures = el("input", { type: "checkbox", onchange: () => this.#showRows() });
  #new = el("button", {
    type: "button",
    class: "primary new",
    hidden: true,
    onclick: () => this.#showFresh(),
  });
  #list = el("div", { class: "list" });
  #detail = el("section", { class: "detail", "aria-label": "Request", hidden: true });
  #split = el("div", { class: "split" }, this.#list, this.#detail);
  #table = el("div");

  /** @param {HTMLElement} container */
  constructor(container) {
    const toolbar = el(
      "div",
      { class: "toolbar", role: "search" },
      el("div", { class: "field" }, el("label", { for: "request-search" }, "Find"), this.#search),
      el(
        "div",
        { class: "field" },
        el("label", { for: "request-outcome" }, "Outcome"),
        this.#outcome,
      ),
      el("label", { class: "check" }, this.#failures, "Only failures"),
      this.#new,
    );
    this.#table.addEventListener("keydown", (event) => this.#step(event));
    this.#list.append(toolbar, this.#table);
    container.append(this.#split);
  }

  /** Loads the list, at the start and after the stream of changes was lost. */
  async load() {
    try {
      const { requests } = await api("GET", `/admin/v1/requests?limit=${KEPT}`);
      if (this.isLoaded) return this.add(requests.reverse());
      this.isLoaded = true;
      this.#requests = requests;
      this.#showRows();
    } catch (error) {
      if (!this.isLoaded) replace(this.#table, failureNotice(error));
    }
  }

  /**
   * Keeps finished requests for the button; an empty list shows them at once.
   * @param {Api.Request[]} finished oldest first
   */
  add(finished) {
    if (!this.isLoaded) return;
    const known = new Set([...this.#fresh, ...this.#requests].map(({ request_id }) => request_id));
    const fresh = finished.filter(({ request_id }) => !known.has(request_id)).reverse();
    if (fresh.length === 0) return;
    this.#fresh = [...fresh, ...this.#fresh].slice(0, KEPT);
    if (this.#requests.length === 0) return this.#showFresh();
    this.#showCount();
  }

  /** Counts only what the filter lets through. */
  #showCount() {
    const count = this.#fresh.filter((request) => this.#matches(request)).length;
    this.#new.hidden = count === 0;
    this.#new.textContent = `${formatCount(count)} new`;
  }

  #showFresh() {
    this.#requests = [...this.#fresh, ...this.#requests].slice(0, KEPT);
    this.#fresh = [];
    this.#showRows();
    this.#table.querySelector("a")?.focus({ preventScroll: true });
  }

  /** @param {Api.Request} request */
  #matches(request) {
    const word = this.#search.value.trim().toLowerCase();
    const { request_id, client_request_id, key, model, outcome } = request;
    if (this.#failures.checked && !isFailure(outcome)) return false;
    if (this.#outcome.value && this.#outcome.value !== outcome) return false;
    return (
      !word ||
      [request_id, client_request_id, key, model].some((text) => text?.toLowerCase().includes(word))
    );
  }

  #showRows() {
    this.#showCount();
    const found = this.#requests.filter((request) => this.#matches(request));
    if (found.length === 0) return replace(this.#table, this.#nothing());
    const rows = found.slice(0, PAGE).map((request) => requestRow(request));
    const after = el("p", { class: "toolbar after" });
    replace(this.#table, table("Finished requests, newest first", COLUMNS, rows, "rows"), after);
    this.#showAfter(after, found, rows.length);
    this.#mark();
  }

  /**
   * Says how many rows there are, with a button for more.
   * @param {HTMLElement} after
   * @param {Api.Request[]} found
   * @param {number} shown
   */
  #showAfter(after, found, shown) {
    const more = () => {
      const rows = found.slice(shown, shown + PAGE).map((request) => requestRow(request));
      this.#table.querySelector("tbody")?.append(...rows);
      this.#showAfter(after, found, shown + rows.length);
      this.#mark();
      rows[0]?.querySelector("a")?.focus();
    };
    replace(
      after,
      el("span", { class: "soft" }, `${formatCount(shown)} of ${formatCount(found.length)}`),
      found.length > shown && el("button", { type: "button", onclick: more }, "Show more"),
    );
  }

  #nothing() {
    if (this.#requests.length > 0)
      return empty("No request matches", "Change the filter to see others.");
    return empty(
      "No request has finished yet",
      "The last thousand requests appear here when they end, with what was decided about each. ",
      el("a", { href: "#/play" }, "Send one from Play"),
      ".",
    );
  }

  /**
   * Moves the focus from row to row with the arrow keys.
   * @param {KeyboardEvent} event
   */
  #step(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const links = [...this.#table.querySelectorAll("tbody a")];
    const here = links.findIndex((link) => link === document.activeElement);
    const next = links[here + (step ?? 0)];
    if (!step || here < 0 || !(next instanceof HTMLElement)) return;
    event.preventDefault();
    next.focus();
  }

  /** Marks the row of the opened request. */
  #mark() {
    for (const link of this.#table.querySelectorAll("tbody a")) {
      if (link.getAttribute("data-id") === this.#opened) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }

  /** @param {string} [id] shows this request beside the list, or the list alone */
  open(id) {
    const before = this.#opened;
    this.#opened = id;
    this.#split.classList.toggle("open", id !== undefined);
    this.#detail.hidden = id === undefined;
    this.#mark();
    if (id !== undefined) return void this.#showDetail(id);
    replace(this.#detail);
    const link = [...this.#table.querySelectorAll("tbody a")].find(
      (a) => a.getAttribute("data-id") === before,
    );
    if (link instanceof HTMLElement) link.focus({ preventScroll: true });
  }

  /** @param {string} id */
  async #showDetail(id) {
    let content;
    try {
      content = requestDetail(
        id,
        await api("GET", `/admin/v1/requests/${encodeURIComponent(id)}/explain`),
      );
    } catch (error) {
      content = [closeLink(id), failureNotice(error)];
    }
    if (this.#opened !== id) return;
    replace(this.#detail, content);
    this.#detail.scrollTop = 0;
    // Where the detail takes the place of the list, reading begins at its head.
    this.#detail
      .querySelector("h2")
      ?.focus({ preventScroll: matchMedia("(min-width: 1000px)").matches });
    announce(`Request ${id}`);
  }
}

/** @param {Api.Request} request */
function requestRow(request) {
  const { request_id: id, attempts } = request;
  const last = attempts[attempts.length - 1];
  return row(COLUMNS, [
    el(
      "a",
      { href: `#/requests/${encodeURIComponent(id)}`, "data-id": id, title: id },
      formatTime(request.at),
    ),
    names(request),
    words(request.route),
    last
      ? [
          el("span", { class: "clip", title: last.target }, last.target),
          attempts.length > 1 && el("span", { class: "soft line" }, `attempt ${attempts.length}`),
        ]
      : "–",
    [
      outcomeBadge(request.outcome),
      request.code && el("span", { class: "soft line" }, request.code),
    ],
    formatCount(request.input_tokens),
    formatCount(request.output_tokens),
    formatMs(request.first_event_ms),
    formatMs(request.took_ms),
    formatMoney(request.cost),
  ]);
}
