// The settings of Play: protocol, key, model, and what the chosen protocol takes besides.

import { api, playKeys, rememberKey } from "./api.js";
import { el, replace } from "./dom.js";
import { EXAMPLE_RESULT, EXAMPLE_TOOLS } from "./play-request.js";

/** @type {[Protocol, string][]} */
const PROTOCOLS = [["responses", "Responses"], ["chat", "Chat"], ["messages", "Messages"],
  ["images", "Images"]];
/** The efforts of reasoning. Messages begins with `low`. */
const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
const STORED = "sluicegate.protocol";

/** @param {string} label @param {HTMLElement} control @param {string} [more] the class */
function field(label, control, more = "") {
  return el("div", { class: `field ${more}` }, el("label", { for: control.id }, label), control);
}

/** @param {string} id @param {Record<string, any>} attributes */
const input = (id, attributes) =>
  el("input", { id: `play-${id}`, autocomplete: "off", spellcheck: "false", ...attributes });

/** @param {string[]} values */
const options = (values) => values.map((value) => el("option", { value }, value));

/** @param {string} id @param {string[]} [values] besides the default of the server */
const select = (id, values = []) => el("select", { id: `play-${id}` },
  el("option", { value: "" }, "default"), options(values));

/**
 * Choices side by side; exactly one is taken.
 * @param {string} name @param {string} legend @param {[string, string][]} choices
 * @param {(value: string) => void} choose
 */
function segments(name, legend, choices, choose) {
  const radios = choices.map(([value, label]) => {
    const radio = el("input", {
      type: "radio", name, value, onchange: () => choose(value),
    });
    return { radio, label: el("label", null, radio, el("span", null, label)) };
  });
  const node = el("fieldset", { class: "segments" },
    el("legend", { class: "visually-hidden" }, legend), radios.map(({ label }) => label));
  const set = (/** @type {string} */ value) => {
    for (const { radio } of radios) radio.checked = radio.value === value;
  };
  return { node, set };
}

/** All controls of the form, by the names of the fields. */
function makeControls() {
  const code = { rows: "7", spellcheck: "false", class: "code" };
  const check = (/** @type {string} */ id, /** @type {boolean} */ checked) =>
    el("input", { type: "checkbox", id: `play-${id}`, checked });
  return {
    key: el("select", { id: "play-key" }),
    pasted: input("pasted", { type: "password", placeholder: "sg_…" }),
    keep: check("keep", false),
    model: input("model", { list: "play-models", placeholder: "model id" }),
    instructions: el("textarea", { id: "play-instructions", rows: "2" }),
    maxTokens: input("maxTokens", { inputmode: "numeric", placeholder: "default" }),
    temperature: input("temperature", { inputmode: "decimal", placeholder: "default" }),
    effort: select("effort"),
    stream: check("stream", true),
    tools: el("textarea", { id: "play-tools", ...code }),
    result: el("textarea", { id: "play-result", ...code, rows: "2", value: EXAMPLE_RESULT }),
    auto: check("auto", true),
    size: input("size", { list: "play-sizes", placeholder: "default" }),
    quality: select("quality", ["auto", "low", "medium", "high"]),
    format: select("format", ["png", "jpeg", "webp"]),
    n: input("n", { type: "number", min: "1", max: "10", value: "1" }),
    previews: input("previews", { type: "number", min: "0", max: "3", value: "3" }),
    seed: input("seed", { inputmode: "numeric", placeholder: "none" }),
  };
}

/** @param {HTMLInputElement} control @param {string} label */
const checkField = (control, label) =>
  el("label", { class: "check" }, control, el("span", null, label));

