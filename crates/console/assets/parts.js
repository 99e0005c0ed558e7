// The parts that screens share: tables, badges, notices, dialogs, copy buttons and bars.
import { announce, el, formatTime, replace } from "./dom.js";
import { ApiFailure, changes } from "./api.js";

/**
 * Makes a table in a region that scrolls by itself if it has to.
 * @param {string} caption its name for screen readers
 * @param {Column[]} columns
 * @param {(HTMLTableRowElement | HTMLTableSectionElement)[]} rows
 * @param {string} [kind] a class, such as `cards`: rows become blocks where there is little room
 */
export function table(caption, columns, rows, kind = "") {
  // Roles are explicit, because a changed display takes them away.
  const heads = columns.map(({ title, class: name, hidden }) =>
    el(
      "th",
      { scope: "col", class: name, role: "columnheader" },
      hidden ? el("span", { class: "visually-hidden" }, title) : title,
    ),
  );
  const isGrouped = rows[0]?.tagName === "TBODY";
  const body = isGrouped ? rows : el("tbody", { role: "rowgroup" }, rows);
  const content = el(
    "table",
    { class: kind, role: "table", "aria-label": caption },
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, heads)),
    body,
  );
  const wrap = el("div", { class: "table-wrap" }, content);
  // A table that has to be scrolled can be reached by keyboard for that; others are no stop.
  new ResizeObserver(() => {
    const scrolls = wrap.scrollWidth > wrap.clientWidth;
    const attributes = { role: "region", "aria-label": caption, tabindex: "0" };
    for (const [name, value] of Object.entries(attributes)) {
      if (scrolls) wrap.setAttribute(name, value);
      else wrap.removeAttribute(name);
    }
  }).observe(content);
  return wrap;
}

/**
 * Makes a row of a table; the first cell is its head.
 * @param {Column[]} columns
 * @param {any[]} cells
 */
export function row(columns, cells) {
  return el(
    "tr",
    { role: "row" },
    cells.map((cell, index) => {
      const { title = "", class: name } = columns[index] ?? {};
      if (index === 0) return el("th", { scope: "row", role: "rowheader", class: name }, cell);
      // One child, because a cell of a card is a grid of its title and its content.
      if (Array.isArray(cell)) cell = el("div", null, cell);
      return el("td", { class: name, role: "cell", "data-label": title }, cell);
    }),
  );
}

/**
 * Makes a word with a mark of its tone.
 * @param {string} word
 * @param {"good" | "warn" | "bad" | "busy" | "idle"} tone
 */
export function badge(word, tone) {
  return el("span", { class: `badge ${tone}` }, word);
}

const TONES = /** @type {const} */ ({
  completed: "good",
  incomplete: "good",
  refused: "warn",
  shed: "warn",
  upstream_error: "bad",
  upstream_truncated: "bad",
  internal: "bad",
  timeout: "bad",
  lease_lost: "bad",
});
/** The outcomes of requests, as the log and the metrics name them. */
export const OUTCOMES = [
  "completed",
  "incomplete",
  "refused",
  "shed",
  "upstream_error",
  "upstream_truncated",
  "internal",
  "timeout",
  "client_gone",
  "slow_reader",
  "shutdown",
  "revoked",
  "lease_lost",
  "ended_by_operator",
];

/** @param {string} outcome */
export function outcomeBadge(outcome) {
  return badge(words(outcome), TONES[/** @type {keyof typeof TONES} */ (outcome)] ?? "idle");
}

/**
 * Says whether an outcome is a failure; a client that left and an operator who ended it are none.
 * @param {string} outcome
 */
export function isFailure(outcome) {
  return !["completed", "incomplete", "client_gone", "ended_by_operator"].includes(outcome);
}

/**
 * Writes a name of the API as words: `upstream_error` as `upstream error`.
 * @param {string} name
 */
export function words(name) {
  return name.replaceAll("_", " ");
}

/**
 * Makes two lines of the model and the key of a request, which clients and operators name freely.
 * @param {{ model: string | null, key: string }} request
 */
export function names({ model, key }) {
  return [
    el("span", { class: "clip", title: model }, model ?? "–"),
    el("span", { class: "soft clip", title: key }, key),
  ];
}

/**
 * Makes a time in the zone of the reader, with the exact one behind it.
 * @param {string} iso
 */
export function time(iso) {
  return el("time", { datetime: iso, title: iso }, formatTime(iso));
}

/**
 * Makes a list of short names, such as dropped fields.
 * @param {string[]} names
 */
export function tags(names) {
  return el(
    "span",
    { class: "tags" },
    names.map((name) => [el("code", null, name), " "]),
  );
}

/**
 * Makes a list of names and values; pairs whose value is null are left out.
 * @param {[string, any][]} pairs
 */
export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined);
  return el(
    "dl",
    { class: "facts" },
    shown.map(([name, value]) => el("div", null, el("dt", null, name), el("dd", null, value))),
  );
}

/**
 * Makes a bar of a part of a whole, with the numbers beside it.
 * @param {string} name
 * @param {number} used
 * @param {number} limit
 * @param {string} label the numbers as text
 * @param {number} [reserved] a further part, drawn lighter
 */
export function bar(name, used, limit, label, reserved = 0) {
  const share = (/** @type {number} */ n) => `${Math.min(100, limit > 0 ? (n / limit) * 100 : 0)}%`;
  const fill = el("span", { class: "fill" });
  const light = el("span", { class: "fill light" });
  fill.style.width = share(used);
  light.style.width = share(used + reserved);
  const tone = used >= limit ? " full" : used + reserved >= 0.8 * limit ? " near" : "";
  return el(
    "div",
    { class: `meter${tone}` },
    el("span", { class: "meter-name" }, name),
    el("span", { class: "track", "aria-hidden": "true" }, light, fill),
    el("span", { class: "meter-label" }, label),
  );
}

