// The screen Play: asks a model by one of four protocols, and shows the answer and its events.

import { announce, clear, el, replace } from "./dom.js";
import { api } from "./api.js";
import { AnswerView } from "./play-answer.js";
import { Composer } from "./play-composer.js";
import { Exchange } from "./play-exchange.js";
import { Settings } from "./play-form.js";
import { EXAMPLE_TOOLS, FormMistake, imagesDraft, pathOf, textDraft } from "./play-request.js";
import { Tape } from "./play-tape.js";

/** How often the page answers calls by itself before it waits for the user. */
const MOST_ROUNDS = 5;
/** Of how many answers the events are kept. */
const MOST_TAPES = 6;
const NARROW = "(max-width: 60rem)";
/**
 * The questions that the empty page offers.
 * @type {{ text: string, images?: boolean, tools?: boolean }[]}
 */
const EXAMPLES = [
  { text: "Explain how a sluice gate works, in three steps." },
  { text: "Write a Rust function that reverses a string, with a test." },
  { text: "What is the weather in Delft? Use the tool.", tools: true },
  { text: "A paper boat on a pond, watercolour", images: true },
];

/** @param {Turn["role"]} role @param {Partial<Turn>} more @returns {Turn} */
const makeTurn = (role, more) =>
  ({ role, text: "", files: [], calls: [], native: [], results: [], ...more });

/** @param {string} name @param {string} label @param {Node[]} children */
const part = (name, label, ...children) =>
  el("section", { class: name, "aria-label": label }, children);

class Play {
  constructor() {
    /** @type {Entry[]} */
    this.entries = [];
    /** @type {AbortController | null} */
    this.running = null;
    /** @type {HTMLButtonElement[]} */
    this.tapeButtons = [];
    this.address = "http://127.0.0.1:8080";
    this.tape = new Tape();
    this.turns = el("div", { class: "turns" });
    /** True while the end of the conversation is kept in view. */
    this.sticks = true;
    /** @type {Settings} */
    this.settings = new Settings(() => this.changed());
    /** @type {Composer} */
    this.composer = new Composer({
      send: () => void this.send(),
      stop: () => this.stop(),
      restart: () => this.restart(),
      draft: () => this.formDraft(true),
      protocol: () => this.settings.protocol,
      path: () => pathOf(this.settings.protocol, this.settings.edits),
      address: () => this.address,
      attached: () => {
        if (this.settings.protocol === "images") this.settings.setEdits(true);
      },
    });
    this.node = el("div", { class: "play" },
      part("play-request", "Settings", this.settings.node),
      part("play-talk", "Conversation", this.turns, this.composer.node),
      part("play-events", "Events", el("h2", null, "Events"), this.tape.node));
    this.listen();
    this.composer.setFiles([]);
    this.showEmpty();
    this.fold();
  }

  listen() {
    this.node.addEventListener("keydown", (event) => this.key(event));
    this.turns.addEventListener("scroll", () => {
      const { scrollHeight, scrollTop, clientHeight } = this.turns;
      this.sticks = scrollHeight - scrollTop - clientHeight < 40;
    });
    new ResizeObserver(() => this.follow()).observe(this.turns);
  }

  /** On a narrow page the settings are folded, so that the conversation comes first. */
  fold() {
    const narrow = matchMedia(NARROW);
    const set = () => {
      this.settings.node.open = !narrow.matches;
    };
    narrow.addEventListener("change", set);
    set();
  }

  async load() {
    await Promise.all([this.settings.load(), this.findAddress()]);
  }

  async findAddress() {
    try {
      const [first] = (await api("GET", "/admin/v1/about")).listen;
      const address = new URL(first);
      // The gateway listens at all addresses, also at the one that this page is from.
      if (["0.0.0.0", "[::]"].includes(address.hostname)) address.hostname = location.hostname;
      this.address = address.origin;
    } catch {
      // The usual address stays.
    }
  }

