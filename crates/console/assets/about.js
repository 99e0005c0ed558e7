// The gateway itself: its version and features, and figures with the commands that measure them.
import { el, formatMs, replace } from "./dom.js";
import { api } from "./api.js";
import { copyButton, facts, loader, row, table, tags, time } from "./parts.js";

/** @type {Column[]} */
const COLUMNS = [{ title: "Figure" }, { title: "Value" }, { title: "Measured by" }];

/** @type {import("./app.js").Screen} */
export const screen = {
  id: "about",
  title: "About",
  mount(container) {
    const load = loader(
      container,
      () => api("GET", "/admin/v1/about"),
      (about) => replace(container, content(about)),
    );
    void load();
    return () => {};
  },
};

/** @param {Api.About} about */
function content(about) {
  return [
    el(
      "p",
      { class: "lead" },
      "Sluicegate serves OpenAI Responses, Chat Completions, Anthropic Messages and OpenAI ",
      "Images, and hands each request to a model in this process or to upstream servers.",
    ),
    facts([
      ["Version", about.version],
      ["Started", time(about.started)],
      ["Up", formatMs(about.uptime_seconds * 1000)],
      ["Listens at", about.listen.map((address) => el("code", { class: "line" }, address))],
      ["Built with", about.features.length > 0 ? tags(about.features) : "no optional feature"],
    ]),
    about.figures.length > 0 && figures(about.figures),
  ];
}

/** @param {Api.About["figures"]} all */
function figures(all) {
  const rows = all.map(({ name, value, command }) =>
    row(COLUMNS, [
      name,
      el("span", { class: "figures" }, value),
      el(
        "div",
        { class: "command" },
        el("code", null, command),
        copyButton(command, `the command of ${name}`),
      ),
    ]),
  );
  return el(
    "section",
    { class: "section" },
    el("h2", null, "Figures"),
    el(
      "p",
      { class: "hint" },
      "Each figure names the command that measures it, to be run on your own machine.",
    ),
    table("Figures", COLUMNS, rows, "cards"),
  );
}
