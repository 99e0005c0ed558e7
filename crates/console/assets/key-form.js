// The form of a key, for a new one and for changes.
import { el } from "./dom.js";
import { field } from "./parts.js";

const SCOPES = /** @type {const} */ ([
  ["text", "Responses and Chat"],
  ["messages", "Messages"],
  ["images", "Images"],
]);

/**
 * Makes the fields, filled with a key if there is one. `read` returns the body of the request, and
 * throws if a field is not valid.
 * @param {Api.Key | null} key
 */
export function keyForm(key) {
  const name = line({ required: true, maxlength: "64", value: key?.name ?? "" });
  const scopes = scopeBoxes(key);
  const models = line({ placeholder: "every model", value: key?.models?.join(", ") ?? "" });
  const expires = line({ placeholder: "never", value: key?.expires ?? "" });
  const limits = limitFields(key?.limits ?? null);
  const content = [
    field("Name", name, "Names the key in the log, in metrics and in usage."),
    scopes.node,
    field("Models", models, "Names or patterns such as model-5.*, separated by commas."),
    field("Expires", expires, "A span such as 90d, or a date such as 2027-01-31."),
    limits.node,
  ];
  const read = () => {
    const patterns = models.value.split(",").map((part) => part.trim());
    const named = patterns.filter(Boolean);
    const form = {
      name: name.value.trim(),
      scopes: scopes.read(),
      models: named.length > 0 ? named : null,
      expires: expires.value.trim() || null,
      limits: limits.read(),
    };
    return key ? changesOf(key, form) : withoutNulls(form);
  };
  return { content, read };
}

/** @param {import("./dom.js").Attributes} attributes */
function line(attributes) {
  return el("input", { autocomplete: "off", spellcheck: "false", ...attributes });
}

/** @param {Api.Key | null} key */
function scopeBoxes(key) {
  const boxes = SCOPES.map(([value]) =>
    el("input", { type: "checkbox", value, checked: !key || key.scopes.includes(value) }),
  );
  const labels = SCOPES.map(([, word], index) =>
    el("label", { class: "check" }, boxes[index], word),
  );
  const node = el(
    "fieldset",
    null,
    el("legend", null, "May use"),
    el("div", { class: "checks" }, labels),
  );
  const read = () => {
    const chosen = boxes.filter((box) => box.checked).map((box) => box.value);
    if (chosen.length === 0) throw new Error("Choose at least one protocol that the key may use.");
    return chosen;
  };
  return { node, read };
}

/** @param {Record<string, unknown>} form */
function withoutNulls(form) {
  return Object.fromEntries(Object.entries(form).filter(([, value]) => value !== null));
}

/**
 * Leaves out what is as before: an expiry that has passed, for example, would be refused.
 * @param {Api.Key} key
 * @param {Record<string, unknown>} form
 */
function changesOf(key, form) {
  const before = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (key));
  const isNew = (/** @type {string} */ name, /** @type {unknown} */ value) =>
    JSON.stringify(value) !== JSON.stringify(before[name] ?? null);
  return Object.fromEntries(Object.entries(form).filter(([name, value]) => isNew(name, value)));
}

/** @param {Api.KeyLimits | null} limits */
function limitFields(limits) {
  const concurrency = number(limits?.concurrency);
  const requests = number(limits?.requests_per_minute);
  const tokens = number(limits?.tokens_per_minute);
  const budget = budgetFields(limits?.budget);
  const node = el(
    "details",
    { open: limits !== null },
    el("summary", null, "Limits of this key alone"),
    el(
      "div",
      { class: "pair" },
      field("At the same time", concurrency),
      field("Requests per minute", requests),
      field("Tokens per minute", tokens),
      budget.nodes,
    ),
  );
  const read = () => {
    const given = withoutNulls({
      concurrency: count(concurrency),
      requests_per_minute: count(requests),
      tokens_per_minute: count(tokens),
      budget: budget.read(),
    });
    return Object.keys(given).length > 0 ? given : null;
  };
  return { node, read };
}

/** @param {Api.KeyLimits["budget"]} budget */
function budgetFields(budget) {
  const decimal = { inputmode: "decimal", pattern: "[0-9]+([.][0-9]+)?" };
  const amount = line({ ...decimal, placeholder: "no budget", value: budget?.amount ?? "" });
  const currency = line({ pattern: "[A-Z]{3}", value: budget?.currency ?? "USD" });
  const period = el(
    "select",
    null,
    ["hour", "day", "week", "month"].map((word) =>
      el("option", { value: word, selected: word === (budget?.window ?? "month") }, word),
    ),
  );
  const zone = line({ placeholder: "UTC", value: budget?.zone ?? "" });
  const nodes = [
    field("Budget", amount),
    field("Currency", currency),
    field("For each", period),
    field("Time zone", zone),
  ];
  const read = () => {
    if (!amount.value.trim()) return null;
    return withoutNulls({
      amount: amount.value.trim(),
      currency: currency.value,
      window: period.value,
      zone: zone.value.trim() || null,
    });
  };
  return { nodes, read };
}

/** @param {number | undefined} value */
function number(value) {
  return el("input", { type: "number", min: "1", placeholder: "no limit", value: value ?? "" });
}

/** @param {HTMLInputElement} input */
function count(input) {
  return input.value === "" ? null : Number(input.value);
}
