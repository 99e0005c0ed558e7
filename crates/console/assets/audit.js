// The changes of keys, newest first.
import { el, formatTime, replace } from "./dom.js";
import { api } from "./api.js";
import { loader, row, table, time, words } from "./parts.js";

/** @type {Column[]} */
const COLUMNS = [
  { title: "Time" },
  { title: "By" },
  { title: "Change" },
  { title: "Key" },
  { title: "Properties" },
];
const PAGE = 20;
/** The properties that are Unix seconds. */
const TIMES = ["expires", "old_until"];
const WORDS = { create: "made", change: "changed", rotate: "rotated", revoke: "revoked" };

/**
 * Makes the list, which is empty until it is loaded.
 * @param {(id: string) => string | undefined} nameOf the name of a key, if it is known
 */
export function auditLog(nameOf) {
  const node = el("section", { class: "section" });
  const page = (/** @type {number | null} */ before) =>
    api("GET", `/admin/v1/audit?limit=${PAGE}${before === null ? "" : `&before=${before}`}`);
  const rows = (/** @type {Api.AuditEntry[]} */ entries) =>
    entries.map((entry) => entryRow(entry, nameOf));
  const load = loader(
    node,
    () => page(null),
    (/** @type {Api.AuditPage} */ { entries, next }) => {
      if (entries.length === 0) return replace(node);
      const shown = table("Changes of keys", COLUMNS, rows(entries), "cards");
      replace(node, el("h2", null, "Changes of keys"), shown, next && older(shown, next));
    },
    () => replace(node),
  );
  /**
   * @param {HTMLElement} shown
   * @param {number} next
   */
  const older = (shown, next) => {
    const more = async () => {
      button.disabled = true;
      const { entries, next: after } = await page(next);
      shown.querySelector("tbody")?.append(...rows(entries));
      if (after) button.replaceWith(older(shown, after));
      else button.remove();
    };
    const button = el("button", { type: "button", class: "quiet", onclick: more }, "Show older");
    return button;
  };
  return { node, load };
}

/**
 * @param {Api.AuditEntry} entry
 * @param {(id: string) => string | undefined} nameOf
 */
function entryRow({ at, actor, action, key, details }, nameOf) {
  const isNamed = typeof details.name === "string";
  const properties = Object.entries(details).filter(
    ([property, value]) => value !== null && !(property === "name" && isNamed),
  );
  return row(COLUMNS, [
    time(at),
    actor,
    WORDS[action] ?? action,
    [isNamed ? details.name : nameOf(key), el("code", { class: "soft line" }, key)],
    properties.map(([property, value]) =>
      el("span", { class: "line" }, `${words(property)}: ${changed(property, value)}`),
    ),
  ]);
}

/**
 * Writes a property, or the change of one.
 * @param {string} name
 * @param {any} value
 */
function changed(name, value) {
  if (value?.to === undefined) return written(name, value);
  return `${written(name, value.from)} → ${written(name, value.to)}`;
}

/**
 * @param {string} name
 * @param {any} value
 * @returns {string}
 */
function written(name, value) {
  if (value === null) return "none";
  if (TIMES.includes(name)) return formatTime(new Date(value * 1000).toISOString());
  if (Array.isArray(value)) return value.join(", ");
  if (typeof value !== "object") return String(value);
  const parts = Object.entries(value).map(([part, one]) => `${words(part)} ${written(part, one)}`);
  return parts.join(", ");
}
