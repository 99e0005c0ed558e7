// The prices of the configuration.
import { el, replace } from "./dom.js";
import { api } from "./api.js";
import { loader, row, table, time, words } from "./parts.js";

/** @type {Column[]} */
const COLUMNS = [
  { title: "Model" },
  { title: "Input", class: "num" },
  { title: "Cache read", class: "num" },
  { title: "Output", class: "num" },
  { title: "Others" },
];
const OTHERS = [
  "cache_write",
  "cache_write_1h",
  "audio_input",
  "image_input",
  "reasoning",
  "audio_output",
  "image_output",
];
const UNKNOWN = {
  refuse: "A model without a price is refused to keys that have a budget.",
  free: "A model without a price costs nothing.",
  default: "A model without a price has the default price.",
};

/** Makes the list, and loads it. */
export function priceList() {
  const node = el("section", { class: "section" });
  const load = loader(
    node,
    () => api("GET", "/admin/v1/prices"),
    ({ prices, unknown_price: unknown }) =>
      replace(
        node,
        el("h2", null, "Prices"),
        el(
          "p",
          { class: "hint" },
          prices.length > 0 && "Of a million tokens, in the currency of the budgets. ",
          UNKNOWN[/** @type {keyof typeof UNKNOWN} */ (unknown)],
        ),
        prices.length > 0 && table("Prices", COLUMNS, prices.map(priceRow), "cards"),
      ),
  );
  void load();
  return node;
}

/** @param {Api.Price} price */
function priceRow(price) {
  const { model, upstream, valid_from: from, input, cached_input: cached, output } = price;
  return row(COLUMNS, [
    [
      model,
      upstream && el("span", { class: "soft line" }, `at ${upstream}`),
      from && el("span", { class: "soft line" }, "from ", time(from)),
    ],
    input,
    cached ?? input,
    output,
    [
      ...kinds(price).map(line),
      ...(price.tiers ?? []).map(tierLine),
      ...(price.pictures ?? []).map(({ size, quality, price: one }) =>
        line(`picture ${[size, quality].filter((word) => word !== "*").join(" ")}: ${one}`),
      ),
    ],
  ]);
}

/** @param {string} text */
const line = (text) => el("span", { class: "line" }, text);

/** @param {Record<string, any>} price */
const kinds = (price) =>
  OTHERS.filter((kind) => price[kind] != null).map((kind) => `${words(kind)} ${price[kind]}`);

/** @param {Api.PriceTier} tier */
function tierLine(tier) {
  const conditions = [tier.service_tier, tier.above > 0 && `above ${tier.above} tokens`];
  const main = ["input", "cached_input", "output"].filter((kind) => tier[kind] != null);
  const changed = [...main.map((kind) => `${words(kind)} ${tier[kind]}`), ...kinds(tier)];
  return line(`${conditions.filter(Boolean).join(", ")}: ${changed.join(", ")}`);
}
