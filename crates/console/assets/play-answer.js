// Shows an answer while it arrives: text, reasoning, tool calls, images, and the facts at its end.

import { el, formatCount, formatMs, replace } from "./dom.js";
import { MarkdownView } from "./play-markdown.js";

/** @typedef {import("./play-events.js").Answer} Answer */

export class AnswerView {
  /** @param {string} title @param {UseImage} useImage */
  constructor(title, useImage) {
    this.useImage = useImage;
    this.title = el("h2", null, title);
    this.strip = el("div", { class: "previews" });
    this.body = el("div", { class: "answer-body" });
    this.foot = el("div", { class: "answer-foot" });
    this.waiting = el("p", { class: "soft waiting" }, "Waiting for the first event …");
    this.node = el("article", { class: "turn answer" },
      this.title, this.waiting, this.strip, this.body, this.foot);
    /** @type {Map<Part, PartView>} */
    this.views = new Map();
    /** @type {Answer | null} */
    this.answer = null;
    this.frame = 0;
    this.notBefore = 0;
    /** Called after the answer was drawn, for scrolling. */
    this.ondraw = () => {};
  }

  /** @param {Answer} answer */
  show(answer) {
    this.answer = answer;
    this.frame ||= requestAnimationFrame(() => this.tick());
  }

  tick() {
    this.frame = 0;
    const now = performance.now();
    if (now < this.notBefore) {
      this.frame = requestAnimationFrame(() => this.tick());
      return;
    }
    this.draw();
    // A long paragraph is expensive to draw again; then the answer takes fewer frames.
    const took = performance.now() - now;
    this.notBefore = now + (took > 4 ? took * 8 : 0);
  }

  draw() {
    const { answer } = this;
    if (!answer) return;
    if (answer.parts.length > 0) this.waiting.remove();
    if (answer.model && this.title.textContent !== answer.model) {
      this.title.textContent = answer.model;
    }
    for (const part of answer.parts) {
      let view = this.views.get(part);
      if (!view) {
        view = viewOf(part, this.useImage);
        this.views.set(part, view);
        (isPreview(part) ? this.strip : this.body).append(view.node);
      }
      view.update(part);
    }
    this.ondraw();
  }

  /** @param {Facts} facts */
  finish(facts) {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.draw();
    this.waiting.remove();
    replace(this.foot, problemOf(facts), droppedOf(facts), this.factList(facts));
    this.ondraw();
  }

  /** @param {Facts} facts */
  factList(facts) {
    const { answer } = this;
    const usage = answer?.usage;
    const writing = facts.totalMs - facts.firstMs;
    const writes = answer?.finish !== "" && answer?.parts.every((part) => part.kind !== "image");
    const rate = writes && usage && usage.output > 1 && facts.firstMs >= 0 && writing > 50
      ? `${formatCount(Math.round(usage.output / writing * 1000))} tokens/s` : "";
    const cached = usage?.cached ? `, ${formatCount(usage.cached)} from cache` : "";
    const thought = usage?.reasoning ? `, ${formatCount(usage.reasoning)} reasoning` : "";
    return el("dl", { class: "answer-facts" },
      fact("End", facts.end === "complete" ? answer?.finish || "complete" : facts.end),
      fact("First event", facts.firstMs < 0 ? "" : formatMs(facts.firstMs)),
      fact("Total", formatMs(facts.totalMs)),
      fact("Input", usage ? `${formatCount(usage.input)} tokens${cached}` : ""),
      fact("Output", usage ? `${formatCount(usage.output)} tokens${thought}` : ""),
      fact("Rate", rate),
      facts.requestId
        ? fact("Request", el("a", { href: `#/requests/${encodeURIComponent(facts.requestId)}` },
          "explain ", el("code", null, facts.requestId)))
        : null);
  }
}

/** @param {string} name @param {string | Node} value */
const fact = (name, value) => (value === "" ? null : el("div", null, el("dt", null, name),
  el("dd", null, value)));

/** @param {Facts} facts */
const problemOf = (facts) =>
  facts.problem ? el("p", { class: "problem" }, facts.problem) : null;

/** @param {Facts} facts */
const droppedOf = (facts) => facts.dropped
  ? el("p", { class: "notice" }, "Fields that the target could not be given: ",
    el("code", null, facts.dropped))
  : null;