export class Settings {
  /** @param {() => void} onchange called after any change */
  constructor(onchange) {
    this.onchange = onchange;
    /** @type {Protocol} */
    this.protocol = "responses";
    this.edits = false;
    /** The models chosen for text and for images. */
    this.chosen = { text: "", images: "" };
    /** The scopes of the keys, where they are known. @type {Map<string, string[] | undefined>} */
    this.scopes = new Map();
    /** Families of the models by id. @type {Map<string, string>} */
    this.families = new Map();
    /** @type {string[]} */
    this.ids = [];
    this.controls = makeControls();
    this.models = el("datalist", { id: "play-models" });
    this.keyProblem = el("p", { class: "problem", role: "alert", hidden: true });
    this.paste = el("div", { class: "paste", hidden: true }, field("Key", this.controls.pasted),
      checkField(this.controls.keep, "Remember in this tab"),
      el("button", { type: "button", onclick: () => this.usePasted() }, "Use this key"));
    this.choice = segments("play-protocol", "Protocol", PROTOCOLS,
      (value) => void this.setProtocol(/** @type {Protocol} */ (value)));
    this.operation = segments("play-operation", "Operation",
      [["generate", "Generate"], ["edit", "Edit"]], (value) => this.setEdits(value === "edit"));
    this.textFields = this.buildText();
    this.imageFields = this.buildImages();
    this.summary = el("summary", null, "Settings");
    this.node = this.buildAll();
    this.setEdits(false);
    void this.setProtocol(remembered());
  }

  buildAll() {
    const { key, model, stream } = this.controls;
    const node = el("details", { class: "play-settings" }, this.summary,
      el("div", { class: "settings-body" }, this.choice.node, field("API key", key), this.paste,
        this.keyProblem, field("Model", model), this.models, this.textFields, this.imageFields,
        checkField(stream, "Stream the answer")));
    key.addEventListener("change", () => void this.keyChosen());
    node.addEventListener("input", () => this.changed());
    return node;
  }

  buildText() {
    const { instructions, maxTokens, temperature, effort, tools, result, auto } = this.controls;
    const example = el("button", {
      type: "button", class: "quiet", onclick: () => this.setTools(EXAMPLE_TOOLS),
    }, "Insert an example");
    this.toolBox = el("details", { class: "tools" }, el("summary", null, "Tools"),
      el("p", { class: "soft" }, "A JSON array. Each tool has a name, a description and ",
        "parameters; one with a type is sent as it is."),
      field("Tools", tools), example, field("Result of every call", result),
      checkField(auto, "Send the result by itself"));
    return el("div", { class: "settings-text" }, field("Instructions", instructions),
      el("div", { class: "pair" }, field("Max tokens", maxTokens),
        field("Temperature", temperature)), field("Reasoning effort", effort), this.toolBox);
  }

  buildImages() {
    const { size, quality, format, n, previews, seed } = this.controls;
    const sizes = ["1024x1024", "1536x1024", "1024x1536", "512x512", "auto"];
    const pair = (/** @type {any[]} */ ...fields) => el("div", { class: "pair" }, fields);
    return el("div", { class: "settings-images" }, this.operation.node,
      el("datalist", { id: "play-sizes" }, options(sizes)),
      pair(field("Size", size), field("Images", n)),
      pair(field("Quality", quality), field("Format", format)),
      pair(field("Previews", previews), field("Seed", seed)));
  }

  /** @returns {Form} */
  values() {
    const { controls, protocol, edits } = this;
    const value = (/** @type {keyof typeof controls} */ name) => controls[name].value.trim();
    return {
      protocol, edits, model: controls.model.value.trim(), stream: controls.stream.checked,
      instructions: value("instructions"), maxTokens: value("maxTokens"),
      temperature: value("temperature"), effort: value("effort"), tools: value("tools"), n: value("n"),
      size: value("size"), quality: value("quality"), format: value("format"),
      previews: value("previews"), seed: value("seed"),
    };
  }

  changed() {
    const { model } = this.controls;
    this.chosen[this.protocol === "images" ? "images" : "text"] = model.value;
    const name = PROTOCOLS.find(([id]) => id === this.protocol)?.[1];
    replace(this.summary, el("b", null, name), ` ${model.value || "no model"}`);
    this.onchange();
  }

  /** Whether a model is known to make images. */
  get makesImages() {
    return [...this.families.values()].includes("images");
  }