  changed() {
    // The settings report their first values before the composer exists.
    if (!this.composer) return;
    const { protocol, edits } = this.settings;
    this.composer.setMask(protocol === "images" && edits);
    void this.composer.refresh();
    if (this.entries.length === 0) this.showEmpty();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void this.send();
    }
  }

  /** The turns that the next request has. */
  history() {
    return this.entries.filter((entry) => entry.counts).map((entry) => entry.turn);
  }

  /** Calls of the last answer that have no result yet. */
  openCalls() {
    const last = this.history().at(-1);
    return last?.role === "assistant" ? last.calls : [];
  }

  /** @returns {Turn} */
  results() {
    const output = this.settings.controls.result.value;
    return makeTurn("tools", { results: this.openCalls().map(({ id }) => ({ id, output })) });
  }

  /**
   * The request of the form.
   * @param {boolean} toShow true to invent a message where there is none
   * @returns {Promise<Draft>}
   */
  async formDraft(toShow = false) {
    const form = this.settings.values();
    const { text, files, mask } = this.composer;
    const message = text.value.trim() || (toShow ? "Say hello." : "");
    if (form.protocol === "images") {
      if (!message) throw new FormMistake("message", "Describe the image first.");
      if (form.edits && files.length === 0 && !toShow) {
        throw new FormMistake("attach", "An edit needs at least one reference image.");
      }
      return imagesDraft(form, message, files, await mask.file());
    }
    const turns = this.history();
    if (this.openCalls().length > 0) turns.push(this.results());
    if (text.value.trim() || files.length > 0) {
      turns.push(makeTurn("user", { text: text.value.trim(), files }));
    } else if (turns.at(-1)?.role !== "tools") {
      if (!toShow) throw new FormMistake("message", "Write a message first.");
      turns.push(makeTurn("user", { text: message }));
    }
    return textDraft(form, turns);
  }

  async send() {
    if (this.running) return;
    const key = this.settings.controls.key.value;
    try {
      if (!key) throw new FormMistake("pasted", "Choose or paste an API key first.");
      const own = this.composer.ownDraft();
      const draft = own ?? await this.formDraft();
      this.composer.complain("");
      await this.run(draft, key, own !== null);
    } catch (error) {
      if (!(error instanceof FormMistake)) throw error;
      this.mistake(error);
    }
  }

  /** @param {FormMistake} mistake */
  mistake(mistake) {
    this.composer.complain(mistake.message);
    const control = document.getElementById(`play-${mistake.field}`);
    if (control?.closest("details")) {
      for (let box = control.closest("details"); box; box = box.parentElement?.closest("details") ??
        null) box.open = true;
    }
    control?.focus();
  }

  /** @param {Draft} draft @param {string} key @param {boolean} own true for an edited body */
  async run(draft, key, own) {
    this.running = new AbortController();
    this.composer.setBusy(true);
    try {
      const sent = this.addSent(draft, own);
      let answered = await this.exchange(draft, key, own);
      if (!answered) this.takeBack(sent);
      for (let round = 1; answered && this.goesOn(round); round += 1) {
        this.addEntry(this.results(), true);
        const next = textDraft(this.settings.values(), this.history());
        answered = await this.exchange(next, key, false);
      }
    } finally {
      this.running = null;
      this.composer.setBusy(false);
      void this.composer.refresh();
    }
  }

  /** @param {number} round */
  goesOn(round) {
    const isOn = this.settings.controls.auto.checked && !this.running?.signal.aborted;
    return isOn && round < MOST_ROUNDS && this.openCalls().length > 0;
  }

  /** Adds what is sent to the conversation. @param {Draft} draft @param {boolean} own */
  addSent(draft, own) {
    if (this.entries.length === 0) clear(this.turns);
    const { text, files } = this.composer;
    if (own) {
      const turn = makeTurn("user", { text: JSON.stringify(draft.body, null, 2) });
      return this.addEntry(turn, false, true);
    }
    if (this.openCalls().length > 0) this.addEntry(this.results(), true);
    const message = text.value.trim();
    if (!message && files.length === 0) return null;
    const images = this.settings.protocol === "images";
    const turn = makeTurn("user", { text: message, files });
    const entry = this.addEntry(turn, !images);
    // A prompt for images is often sent again with a small change, so it stays.
    if (!images) {
      text.value = "";
      this.composer.setFiles([]);
    }
    return entry;
  }

  /** Gives the message of a failed request back. @param {Entry | null} entry */
  takeBack(entry) {
    if (!entry?.counts) return;
    entry.counts = false;
    entry.node.querySelector("h2")?.append(" · not part of the conversation");
    if (this.composer.text.value) return;
    this.composer.text.value = entry.turn.text;
    this.composer.setFiles(entry.turn.files);
  }

  /**
   * Sends a request and adds its answer.
   * @param {Draft} draft @param {string} key @param {boolean} own
   * @returns {Promise<boolean>} true if the answer is part of the conversation
   */
  async exchange(draft, key, own) {
    const signal = this.running?.signal;
    if (!signal) return false;
    const view = new AnswerView(String(draft.body.model ?? "Answer"),
      (name, url) => this.useImage(name, url));
    view.ondraw = () => this.follow();
    this.turns.append(view.node);
    this.follow(true);
    const { protocol } = this.settings;
    const exchange = new Exchange({ protocol, draft, key, signal }, this.tape, view);
    await exchange.run();
    const { answer, facts } = exchange;
    announce(facts.problem || `The answer is ${facts.end}.`);
    this.keepTape(view);
    const calls = answer.calls().filter((call) => call.done && call.id)
      .map(({ id, name, text }) => ({ id, name, arguments: text }));
    const text = answer.text();
    const counts = !own && protocol !== "images" && facts.end !== "failed" &&
      (text !== "" || calls.length > 0);
    const native = answer.parts.flatMap((part) => (part.native && part.done ? [part.native] : []));
    const turn = makeTurn("assistant", { text, calls, native });
    this.entries.push({ turn, node: view.node, counts });
    if (counts && calls.length > 0) view.node.append(this.resultButton());
    return counts;
  }

  /** Earlier answers offer their events, as long as these are kept. @param {AnswerView} view */
  keepTape(view) {
    const kept = this.tape.keep();
    const button = el("button", {
      type: "button", class: "quiet",
      onclick: () => {
        if (this.running) return;
        this.tape.showAgain(kept);
        // The way back to the last answer.
        for (const other of this.tapeButtons) other.hidden = other === button;
      },
    }, "Show its events");
    this.tapeButtons.at(-1)?.removeAttribute("hidden");
    button.hidden = true;
    this.tapeButtons.push(button);
    if (this.tapeButtons.length > MOST_TAPES) this.tapeButtons.shift()?.remove();
    view.foot.append(button);
  }

  resultButton() {
    const button = el("button", { type: "button", class: "send-result" }, "Send the result");
    button.addEventListener("click", () => void this.send());
    return button;
  }

  /** @param {Turn} turn @param {boolean} counts @param {boolean} [isJson] @returns {Entry} */
  addEntry(turn, counts, isJson = false) {
    for (const button of this.turns.querySelectorAll(".send-result")) button.remove();
    const node = turn.role === "tools" ? toolsNode(turn) : this.userNode(turn, isJson);
    const entry = { turn, node, counts };
    this.entries.push(entry);
    this.turns.append(node);
    this.follow(true);
    return entry;
  }

  /** @param {Turn} turn @param {boolean} isJson */
  userNode(turn, isJson) {
    const edit = el("button", {
      type: "button", class: "quiet", onclick: () => this.edit(turn),
    }, "Edit");
    const images = turn.files.map((file) => el("img", { src: file.url, alt: file.name }));
    return el("article", { class: "turn user" },
      el("div", { class: "turn-head" }, el("h2", null, isJson ? "You, as JSON" : "You"),
        isJson ? null : edit),
      images.length > 0 ? el("div", { class: "thumbs" }, images) : null,
      isJson ? el("pre", { tabindex: "0", role: "group", "aria-label": "Sent body" }, turn.text)
        : el("p", { class: "plain" }, turn.text));
  }

  /** Takes a message back to the composer, with everything after it. @param {Turn} turn */
  edit(turn) {
    const from = this.entries.findIndex((entry) => entry.turn === turn);
    if (this.running || from < 0) return;
    for (const entry of this.entries.splice(from)) entry.node.remove();
    this.composer.text.value = turn.text;
    this.composer.setFiles(turn.files);
    this.composer.show("message");
    this.composer.text.focus();
    if (this.entries.length === 0) this.showEmpty();
  }

  /** @param {string} name @param {string} url */
  useImage(name, url) {
    const mime = url.slice(5, url.indexOf(";"));
    void this.settings.setProtocol("images");
    this.settings.setEdits(true);
    this.composer.setFiles([{ name, mime, url }, ...this.composer.files]);
    this.composer.show("message");
    this.composer.text.focus();
  }

  stop() {
    this.running?.abort();
  }

  restart() {
    if (this.running) return;
    this.entries = [];
    this.tapeButtons = [];
    this.tape.restart();
    this.showEmpty();
    this.composer.text.focus();
  }

  /**
   * Keeps the end of the conversation in view, unless the user reads above.
   * @param {boolean} [always]
   */
  follow(always = false) {
    this.sticks ||= always;
    if (this.sticks) this.turns.scrollTop = this.turns.scrollHeight;
  }

  /** The examples for the protocol. Text offers an image, too, where a model makes images. */
  fittingExamples() {
    const { protocol, makesImages } = this.settings;
    if (protocol === "images") return EXAMPLES.filter(({ images }) => images);
    return EXAMPLES.filter(({ images }) => !images || makesImages);
  }

  showEmpty() {
    const buttons = this.fittingExamples().map((example) => el("button", {
      type: "button", onclick: () => void this.ask(example),
    }, example.images ? "Paint: " : null, example.text));
    replace(this.turns, el("div", { class: "play-empty" },
      el("p", null, "Ask by any of the four protocols. A request of this page passes the same ",
        "checks and limits as every client's."),
      el("div", { class: "examples" }, buttons)));
  }

  /** Sends an example. @param {typeof EXAMPLES[number]} example */
  async ask({ text, images, tools }) {
    if (images) await this.settings.setProtocol("images");
    if (tools) this.settings.setTools(EXAMPLE_TOOLS);
    this.composer.text.value = text;
    this.composer.show("message");
    await this.send();
  }
}

/** @param {Turn} turn */
function toolsNode(turn) {
  return el("article", { class: "turn tool-result" },
    el("h2", null, turn.results.length === 1 ? "Result of the call" : "Results of the calls"),
    turn.results.map(({ id, output }) => el("div", null, el("code", { class: "soft" }, id),
      el("pre", { tabindex: "0", role: "group", "aria-label": "Result" }, output))));
}

/** The conversation outlives a visit of another screen, but not the page. @type {Play | null} */
let play = null;

/** @type {import("./app.js").Screen} */
export const screen = {
  id: "play",
  title: "Play",
  mount(container) {
    play ??= new Play();
    const present = play;
    container.append(present.node);
    // The lists have lost their places, and notice it only if their sizes have changed, too.
    present.tape.schedule();
    present.follow();
    void present.load();
    const key = (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape" && !document.querySelector("dialog[open]")) present.stop();
    };
    document.addEventListener("keydown", key);
    return () => {
      document.removeEventListener("keydown", key);
      present.node.remove();
    };
  },
};

// Whoever signs in next must not find the conversation of the one before.
addEventListener("sluicegate-signed-out", () => {
  play?.stop();
  play = null;
});