/** @param {Part} part */
const isPreview = (part) => part.kind === "image" && !part.done;

/** @param {Part} part @param {UseImage} useImage @returns {PartView} */
function viewOf(part, useImage) {
  if (part.kind === "reasoning") return reasoningView();
  if (part.kind === "call") return callView();
  if (part.kind === "other") return otherView();
  if (part.kind === "image") return imageView(part, useImage);
  const view = new MarkdownView();
  if (part.kind === "refusal") view.node.classList.add("refusal");
  const name = part.name ? el("p", { class: "soft" }, part.name) : null;
  return { node: el("div", null, name, view.node), update: ({ text }) => view.update(text) };
}

/** @returns {PartView} */
function reasoningView() {
  const view = new MarkdownView();
  const size = el("span", { class: "soft" });
  const node = el("details", { class: "reasoning" }, el("summary", null, "Reasoning ", size),
    view.node);
  let text = "";
  // Folded content costs nothing until it is opened.
  node.addEventListener("toggle", () => {
    if (node.open) view.update(text);
  });
  const update = (/** @type {Part} */ part) => {
    if (part.text === text) return;
    text = part.text;
    size.textContent = `${formatCount(text.length)} characters`;
    if (node.open) view.update(text);
  };
  return { node, update };
}

/** @returns {PartView} */
function callView() {
  const name = el("b", null);
  const id = el("code", { class: "soft" });
  const text = el("pre", { tabindex: "0", role: "group", "aria-label": "Arguments" });
  const node = el("div", { class: "call" },
    el("p", { class: "call-head" }, "Calls ", name, " ", id), text);
  let shown = "";
  const update = (/** @type {Part} */ part) => {
    const present = `${part.name} ${part.id} ${part.done} ${part.text.length}`;
    if (present === shown) return;
    shown = present;
    name.textContent = part.name;
    id.textContent = part.id;
    text.textContent = part.done ? indented(part.text) : part.text;
  };
  return { node, update };
}

/** @param {string} json */
function indented(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

/** @returns {PartView} */
function otherView() {
  const name = el("summary", null);
  const text = el("pre", { tabindex: "0", role: "group", "aria-label": "Item" });
  const update = (/** @type {Part} */ part) => {
    name.textContent = `Item of type ${part.name}`;
    if (text.textContent !== part.text) text.textContent = part.text;
  };
  return { node: el("details", { class: "reasoning" }, name, text), update };
}

/** The media type of an image, by the first characters of its base64. @param {string} base64 */
function imageType(base64) {
  if (base64.startsWith("/9j/")) return "image/jpeg";
  return base64.startsWith("UklGR") ? "image/webp" : "image/png";
}

/** @param {Part} part @param {UseImage} useImage @returns {PartView} */
function imageView(part, useImage) {
  // Servers may answer with an address; the page loads nothing from elsewhere.
  if (/^https?:/.test(part.text) || part.text === "") {
    const node = el("p", null, "The server sent an address instead of an image: ",
      el("code", null, part.text || "(empty)"));
    return { node, update: () => {} };
  }
  const type = imageType(part.text);
  const url = `data:${type};base64,${part.text}`;
  const image = el("img", { src: url, alt: part.name });
  image.addEventListener("error", () => image.replaceWith(el("p", { class: "problem" },
    "This is not an image that the browser can show.")));
  const caption = el("figcaption", null, el("b", null, part.name), ` ${formatMs(part.at)}`);
  if (part.done) {
    const name = `${part.name.toLowerCase().replace(/\W+/g, "-")}.${type.slice(6)}`;
    caption.append(
      el("button", { type: "button", onclick: () => save(url, name) }, "Save"),
      el("button", { type: "button", class: "quiet", onclick: () => useImage(name, url) },
        "Use as reference"));
  }
  const revised = part.id ? el("p", { class: "soft" }, part.id) : null;
  return { node: el("figure", null, image, caption, revised), update: () => {} };
}

/** Saves a data URL as a file. @param {string} url @param {string} name */
function save(url, name) {
  const [head, base64] = url.split(",");
  const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  const blob = new Blob([bytes], { type: head.slice(5, head.indexOf(";")) });
  const address = URL.createObjectURL(blob);
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
