// Where the next request is written: as a message with images, as JSON, or read as code.

import { el, replace } from "./dom.js";
import { asCode } from "./play-code.js";
import { IMAGE_TYPES, MaskEditor, readFile } from "./play-mask.js";
import { FormMistake } from "./play-request.js";
import { copyButton } from "./parts.js";

/** @type {[View, string][]} */
const VIEWS = [["message", "Message"], ["json", "JSON"], ["curl", "curl"], ["python", "Python"],
  ["node", "Node"]];
/** Larger files are refused by the gateway as well. */
const LARGEST_FILE = 20 * 1024 * 1024;

export class Composer {
  /** @param {Owner} owner */
  constructor(owner) {
    this.owner = owner;
    /** @type {View} */
    this.view = "message";
    /** @type {Attachment[]} */
    this.files = [];
    /** The JSON if the user has changed it, and the files it speaks of. @type {Draft | null} */
    this.edited = null;
    this.text = el("textarea", { id: "play-message", rows: "3", "aria-label": "Message" });
    this.strip = el("ul", { class: "attachments", "aria-label": "Attached images" });
    this.json = el("textarea", {
      class: "code", rows: "12", spellcheck: "false", "aria-label": "Request body",
    });
    this.jsonNote = el("p", { class: "soft" });
    this.code = el("pre", { class: "code-view", tabindex: "0", role: "group" });
    this.mask = new MaskEditor();
    this.picker = el("input", {
      type: "file", accept: IMAGE_TYPES.join(","), multiple: true, hidden: true,
      "aria-label": "Images to attach",
    });
    this.attach = el("button", { type: "button", onclick: () => this.picker.click() });
    this.primary = el("button", { type: "button", class: "primary" }, "Send");
    this.shortcut = el("span", { class: "hint" });
    this.problem = el("p", { class: "problem", role: "alert", hidden: true });
    this.tabs = VIEWS.map(([view, label]) => this.tab(view, label));
    this.panels = this.buildPanels();
    this.node = this.build();
    this.setBusy(false);
    this.listen();
    this.show("message");
  }

  build() {
    const restart = el("button",
      { type: "button", class: "quiet", onclick: () => this.owner.restart() }, "New");
    this.restartButton = restart;
    return el("div", { class: "composer" },
      el("div", { class: "tabs", role: "tablist", "aria-label": "The request as" }, this.tabs),
      this.panels, this.problem,
      el("div", { class: "composer-actions" }, this.attach, restart, this.picker,
        this.shortcut, this.primary));
  }

  /** @param {View} view @param {string} label */
  tab(view, label) {
    return el("button", {
      type: "button", role: "tab", id: `play-tab-${view}`, "aria-controls": `play-panel-${view}`,
      "data-view": view, onclick: () => this.show(view),
    }, label);
  }

  buildPanels() {
    const panel = (/** @type {View} */ view, /** @type {any[]} */ ...children) =>
      el("div", {
        role: "tabpanel", id: `play-panel-${view}`, "aria-labelledby": `play-tab-${view}`,
        class: "panel",
      }, children);
    const copy = copyButton(() => this.code.textContent ?? "", "the code");
    this.codeBox = el("div", { class: "code-box" }, this.code, copy);
    return [panel("message", this.mask.node, this.strip, this.text),
      panel("json", this.json, this.jsonNote), panel("curl"), panel("python"), panel("node")];
  }

  listen() {
    this.primary.addEventListener("click", () =>
      (this.busy ? this.owner.stop() : this.owner.send()));
    this.picker.addEventListener("change", () => {
      void this.add([...this.picker.files ?? []]);
      this.picker.value = "";
    });
    this.node.addEventListener("paste", (event) => {
      const files = [...event.clipboardData?.files ?? []];
      if (files.length === 0) return;
      event.preventDefault();
      void this.add(files);
    });
    this.node.addEventListener("dragover", (event) => event.preventDefault());
    this.node.addEventListener("drop", (event) => {
      event.preventDefault();
      void this.add([...event.dataTransfer?.files ?? []]);
    });
    this.json.addEventListener("input", () => this.editJson());
    for (const tab of this.tabs) tab.addEventListener("keydown", (event) => this.tabKey(event));
  }

  /** @param {KeyboardEvent} event */
  tabKey(event) {
    const present = VIEWS.findIndex(([view]) => view === this.view);
    const steps = new Map([["ArrowRight", present + 1], ["ArrowLeft", present - 1], ["Home", 0],
      ["End", VIEWS.length - 1]]);
    const to = steps.get(event.key);
    if (to === undefined) return;
    event.preventDefault();
    const index = (to + VIEWS.length) % VIEWS.length;
    this.show(VIEWS[index][0]);
    this.tabs[index].focus();
  }

