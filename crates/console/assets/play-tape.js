// The event tape: every event of a stream with its time, its state in the grammar and its raw data.
//
// Only the rows in view are elements, so that ten thousand events cost as much as thirty. Bounds
// apply to the number of events and to the bytes of their raw data.

import { el, formatCount, formatMs, replace, svg } from "./dom.js";
import { copyButton } from "./parts.js";

const MOST_ROWS = 20_000;
/** Raw data of one event, and of all, that is kept. */
const MOST_RAW = 64 * 1024;
const MOST_RAW_IN_ALL = 32 * 1024 * 1024;
const BINS = 120;
const encoder = new TextEncoder();

/** The length in UTF-8; long data is image data, which is ASCII. @param {string} text */
const byteLength = (text) => (text.length > MOST_RAW ? text.length : encoder.encode(text).length);

/** @param {number} bytes */
export function formatBytes(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(2)} MB`;
}

export class Tape {
  constructor() {
    /** @type {Row[]} */
    this.rows = [];
    /** Indexes of the rows that the filter lets through. @type {number[]} */
    this.visible = [];
    /** @type {Map<number, HTMLElement>} elements by position in `visible` */
    this.nodes = new Map();
    this.selected = -1;
    this.follows = true;
    this.frame = 0;
    this.drawnAt = 0;
    this.rowHeight = 26;
    this.counts = { events: 0, bytes: 0, faults: 0, kept: 0 };
    this.firstAt = -1;
    this.lastAt = 0;
    this.space = el("div", { class: "tape-space", role: "presentation" });
    this.list = el("div", {
      class: "tape-list", role: "listbox", tabindex: "0", "aria-label": "Events",
    }, this.space);
    this.facts = el("p", { class: "tape-facts" });
    this.bars = svg("path", { class: "bars" });
    this.faults = svg("path", { class: "faults" });
    this.plot = svg("svg", {
      class: "tape-plot", viewBox: `0 0 ${BINS} 24`, preserveAspectRatio: "none", role: "img",
    }, this.bars, this.faults);
    this.axis = el("p", { class: "tape-axis", "aria-hidden": "true" });
    this.raw = el("div", { class: "tape-raw" });
    this.filter = el("input", {
      type: "search", placeholder: "Filter", "aria-label": "Filter events", autocomplete: "off",
      spellcheck: "false",
    });
    this.onlyFaults = el("button", {
      type: "button", class: "faults-button", "aria-pressed": "false", hidden: true,
    });
    this.node = el("div", { class: "tape" }, this.tools(), this.facts,
      el("div", { class: "tape-chart" }, this.plot, this.axis), this.head(), this.list, this.raw);
    this.listen();
    this.restart();
  }

  listen() {
    this.list.addEventListener("scroll", () => this.scrolled());
    this.list.addEventListener("keydown", (event) => this.key(event));
    this.filter.addEventListener("input", () => this.refilter());
    this.onlyFaults.addEventListener("click", () => {
      const pressed = this.onlyFaults.getAttribute("aria-pressed") !== "true";
      this.onlyFaults.setAttribute("aria-pressed", String(pressed));
      this.refilter();
    });
    new ResizeObserver(() => {
      this.measure();
      // The raw data takes room from the list; the selected row stays in view.
      this.scrollTo(this.visible.indexOf(this.selected));
    }).observe(this.list);
  }

  tools() {
    return el("div", { class: "tape-tools" }, this.filter, this.onlyFaults,
      copyButton(() => this.asText(), "all events"));
  }

  head() {
    return el("div", { class: "tape-head tape-row", "aria-hidden": "true" },
      el("span", { class: "levels" }), el("span", { class: "at" }, "ms"),
      el("span", { class: "type" }, "event"), el("span", { class: "summary" }, "content"),
      el("span", { class: "state" }, "state after it"), el("span", { class: "size" }, "bytes"));
  }

  restart() {
    this.rows = [];
    this.visible = [];
    this.counts = { events: 0, bytes: 0, faults: 0, kept: 0 };
    this.firstAt = -1;
    this.lastAt = 0;
    this.follows = true;
    this.onlyFaults.setAttribute("aria-pressed", "false");
    this.select(-1);
    this.refilter();
  }

  /** The rows of the tape, to show them again later. */
  keep() {
    const { rows, counts, firstAt, lastAt } = this;
    return { rows, counts, firstAt, lastAt };
  }

  /** @param {ReturnType<Tape["keep"]>} kept */
  showAgain(kept) {
    this.restart();
    Object.assign(this, kept);
    this.follows = false;
    this.refilter();
  }

  /** @param {number} at @param {Reading} reading @param {string} raw */
  add(at, reading, raw) {
    const size = byteLength(raw);
    this.counts.events += 1;
    this.counts.bytes += size;
    if (this.firstAt < 0) this.firstAt = at;
    this.push({ at, reading, size, raw, isEvent: true });
  }

  /** Adds a line about the response itself. @param {number} at @param {Partial<Reading>} reading */
  note(at, reading, raw = "") {
    const empty = { type: "", summary: "", state: "", depth: 0, offence: "", unknown: false };
    const size = byteLength(raw);
    this.push({ at, reading: { ...empty, ...reading }, size, raw, isEvent: false });
  }

  /** @param {Row} row */
  push(row) {
    this.lastAt = Math.max(this.lastAt, row.at);
    if (row.reading.offence) this.counts.faults += 1;
    // The end of the response is always kept.
    if (this.rows.length >= MOST_ROWS && row.isEvent) return;
    const room = this.counts.kept > MOST_RAW_IN_ALL ? 256 : MOST_RAW;
    if (row.raw.length > room) row.raw = `${row.raw.slice(0, room)}\n… cut by the page`;
    this.counts.kept += row.raw.length;
    this.rows.push(row);
    if (this.lets(row)) this.visible.push(this.rows.length - 1);
    this.schedule();
  }

  /** @param {Row} row */
  lets(row) {
    if (this.onlyFaults.getAttribute("aria-pressed") === "true" && !row.reading.offence) {
      return false;
    }
    const wanted = this.filter.value.toLowerCase();
    if (!wanted) return true;
    const { type, summary, state, offence } = row.reading;
    return `${type} ${summary} ${state} ${offence}`.toLowerCase().includes(wanted);
  }

  refilter() {
    this.visible = [];
    this.rows.forEach((row, index) => {
      if (this.lets(row)) this.visible.push(index);
    });
    for (const node of this.nodes.values()) node.remove();
    this.nodes.clear();
    this.drawnAt = 0;
    this.schedule();
  }

  /** Rows are as high as the style says, which depends on the width of the tape. */
  measure() {
    const height = Number.parseFloat(getComputedStyle(this.list)
      .getPropertyValue("--row"));
    if (!(height > 0)) return;
    if (height !== this.rowHeight) {
      this.rowHeight = height;
      this.refilter();
    }
    this.schedule();
  }

  schedule() {
    this.node.classList.toggle("blank", this.rows.length === 0);
    this.node.classList.toggle("eventless", this.counts.events === 0);
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  draw() {
    const { list, space } = this;
    space.style.height = `${this.visible.length * this.rowHeight}px`;
    if (this.follows) list.scrollTop = list.scrollHeight;
    this.drawRows(list, space);
    // The plot and the facts can be read no faster than this.
    const now = performance.now();
    if (now - this.drawnAt < 120) {
      setTimeout(() => this.schedule(), 130);
      return;
    }
    this.drawnAt = now;
    this.drawFacts();
    this.drawPlot();
  }

  /** @param {HTMLElement} list @param {HTMLElement} space */
  drawRows(list, space) {
    const first = Math.max(0, Math.floor(list.scrollTop / this.rowHeight) - 4);
    const count = Math.ceil(list.clientHeight / this.rowHeight) + 8;
    const end = Math.min(this.visible.length, first + count);
    for (const [position, node] of this.nodes) {
      if (position >= first && position < end) continue;
      node.remove();
      this.nodes.delete(position);
    }
    for (let position = first; position < end; position += 1) {
      const known = this.nodes.get(position);
      if (known) {
        known.setAttribute("aria-setsize", String(this.visible.length));
        continue;
      }
      const node = this.element(position);
      this.nodes.set(position, node);
      space.append(node);
    }
    // The selected row may be out of view, and then it is no element.
    const id = `event-${this.selected}`;
    if (document.getElementById(id)) list.setAttribute("aria-activedescendant", id);
    else list.removeAttribute("aria-activedescendant");
  }

  /** @param {number} position */
  element(position) {
    const index = this.visible[position];
    const { at, reading, size } = this.rows[index];
    const marks = [];
    for (let level = 0; level < 3; level += 1) {
      marks.push(el("i", { class: level < reading.depth ? "open" : "" }));
    }
    const state = reading.offence ? `⚠ ${reading.offence}`
      : reading.unknown ? "not in the grammar" : reading.state;
    const node = el("div", {
      class: `tape-row${reading.offence ? " fault" : ""}${reading.unknown ? " unknown" : ""}`,
      role: "option", id: `event-${index}`, "aria-selected": String(index === this.selected),
      "aria-posinset": position + 1, "aria-setsize": this.visible.length,
      onclick: () => this.select(index),
    },
    el("span", { class: "at" }, at.toFixed(at < 100 ? 1 : 0)),
    el("span", { class: "levels", "aria-hidden": "true" }, marks),
    // All events of the Responses API begin with the same word.
    el("span", { class: "type", title: reading.type }, reading.type.replace(/^response\./, "")),
    el("span", { class: "summary" }, reading.summary),
    el("span", { class: "state", title: state }, state),
    el("span", { class: "size" }, size > 0 ? formatCount(size) : ""));
    node.style.transform = `translateY(${position * this.rowHeight}px)`;
    return node;
  }

  drawFacts() {
    const { events, bytes, faults } = this.counts;
    const span = this.lastAt - this.firstAt;
    const perSecond = formatCount(Math.round(events / span * 1000));
    const rate = events > 1 && span > 0 ? `${perSecond} /s` : "–";
    const fact = (/** @type {string} */ name, /** @type {string} */ value) =>
      el("span", null, `${name} `, el("b", null, value));
    replace(this.facts, fact("events", formatCount(events)), fact("rate", rate),
      fact("size", formatBytes(bytes)),
      fact("first after", this.firstAt < 0 ? "–" : formatMs(this.firstAt)),
      this.visible.length < this.rows.length
        ? fact("shown", formatCount(this.visible.length)) : null,
      events > MOST_ROWS ? fact("kept", formatCount(this.rows.length)) : null);
    this.onlyFaults.hidden = faults === 0;
    replace(this.onlyFaults, `⚠ ${faults} ${faults === 1 ? "violation" : "violations"}`);
  }

  /** Draws how many events came when. */
  drawPlot() {
    const bins = new Array(BINS).fill(0);
    const faults = new Array(BINS).fill(0);
    const width = Math.max(this.lastAt, 1) / BINS;
    for (const row of this.rows) {
      const bin = Math.min(BINS - 1, Math.floor(row.at / width));
      if (row.isEvent) bins[bin] += 1;
      if (row.reading.offence) faults[bin] += 1;
    }
    const most = Math.max(1, ...bins);
    const bar = (/** @type {number} */ n, /** @type {number} */ x) =>
      n > 0 ? `M${x} 24V${(24 - Math.max(1.5, n / most * 23)).toFixed(2)}h0.75V24z` : "";
    this.bars.setAttribute("d", bins.map(bar).join(""));
    this.faults.setAttribute("d", faults.map((n, x) => (n > 0 ? `M${x} 0h1v24h-1z` : "")).join(""));
    const events = this.counts.events;
    const peak = `peak ${formatCount(most)} in ${formatMs(width)}`;
    const label = events === 0 ? "No events yet"
      : `${events} events in ${formatMs(this.lastAt)}, the first after ${formatMs(this.firstAt)}`;
    this.plot.setAttribute("aria-label", label);
    replace(this.axis, el("span", null, "0"),
      events > 0 ? el("span", null, `events over time, ${peak}`) : null,
      el("span", null, events > 0 ? formatMs(this.lastAt) : ""));
  }

  scrolled() {
    const { list } = this;
    this.follows = list.scrollTop + list.clientHeight >= list.scrollHeight - this.rowHeight;
    this.schedule();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const page = Math.max(1, Math.floor(this.list.clientHeight / this.rowHeight) - 1);
    const last = this.visible.length - 1;
    const present = this.visible.indexOf(this.selected);
    const up = present < 0 ? last : present - 1;
    const steps = new Map([["ArrowDown", present + 1], ["ArrowUp", up], ["Home", 0],
      ["PageDown", present + page], ["PageUp", present - page], ["End", last]]);
    const to = steps.get(event.key);
    if (to === undefined || last < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.reveal(Math.min(last, Math.max(0, to)));
  }

  /** @param {number} position */
  reveal(position) {
    this.scrollTo(position);
    this.select(this.visible[position]);
  }

  /** Brings a row into view. @param {number} position in `visible`, or -1 */
  scrollTo(position) {
    const { list } = this;
    if (position < 0) return;
    const top = position * this.rowHeight;
    if (top < list.scrollTop) list.scrollTop = top;
    const below = top + this.rowHeight - list.clientHeight;
    if (below > list.scrollTop) list.scrollTop = below;
  }

  /** @param {number} index of the row, or -1 */
  select(index) {
    this.selected = index;
    for (const [position, node] of this.nodes) {
      node.setAttribute("aria-selected", String(this.visible[position] === index));
    }
    if (index < 0) {
      replace(this.raw,
        el("p", { class: "soft" }, "Select an event to see its raw data."));
      return;
    }
    this.follows = false;
    this.draw();
    this.showRaw(this.rows[index]);
  }

  /** @param {Row} row */
  showRaw(row) {
    const { reading, raw } = row;
    const text = el("pre", { tabindex: "0", role: "group", "aria-label": "Raw data" });
    const show = (/** @type {boolean} */ indented) =>
      replace(text, indented ? indent(raw) : raw || "(no data)");
    const indented = el("input", {
      type: "checkbox", checked: true,
      onchange: () => show(indented.checked),
    });
    show(true);
    replace(this.raw,
      el("div", { class: "tape-raw-head" },
        el("b", null, reading.type), el("span", { class: "soft" }, `at ${formatMs(row.at)}`),
        el("label", { class: "check" }, indented, "Indent"),
        copyButton(raw, "the event")),
      reading.offence ? el("p", { class: "problem" }, `Violation: ${reading.offence}.`) : null,
      text);
  }

  asText() {
    return this.rows.map(({ at, reading, size, raw }) => {
      const note = reading.offence ? `  VIOLATION: ${reading.offence}` : "";
      const head = `${at.toFixed(1)} ms  ${reading.type}  [${reading.state}]  ${size} B${note}`;
      return `${head}\n${raw}`;
    }).join("\n\n");
  }
}

/** The lines of an event, its JSON indented. @param {string} raw */
function indent(raw) {
  return raw.split("\n").map((line) => {
    const [, field, json] = /^(data: ?)?([[{].*)$/.exec(line) ?? [];
    try {
      return json ? `${field ?? ""}${JSON.stringify(JSON.parse(json), null, 2)}` : line;
    } catch {
      return line;
    }
  }).join("\n") || "(no data)";
}
