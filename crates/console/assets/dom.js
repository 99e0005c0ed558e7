// Builds elements without HTML strings, and formats values for people.

/**
 * @typedef {Node | string | number | null | undefined | false | any[]} Child
 * @typedef {Record<string, any>} Attributes functions become listeners; true is present; false,
 *   null and undefined are absent
 */

/**
 * Makes an element: `el("button", { class: "quiet", onclick: send }, "Send")`.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes | null} [attributes]
 * @param {...any} children nodes, texts, numbers or arrays of them; null, undefined and false are
 *   skipped
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  setAttributes(node, attributes ?? {});
  append(node, children);
  return node;
}

/**
 * Makes an element of a drawing.
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes | null} [attributes]
 * @param {...any} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAttributes(node, attributes ?? {});
  append(node, children);
  return node;
}

/**
 * @param {Element} node
 * @param {Attributes} attributes
 */
function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    // The attribute of a textarea or a select would do nothing.
    else if (name === "value" && "value" in node) node.value = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
}

/**
 * Adds children; arrays are flattened.
 * @param {Element} node
 * @param {Child[]} children
 */
function append(node, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(node, child);
    else node.append(typeof child === "number" ? String(child) : child);
  }
}

/**
 * Removes all children.
 * @param {Element} node
 */
export function clear(node) {
  node.replaceChildren();
}

/**
 * Replaces all children.
 * @param {Element} node
 * @param {...any} children
 */
export function replace(node, ...children) {
  node.replaceChildren();
  append(node, children);
}

/**
 * Makes a text node of any value.
 * @param {unknown} value
 */
export function text(value) {
  return document.createTextNode(value === null || value === undefined ? "" : String(value));
}

const NO_VALUE = "–";
const counts = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

/**
 * Formats a span: `850 ms`, `1.24 s`, `2 min 5 s`, `3 h 10 min`.
 * @param {number | null | undefined} ms
 */
export function formatMs(ms) {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return NO_VALUE;
  if (ms < 9.95) return `${counts.format(ms)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9_995) return `${(ms / 1000).toFixed(2)} s`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.floor(minutes / 1440)} d ${Math.floor((minutes % 1440) / 60)} h`;
}

/**
 * Formats a number with separators of thousands.
 * @param {number | null | undefined} n
 */
export function formatCount(n) {
  return n === null || n === undefined ? NO_VALUE : counts.format(n);
}

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/**
 * Formats a number in few characters: `9,999`, `12.3K`, `4.5M`.
 * @param {number} n
 */
export function formatShort(n) {
  return n < 10_000 ? counts.format(n) : compact.format(n);
}

/**
 * Formats a time in the zone of the reader: of today `14:03:22`, of another day `28 Nov 14:03`.
 * @param {string | null | undefined} iso
 */
export function formatTime(iso) {
  if (!iso) return NO_VALUE;
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) return iso;
  const clock = time.toTimeString().slice(0, 8);
  const now = new Date();
  if (time.toDateString() === now.toDateString()) return clock;
  const month = time.toLocaleString("en", { month: "short" });
  const year = time.getFullYear() === now.getFullYear() ? "" : ` ${time.getFullYear()}`;
  return `${time.getDate()} ${month}${year} ${clock.slice(0, 5)}`;
}

/**
 * Formats an amount of money; small ones keep three significant digits. Prices and usage name no
 * currency: all amounts are in the one of the budgets.
 * @param {string | null | undefined} decimal
 * @param {string} [currency]
 */
export function formatMoney(decimal, currency = "") {
  if (decimal === null || decimal === undefined) return NO_VALUE;
  const amount = Number(decimal);
  if (!Number.isFinite(amount)) return decimal;
  const unit = currency && ` ${currency}`;
  if (amount === 0 || Math.abs(amount) >= 0.1) return group(amount.toFixed(2)) + unit;
  const digits = Math.min(9, Math.max(2, 2 - Math.floor(Math.log10(Math.abs(amount)))));
  return amount.toFixed(digits) + unit;
}

/** @param {string} fixed */
function group(fixed) {
  return fixed.replace(/\B(?=(\d{3})+\.)/g, ",");
}

/**
 * Tells a screen reader something, politely.
 * @param {string} message
 */
export function announce(message) {
  const region = document.getElementById("announcer");
  // The same text twice would not be read twice.
  if (region) region.textContent = region.textContent === message ? `${message}\u00a0` : message;
}