  /** @param {View} view */
  show(view) {
    this.view = view;
    VIEWS.forEach(([id], index) => {
      this.tabs[index].setAttribute("aria-selected", String(id === view));
      this.tabs[index].tabIndex = id === view ? 0 : -1;
      this.panels[index].hidden = id !== view;
    });
    this.complain("");
    void this.refresh();
  }

  /** Shows the present request in the view that is open. */
  async refresh() {
    const images = this.owner.protocol() === "images";
    // A body for another endpoint is of no use here.
    if (this.edited && this.edited.path !== this.owner.path()) this.edited = null;
    this.attach.textContent = images ? "Add a reference" : "Attach an image";
    this.text.placeholder = images ? "Describe the image" : "Write a message";
    if (this.view === "message") return;
    try {
      const draft = this.edited ?? await this.owner.draft();
      this.fillView(draft);
      this.complain("");
    } catch (error) {
      if (!(error instanceof FormMistake)) throw error;
      this.complain(error.message);
    }
  }

  /** @param {Draft} draft */
  fillView(draft) {
    if (this.view === "json") {
      if (!this.edited) this.json.value = JSON.stringify(draft.body, null, 2);
      this.noteJson(draft);
      return;
    }
    if (this.view === "message") return;
    const { view } = this;
    this.code.textContent = asCode(view, this.owner.protocol(), draft, this.owner.address());
    this.code.setAttribute("aria-label", `The request as ${view}`);
    if (this.codeBox) document.getElementById(`play-panel-${view}`)?.append(this.codeBox);
  }

  /** @param {Draft} draft */
  noteJson(draft) {
    const files = draft.files.length > 0
      ? " The content of the files takes the places of attachment:1, attachment:2 …" : "";
    const back = this.edited ? el("button", {
      type: "button", class: "quiet", onclick: () => this.forgetEdits(),
    }, "Take the form again") : null;
    const say = this.edited ? "Edited: this text is sent, not the form."
      : "Made from the form. Edit it to send something else.";
    replace(this.jsonNote, el("code", null, `POST ${draft.path}`), ` ${say}${files} `, back);
  }

  forgetEdits() {
    this.edited = null;
    this.json.focus();
    void this.refresh();
  }

  async editJson() {
    try {
      const body = JSON.parse(this.json.value);
      const known = this.edited ?? await this.owner.draft().catch(() => null);
      const isObject = typeof body === "object" && body !== null && !Array.isArray(body);
      if (!isObject) throw new SyntaxError("the body must be an object");
      this.edited = { path: this.owner.path(), body, files: known?.files ?? [] };
      this.complain("");
      this.noteJson(this.edited);
    } catch (error) {
      this.complain(`Not JSON yet: ${error instanceof Error ? error.message : error}`);
    }
  }

  /** The edited body, if that is what should be sent. @returns {Draft | null} */
  ownDraft() {
    if (this.view === "message" || !this.edited) return null;
    try {
      JSON.parse(this.json.value);
    } catch (error) {
      throw new FormMistake("json", `The body is not JSON: ${String(error)}`);
    }
    return this.edited;
  }

  /** @param {File[]} files */
  async add(files) {
    for (const file of files) {
      if (!IMAGE_TYPES.includes(file.type)) {
        this.complain(`${file.name} is not a PNG, JPEG, WebP or GIF image.`);
      } else if (file.size > LARGEST_FILE) {
        this.complain(`${file.name} is larger than 20 MB.`);
      } else {
        this.setFiles([...this.files, await readFile(file, file.name)]);
        this.owner.attached();
      }
    }
  }

  /** @param {Attachment[]} files */
  setFiles(files) {
    this.files = files;
    replace(this.strip, files.map((file, index) => el("li", null,
      el("img", { src: file.url, alt: file.name }), el("span", null, file.name),
      el("button", {
        type: "button", class: "quiet", "aria-label": `Remove ${file.name}`,
        onclick: () => {
          this.setFiles(this.files.filter((_, other) => other !== index));
          this.attach.focus();
        },
      }, "×"))));
    this.strip.hidden = files.length === 0;
    this.showMask();
  }

  /** The mask belongs to the first reference of an edit. */
  showMask() {
    this.mask.show(this.wantsMask ? this.files[0] ?? null : null);
  }

  /** @param {boolean} wants */
  setMask(wants) {
    this.wantsMask = wants;
    this.showMask();
  }

  /** @param {string} problem */
  complain(problem) {
    this.problem.hidden = problem === "";
    if (this.problem.textContent !== problem) this.problem.textContent = problem;
  }

  /** @param {boolean} busy */
  setBusy(busy) {
    this.busy = busy;
    this.primary.textContent = busy ? "Stop" : "Send";
    this.primary.classList.toggle("stop", busy);
    const keys = busy ? ["Esc"] : ["Ctrl", "Enter"];
    replace(this.shortcut, keys.map((key) => [" ", el("kbd", null, key)]));
  }
}