/**
 * Makes a button that copies a text.
 * @param {string | (() => string)} text
 * @param {string} [what] what is copied, for screen readers
 */
export function copyButton(text, what = "") {
  const button = el(
    "button",
    {
      type: "button",
      class: "quiet copy",
      "aria-label": what ? `Copy ${what}` : null,
      onclick: async () => {
        const isCopied = await copy(typeof text === "string" ? text : text(), button);
        button.textContent = isCopied ? "Copied" : "Not allowed";
        announce(isCopied ? "Copied" : "The browser did not allow to copy");
        setTimeout(() => (button.textContent = "Copy"), 1500);
      },
    },
    "Copy",
  );
  return button;
}

/**
 * @param {string} text
 * @param {HTMLElement} button
 */
async function copy(text, button) {
  if (navigator.clipboard)
    return navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
  // Pages without encryption have no clipboard, unless they are local.
  const area = el("textarea", { value: text });
  button.after(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  button.focus();
  return isCopied;
}

/**
 * Says that there is nothing to show yet, and what will be.
 * @param {string} title
 * @param {...any} children
 */
export function empty(title, ...children) {
  return el(
    "div",
    { class: "empty" },
    el("p", { class: "empty-title" }, title),
    el("p", null, children),
  );
}

/**
 * The reason of a failure; without a store, also the setting that adds one.
 * @param {unknown} error
 */
export function failureNotice(error) {
  const failure = error instanceof ApiFailure ? error : null;
  if (failure?.code === "no_store") return noStore();
  const message = error instanceof Error ? error.message : String(error);
  const details = failure?.code && failure.status ? ` (${failure.status} ${failure.code})` : "";
  return el("div", { class: "notice bad", role: "alert" }, el("p", null, message, details));
}

function noStore() {
  return empty(
    "This gateway has no store",
    "It keeps keys that are made while it runs, usage and budgets. Add one to the ",
    "configuration, and start the gateway again:",
    el(
      "code",
      { class: "block" },
      '[state]\naccounting = "sqlite:/var/lib/sluicegate/accounting.db"',
    ),
  );
}

/**
 * Loads something into a node again and again: shows that it loads if that takes long, and why it
 * failed. An answer that arrives after a later call began is dropped.
 * @template T
 * @param {HTMLElement} node
 * @param {() => Promise<T>} load
 * @param {(value: T) => void} show
 * @param {(error: unknown) => void} [fail]
 * @returns {() => Promise<void>}
 */
export function loader(node, load, show, fail = (error) => replace(node, failureNotice(error))) {
  let latest = 0;
  return async () => {
    const mine = ++latest;
    const isFirst = !node.hasChildNodes();
    const slow = setTimeout(
      () => isFirst && replace(node, el("p", { class: "soft" }, "Loading…")),
      200,
    );
    try {
      const value = await load();
      if (mine === latest) show(value);
    } catch (error) {
      if (mine === latest) fail(error);
    } finally {
      clearTimeout(slow);
    }
  };
}

/**
 * Calls a function at once, after requests have finished, at most once in a time, and when the
 * stream of changes is back.
 * @param {() => void} run
 * @param {number} everyMs
 * @returns {() => void} ends it
 */
export function whenRequestsFinish(run, everyMs) {
  /** @type {number | undefined} */
  let timer;
  const soon = () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      run();
    }, everyMs);
  };
  let wasRun = false;
  const now = () => {
    wasRun = true;
    run();
  };
  const stop = changes.listen({ requests: soon, open: now, lost: () => wasRun || now() });
  return () => {
    clearTimeout(timer);
    stop();
  };
}

/**
 * Shows a dialog with a form. `submit` may throw, which is shown in the dialog, or return what to
 * do after it was closed.
 * @param {object} options
 * @param {string} options.title
 * @param {any} options.content
 * @param {string | null} [options.problem] what is said above the buttons at first
 * @param {string} options.action the word on the button
 * @param {boolean} [options.isDangerous]
 * @param {string} [options.cancel] the word on the other button
 * @param {() => Promise<(() => void) | void>} options.submit
 */
export function openForm({ title, content, problem, action, isDangerous, cancel, submit }) {
  const message = el("p", { class: "problem", role: "alert" }, problem);
  const button = el("button", { class: isDangerous ? "danger" : "primary" }, action);
  const close = el("button", { type: "button", onclick: () => dialog.close() }, cancel ?? "Cancel");
  const form = el(
    "form",
    { method: "dialog" },
    el("h2", { id: "dialog-title" }, title),
    content,
    message,
    el("div", { class: "actions" }, close, button),
  );
  const dialog = el("dialog", { "aria-labelledby": "dialog-title" }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    replace(message);
    try {
      const next = await submit();
      dialog.close();
      next?.();
    } catch (error) {
      replace(message, error instanceof Error ? error.message : String(error));
    }
    button.disabled = false;
  });
  show(dialog);
  // A dangerous action is not what the return key does first.
  if (isDangerous) close.focus();
  return dialog;
}

/**
 * Shows a dialog until it is closed.
 * @param {HTMLDialogElement} dialog
 */
export function show(dialog) {
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/**
 * Makes a labelled field.
 * @param {string} label
 * @param {HTMLElement} control
 * @param {string} [hint]
 */
export function field(label, control, hint) {
  const id = `field-${(fields += 1)}`;
  control.id = id;
  if (hint) control.setAttribute("aria-describedby", `${id}-hint`);
  return el(
    "div",
    { class: "field" },
    el("label", { for: id }, label),
    control,
    hint && el("p", { class: "hint", id: `${id}-hint` }, hint),
  );
}

let fields = 0;
