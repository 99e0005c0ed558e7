// The models: to which targets each goes, on which roads, and what is dropped or refused there.
import { el, formatCount, replace } from "./dom.js";
import { api } from "./api.js";
import { badge, empty, loader, row, table, tags, words } from "./parts.js";

const PROTOCOLS = [
  ["responses", "Responses"],
  ["chat", "Chat"],
  ["messages", "Messages"],
  ["images", "Images"],
];
const MOST = 100;

/** @type {import("./app.js").Screen} */
export const screen = {
  id: "models",
  title: "Models",
  mount(container) {
    const list = el("div");
    const search = el("input", {
      type: "search",
      id: "model-search",
      placeholder: "Model or target",
      oninput: () => show(),
    });
    const toolbar = el(
      "div",
      { class: "toolbar", role: "search", hidden: true },
      el("div", { class: "field" }, el("label", { for: "model-search" }, "Find"), search),
    );
    /** @type {Api.Model[]} */
    let all = [];
    const show = () => {
      const word = search.value.trim().toLowerCase();
      const found = all.filter(
        ({ id, targets }) =>
          id.toLowerCase().includes(word) ||
          targets.some(({ target, model }) =>
            `${target} ${model ?? ""}`.toLowerCase().includes(word),
          ),
      );
      replace(list, modelList(found, all.length));
    };
    const load = loader(
      list,
      () => api("GET", "/admin/v1/models"),
      ({ models }) => {
        all = models;
        toolbar.hidden = all.length < 8;
        show();
      },
    );
    container.append(explanation(), toolbar, list);
    void load();
    return () => {};
  },
};

function explanation() {
  return el(
    "p",
    { class: "soft lead" },
    el("b", null, "Relayed"),
    " requests reach a target that speaks the client's protocol. ",
    el("b", null, "Translated"),
    " ones are written in another protocol, which cannot express every field: what is dropped ",
    "is named in the header ",
    el("code", null, "x-sluicegate-dropped"),
    ", what is refused gets an error. ",
    el("b", null, "Embedded"),
    " models run in this process.",
  );
}

/**
 * @param {Api.Model[]} found
 * @param {number} count of all models
 */
function modelList(found, count) {
  if (count === 0)
    return empty("No model is configured", "Models appear here when the configuration has some.");
  if (found.length === 0) return empty("No model matches", "Change the filter to see others.");
  const rest = found.length - MOST;
  return [
    found.slice(0, MOST).map(modelSection),
    rest > 0 &&
      el("p", { class: "soft" }, `${formatCount(rest)} more match; name the one you look for.`),
  ];
}

/** @param {Api.Model} model */
function modelSection({ id, family, targets }) {
  const used = PROTOCOLS.filter(([protocol]) =>
    targets.some(({ roads }) => roads.some((road) => road.protocol === protocol)),
  );
  const columns = [
    { title: "Target" },
    ...used.map(([, title]) => ({ title: title ?? "", class: "road" })),
  ];
  const whole = targets.reduce((sum, { weight }) => sum + (weight ?? 0), 0);
  const rows = targets.map((target, index) =>
    row(columns, [
      targetName(target, index, targets.length, whole),
      ...used.map(([protocol]) =>
        roadCell(target.roads.find((road) => road.protocol === protocol)),
      ),
    ]),
  );
  return el(
    "section",
    { class: "section model" },
    el("h2", null, id, " ", el("span", { class: "soft" }, family)),
    table(`Roads of ${id}`, columns, rows, `cards roads n${used.length}`),
  );
}

/**
 * @param {Api.Target} target
 * @param {number} index
 * @param {number} count of targets
 * @param {number} whole the sum of all weights
 */
function targetName({ target, model, weight }, index, count, whole) {
  const order =
    weight !== null && whole > 0
      ? `${Math.round((weight / whole) * 100)}% of requests`
      : (["asked first", "asked if the first fails"][index] ?? "asked if those before fail");
  return [
    target,
    model && el("code", { class: "soft line" }, model),
    count > 1 && el("span", { class: "soft line" }, order),
  ];
}

const TONES = /** @type {const} */ ({ relayed: "good", embedded: "good", translated: "busy" });

/** @param {Api.Road | undefined} road */
function roadCell(road) {
  if (!road) return el("span", { class: "soft" }, "no road");
  return el(
    "div",
    null,
    badge(words(road.road), TONES[road.road] ?? "idle"),
    road.drops.length > 0 &&
      el("div", { class: "loss" }, el("span", { class: "soft" }, "drops "), tags(road.drops)),
    road.refuses.length > 0 &&
      el("div", { class: "loss" }, el("span", { class: "soft" }, "refuses "), tags(road.refuses)),
  );
}