  /**
   * Shows the fields and models of a protocol. If another key is needed, its models are listed when the
   * promise resolves.
   * @param {Protocol} protocol @returns {Promise<void>}
   */
  setProtocol(protocol) {
    this.protocol = protocol;
    this.choice.set(protocol);
    const images = protocol === "images";
    this.textFields.hidden = images;
    this.imageFields.hidden = !images;
    const listed = this.chooseKey() ? this.keyChosen() : Promise.resolve();
    // Messages requires a limit, so the page sends one.
    this.controls.maxTokens.placeholder = protocol === "messages" ? "1024" : "default";
    this.listEfforts();
    this.controls.model.value = this.chosen[images ? "images" : "text"];
    try {
      localStorage.setItem(STORED, protocol);
    } catch {
      // Storage is blocked: the choice lasts until the page is closed.
    }
    this.listModels();
    return listed;
  }

  /** Lists the efforts of the protocol, and keeps the chosen one if it has it. */
  listEfforts() {
    const { effort } = this.controls;
    const efforts = EFFORTS.slice(this.protocol === "messages" ? EFFORTS.indexOf("low") : 0);
    const chosen = efforts.includes(effort.value) ? effort.value : "";
    effort.replaceChildren(...select("", efforts).children);
    effort.value = chosen;
  }

  /** @param {boolean} edits */
  setEdits(edits) {
    this.edits = edits;
    this.operation.set(edits ? "edit" : "generate");
    this.changed();
  }

  /** @param {string} tools */
  setTools(tools) {
    this.controls.tools.value = tools;
    if (this.toolBox) this.toolBox.open = true;
    this.changed();
  }

  /** Loads the keys, and then the models of the first one. */
  async load() {
    const known = await playKeys().catch(() => []);
    const present = this.controls.key.value;
    const options = known.map(({ name, key }) => el("option", { value: key }, name));
    replace(this.controls.key, options, el("option", { value: "" }, "Paste a key …"));
    if (known.some(({ key }) => key === present)) this.controls.key.value = present;
    this.scopes = new Map(known.map(({ key, scopes }) => [key, scopes]));
    this.chooseKey();
    await this.loadFamilies();
    await this.keyChosen();
  }

  /** The families of the models: the list of a key does not have them. */
  async loadFamilies() {
    try {
      const { models } = await api("GET", "/admin/v1/models");
      for (const { id, family } of models) this.families.set(id, family);
    } catch {
      // The page works without: it then offers every model for every protocol.
    }
  }

  /**
   * Chooses a key for the protocol, if the present one is known to have no permission for it. Says whether
   * the key has changed.
   */
  chooseKey() {
    const scope = this.protocol === "responses" || this.protocol === "chat" ? "text" : this.protocol;
    const { key } = this.controls;
    if (this.scopes.get(key.value)?.includes(scope) ?? true) return false;
    const other = [...this.scopes].find(([, scopes]) => scopes?.includes(scope));
    if (other) key.value = other[0];
    return other !== undefined;
  }

  async keyChosen() {
    const key = this.controls.key.value;
    this.paste.hidden = key !== "";
    this.keyProblem.hidden = true;
    this.ids = [];
    if (key) {
      try {
        const headers = { authorization: `Bearer ${key}` };
        const response = await fetch("/play/v1/models", { headers });
        const body = await response.json();
        if (!response.ok) throw new Error(body?.error?.message ?? `status ${response.status}`);
        this.ids = body.data.map((/** @type {{id: unknown}} */ { id }) => String(id));
      } catch (error) {
        this.keyProblem.hidden = false;
        this.keyProblem.textContent = `The models of this key cannot be listed. ${
          error instanceof Error ? error.message : ""}`;
      }
    }
    this.listModels();
  }

  listModels() {
    const images = this.protocol === "images";
    const fits = this.ids.filter((id) => {
      const family = this.families.get(id);
      return family === undefined || (family === "images") === images;
    });
    replace(this.models, options(fits));
    this.controls.model.value ||= fits[0] ?? "";
    this.changed();
  }

  async usePasted() {
    const key = this.controls.pasted.value.trim();
    if (!key) {
      this.controls.pasted.focus();
      return;
    }
    rememberKey(key, this.controls.keep.checked);
    this.controls.pasted.value = "";
    await this.load();
    this.controls.key.value = key;
    await this.keyChosen();
    this.controls.key.focus();
  }
}

/** The protocol of the last visit. @returns {Protocol} */
function remembered() {
  try {
    const stored = localStorage.getItem(STORED);
    return PROTOCOLS.find(([id]) => id === stored)?.[0] ?? "responses";
  } catch {
    return "responses";
  }
}
