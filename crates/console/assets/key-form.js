// The form of a key, for a new one and for changes.
import { el } from "./dom.js";
import { field } from "./parts.js";

const SCOPES = /** @type {const} */ ([
  ["text", "Responses and Chat"], ["messages", "Messages"], ["images", "Images"],
]);

/**
 * Makes the fields, filled with a key if there is one. `read` returns the body of the request, and throws if
 * a field is not valid.
 * @param {Api.Key | null} key
 */
export function keyForm(key) {
  const name = el("input", { required: true, maxlength: "64", autocomplete: "off", spellcheck: "false", value: key?.name ?? "" });
  const scopes = SCOPES.map(([value, label]) => {
    const box = el("input", { type: "checkbox", value, checked: !key || key.scopes.includes(value) });
    return { box, node: el("label", { class: "check" }, box, label) };
  });
  const models = el("input", { autocomplete: "off", spellcheck: "false", placeholder: "every model", value: key?.models?.join(", ") ?? "" });
  const expires = el("input", { autocomplete: "off", placeholder: "never", value: key?.expires ?? "" });
  const limits = limitFields(key?.limits ?? null);
  const content = [
    field("Name", name, "Names the key in the log, in metrics and in usage."),
    el("fieldset", null, el("legend", null, "May use"), el("div", { class: "checks" }, scopes.map(({ node }) => node))),
    field("Models", models, "Names or patterns such as model-5.*, separated by commas."),
    field("Expires", expires, "A span such as 90d, or a date such as 2027-01-31."),
    limits.node,
  ];
  const read = () => {
    const chosen = scopes.filter(({ box }) => box.checked).map(({ box }) => box.value);
    if (chosen.length === 0) throw new Error("Choose at least one of Responses and Chat, Messages, and Images.");
    const patterns = models.value.split(",").map((part) => part.trim()).filter(Boolean);
    const form = {
      name: name.value.trim(), scopes: chosen, models: patterns.length > 0 ? patterns : null,
      expires: expires.value.trim() || null, limits: limits.read(),
    };
    return key ? changesOf(key, form) : withoutNulls(form);
  };
  return { content, read };
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
  return Object.fromEntries(Object.entries(form)
    .filter(([field, value]) => JSON.stringify(value) !== JSON.stringify(before[field] ?? null)));
}

/** @param {Api.KeyLimits | null} limits */
function limitFields(limits) {
  const number = (/** @type {number | undefined} */ value) => el("input", {
    type: "number", min: "1", step: "1", inputmode: "numeric", placeholder: "no limit", value: value ?? "",
  });
  const budget = limits?.budget;
  const concurrency = number(limits?.concurrency);
  const requests = number(limits?.requests_per_minute);
  const tokens = number(limits?.tokens_per_minute);
  const amount = el("input", { inputmode: "decimal", pattern: "[0-9]+([.][0-9]+)?", placeholder: "no budget", value: budget?.amount ?? "" });
  const currency = el("input", { maxlength: "3", pattern: "[A-Z]{3}", value: budget?.currency ?? "USD" });
  const period = el("select", null, ["hour", "day", "week", "month"]
    .map((word) => el("option", { value: word, selected: word === (budget?.window ?? "month") }, word)));
  const zone = el("input", { placeholder: "UTC", spellcheck: "false", value: budget?.zone ?? "" });
  const node = el("details", { open: limits !== null }, el("summary", null, "Limits of this key alone"),
    el("fieldset", null,
      el("div", { class: "pair" }, field("At the same time", concurrency), field("Requests per minute", requests)),
      el("div", { class: "pair" }, field("Tokens per minute", tokens), field("Budget", amount)),
      el("div", { class: "pair" }, field("Currency", currency), field("For each", period)),
      field("Time zone of the budget", zone)));
  const read = () => {
    const found = {
      concurrency: count(concurrency), requests_per_minute: count(requests), tokens_per_minute: count(tokens),
      budget: amount.value.trim() ? withoutNulls({
        amount: amount.value.trim(), currency: currency.value, window: period.value, zone: zone.value.trim() || null,
      }) : null,
    };
    const given = withoutNulls(found);
    return Object.keys(given).length > 0 ? given : null;
  };
  return { node, read };
}

/** @param {HTMLInputElement} input */
function count(input) {
  return input.value === "" ? null : Number(input.value);
}
