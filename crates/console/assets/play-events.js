// Reads the events of the four protocols: checks their order, and adds them up to the answer.
//
// Everything here comes from a model or a server, so every field may be missing or of the wrong
// type. A reader never throws. After a violation it goes on as well as it can, because a page that
// shows what is wrong with a stream must show the rest of the stream too.

/** @param {unknown} value @returns {string} */
const str = (value) => (typeof value === "string" ? value : "");
/** @param {unknown} value @returns {Json} */
const obj = (value) =>
  typeof value === "object" && value !== null ? /** @type {Json} */ (value) : {};
/** @param {unknown} value @returns {any[]} */
const list = (value) => (Array.isArray(value) ? value : []);
/** @param {unknown} value @returns {number} */
const num = (value) => (typeof value === "number" && Number.isFinite(value) ? value : 0);
/** @param {string} text @returns {string} */
const quote = (text) => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);

const AFTER_END = "an event after the terminal event";
const TRUNCATED = "the stream ended without a terminal event";
const TEXT = "a text that differs from the concatenation of its deltas";

/** The answer to one request, as far as it has arrived. */
export class Answer {
  constructor() {
    /** @type {Part[]} */
    this.parts = [];
    /** @type {Map<string, Part>} */
    this.byKey = new Map();
    /** @type {Usage | null} */
    this.usage = null;
    /** Why the model stopped, in the words of the protocol. */
    this.finish = "";
    /** The failure that the stream reported, or "". */
    this.failure = "";
    this.model = "";
  }

  /**
   * The part with this key; a new one if there is none.
   * @param {string} key @param {Part["kind"]} kind @param {Partial<Part>} [more] @returns {Part}
   */
  part(key, kind, more) {
    let part = this.byKey.get(key);
    if (!part) {
      part = { kind, text: "", name: "", id: "", done: false, at: 0, native: null };
      this.byKey.set(key, part);
      this.parts.push(part);
    }
    return more ? Object.assign(part, more) : part;
  }

  /** @param {string} key */
  close(key) {
    const part = this.byKey.get(key);
    if (part) part.done = true;
  }

  /** @returns {string} the text of the answer, without reasoning */
  text() {
    return this.parts
      .filter((part) => part.kind === "text" || part.kind === "refusal")
      .map((part) => part.text)
      .join("\n\n");
  }

  /** @returns {Part[]} */
  calls() {
    return this.parts.filter((part) => part.kind === "call");
  }
}

/** The base of all readers: the answer, the violation of the present event, and the end. */
class Reader {
  constructor() {
    this.answer = new Answer();
    this.ended = false;
    this.offence = "";
    this.unknown = false;
    this.summary = "";
    /** The time of the present event. */
    this.at = 0;
  }

  /** @param {string} offence */
  mark(offence) {
    this.offence ||= offence;
  }

  /** @param {boolean} holds @param {string} offence */
  want(holds, offence) {
    if (!holds) this.mark(offence);
  }

  /** Takes one event. @param {string} _type @param {Json} _data */
  take(_type, _data) {}

  /** @returns {[string, number]} the name of the present state and its depth */
  state() {
    return ["", 0];
  }

  /**
   * Reads one server-sent event.
   * @param {string} name @param {string} data @param {number} at @returns {Reading}
   */
  read(name, data, at) {
    this.offence = "";
    this.unknown = false;
    this.summary = "";
    this.at = at;
    const [type, json] = this.parse(name, data);
    if (this.ended) this.mark(AFTER_END);
    if (json) this.take(type, json);
    const [state, depth] = this.state();
    const { summary, offence, unknown } = this;
    return { type, summary, state, depth, offence, unknown };
  }

  /** @param {string} name @param {string} data @returns {[string, Json | null]} */
  parse(name, data) {
    try {
      const json = JSON.parse(data);
      if (typeof json === "object" && json !== null) return [str(json.type) || name, json];
    } catch {
      // Reported below, like JSON that is no object.
    }
    this.mark("data that is not a JSON object");
    this.summary = quote(data);
    return [name || "?", null];
  }

  /** Takes the end of the body. @returns {string} the offence, or "" */
  finish() {
    return this.ended ? "" : TRUNCATED;
  }

  /** @param {Json} data an event or a body with `error`, or with the fields of an error itself */
  fail(data) {
    const error = typeof data.error === "object" ? obj(data.error) : data;
    const code = str(error.code) || str(error.type);
    const message = str(error.message) || str(data.error) || "The server gave no message.";
    this.answer.failure = code && code !== "error" ? `${message} (${code})` : message;
    this.summary = message;
    this.ended = true;
  }

  /** Adds text to a part. @param {Part} part @param {unknown} delta */
  append(part, delta) {
    part.text += str(delta);
    this.summary = quote(str(delta));
  }
}

/**
 * The Responses API. The open item has at most one open text: its last part, or the
 * arguments of a call.
 */
class ResponsesReader extends Reader {
  constructor() {
    super();
    this.stage = "before";
    this.nextNumber = 0;
    this.responseId = "";
    /** @type {Set<string>} */
    this.ids = new Set();
    /** Fingerprints of the items that are done. @type {string[]} */
    this.done = [];
    this.cut = false;
    /** @type {OpenItem | null} */
    this.item = null;
    /** @type {"none" | "open" | "complete"} */
    this.text = "none";
    /** The text of the present part so far. */
    this.content = "";
  }

  /** @override @returns {[string, number]} */
  state() {
    if (this.ended) return ["done", 0];
    if (this.stage === "before") return ["not begun", 0];
    if (!this.item) return ["response open", 1];
    const at = this.done.length;
    if (this.text === "none") return [`item ${at} open`, 2];
    if (this.item.type === "function_call") return [`item ${at} call ${this.text}`, 3];
    return [`part ${at}.${this.item.parts - 1} ${this.text}`, 3];
  }

  /** @override @param {string} type @param {Json} data */
  take(type, data) {
    const number = data.sequence_number;
    if (number !== undefined || type.startsWith("response.")) {
      this.want(number === this.nextNumber, "a missing or unexpected sequence number");
      this.nextNumber = num(number) + 1;
    }
    const name = type.replace(/^response\./, "");
    if (name === "created") this.begin("before", "created", obj(data.response));
    else if (name === "in_progress") this.begin("created", "running", obj(data.response));
    else if (name === "completed" || name === "incomplete") this.end(name, obj(data.response));
    else if (name === "failed") this.failed(obj(data.response));
    else if (name === "error") this.fail(data);
    else if (name === "output_item.added") this.addItem(data, obj(data.item));
    else if (name === "output_item.done") this.finishItem(data, obj(data.item));
    else this.inItem(name, data);
  }

  /** @param {string} from @param {string} to @param {Json} response */
  begin(from, to, response) {
    const empty = str(response.id) !== "" && list(response.output).length === 0;
    this.want(this.stage === from && empty, "a missing, repeated or non-empty opening event");
    if (from === "before") this.responseId = str(response.id);
    this.check("in_progress", response);
    this.stage = to;
    this.summary = str(response.id);
    this.answer.model = str(response.model);
  }

  /** @param {string} status @param {Json} response */
  check(status, response) {
    const same = str(response.id) === this.responseId;
    this.want(same, "a response with another id than the first event");
    this.want(response.status === status, "a status that does not match its event");
  }

  /** @param {string} status @param {Json} response */
  end(status, response) {
    this.want(this.stage === "running", "a missing, repeated or non-empty opening event");
    this.check(status, response);
    this.want(!this.item, "a terminal event while an item is open");
    const cutButComplete = this.cut && status === "completed";
    this.want(!cutButComplete, "a status that does not match its event");
    const same = list(response.output).map(fingerprint).join() === this.done.join();
    this.want(same, "a final response with other items than its stream");
    this.answer.finish = str(obj(response.incomplete_details).reason) || status;
    this.takeUsage(response.usage);
    this.summary = this.answer.finish;
    this.ended = true;
  }

  /** @param {Json} response */
  failed(response) {
    this.want(this.stage !== "before", "a missing, repeated or non-empty opening event");
    this.check("failed", response);
    this.takeUsage(response.usage);
    this.fail(response);
  }

  /** @param {unknown} usage */
  takeUsage(usage) {
    if (!usage) return;
    const counts = obj(usage);
    this.answer.usage = {
      input: num(counts.input_tokens),
      cached: num(obj(counts.input_tokens_details).cached_tokens),
      output: num(counts.output_tokens),
      reasoning: num(obj(counts.output_tokens_details).reasoning_tokens),
    };
  }

  /** @param {Json} data @param {Json} item */
  addItem(data, item) {
    const follows = this.stage === "running" && !this.item && !this.cut;
    const blank = !contentOf(item)?.length;
    const ordered = follows && data.output_index === this.done.length && blank;
    this.want(ordered, "an item that is out of order or not empty when added");
    const id = str(item.id);
    const unique = id !== "" && !this.ids.has(id);
    this.want(unique, "an item without a unique id, or whose identity changes");
    this.ids.add(id);
    this.item = { id, type: str(item.type), call: callIdentity(item), parts: 0 };
    this.text = item.type === "function_call" ? "open" : "none";
    this.content = "";
    this.summary = [str(item.type), str(item.name)].filter(Boolean).join(" ");
    if (item.type === "function_call") {
      this.answer.part(id, "call", { name: str(item.name), id: str(item.call_id) });
    }
  }

  /** @param {Json} data @param {Json} item */
  finishItem(data, item) {
    const open = this.item;
    const here = open !== null && data.output_index === this.done.length;
    this.want(here, "an item that is out of order or not empty when added");
    if (open) this.checkItem(open, item);
    this.cut = item.status === "incomplete";
    this.item = null;
    this.text = "none";
    this.done.push(fingerprint(item));
    this.summary = [str(item.type), str(item.status)].filter(Boolean).join(" ");
    this.takeItem(item);
  }

  /** @param {OpenItem} open @param {Json} item */
  checkItem(open, item) {
    const same = open.id === item.id && open.type === item.type;
    const identity = same && open.call === callIdentity(item);
    this.want(identity, "an item without a unique id, or whose identity changes");
    const call = open.type === "function_call";
    const complete = this.text === (call ? "complete" : "none");
    const full = complete && (open.type !== "message" || open.parts > 0);
    this.want(full, "a part that is out of order, missing or not empty when added");
    if (call) this.want(str(item.arguments) === this.content, TEXT);
    const ended = [undefined, null, "completed", "incomplete"].includes(item.status);
    if (call || open.type === "message" || open.type === "reasoning") {
      this.want(ended, "a status that does not match its event");
    }
  }

  /** Adds what an item has and its events had not. @param {Json} item */
  takeItem(item) {
    const id = str(item.id);
    if (item.type === "function_call") {
      const more = { name: str(item.name), id: str(item.call_id), text: str(item.arguments) };
      this.answer.part(id, "call", { ...more, done: true });
    } else if (item.type === "message" || item.type === "reasoning") {
      const [texts, prefix] = item.type === "message" ? [item.content, "c"] : [item.summary, "s"];
      list(texts).forEach((value, index) => {
        const kind = item.type === "reasoning" ? "reasoning" : partKind(obj(value));
        const text = str(obj(value).text) || str(obj(value).refusal);
        const part = this.answer.part(`${id}${prefix}${index}`, kind, { done: true });
        if (text) part.text = text;
      });
    } else if (item.type) {
      const more = { name: str(item.type), text: JSON.stringify(item, null, 2), done: true };
      this.answer.part(id, "other", more);
    }
  }

  /** @param {string} name @param {Json} data */
  inItem(name, data) {
    const action = ITEM_EVENTS.get(name);
    if (!action) {
      this.unknown = true;
      return;
    }
    const item = this.item;
    const here = item && item.id === data.item_id && data.output_index === this.done.length;
    this.want(Boolean(here), "an event for an item or part that is not open");
    action(this, data, str(data.item_id));
  }

  /** @param {unknown} index @param {Json} part @param {string} type the type of the item */
  addPart(index, part, type) {
    const item = this.item;
    const follows = item?.type === type && this.text === "none" && index === item.parts;
    const blank = (str(part.text) || str(part.refusal)) === "";
    this.want(follows && blank, "a part that is out of order, missing or not empty when added");
    if (item) item.parts = num(index) + 1;
    this.text = "open";
    this.content = "";
    this.summary = str(part.type);
  }

  /** @param {unknown} index @param {Json} part */
  finishPart(index, part) {
    const last = this.text === "complete" && num(index) + 1 === this.item?.parts;
    this.want(last, "a part that is out of order, missing or not empty when added");
    this.want((str(part.text) || str(part.refusal)) === this.content, TEXT);
    this.text = "none";
    this.summary = str(part.type);
  }

  /** @param {unknown} index @param {unknown} delta @param {Part} part */
  delta(index, delta, part) {
    const calls = part.kind === "call";
    const here = this.text === "open" && (calls || num(index) + 1 === this.item?.parts);
    this.want(here, "an event for an item or part that is not open");
    this.content += str(delta);
    this.append(part, delta);
  }

  /** @param {unknown} text @param {Part} part */
  finishText(text, part) {
    this.want(this.text === "open", "an event for an item or part that is not open");
    this.want(str(text) === this.content, TEXT);
    this.text = "complete";
    this.summary = `${str(text).length} characters`;
    if (str(text)) part.text = str(text);
    part.done = true;
  }
}

/**
 * The events within an item.
 * @type {[string, (r: ResponsesReader, d: Json, id: string) => void][]}
 */
const ITEM_ACTIONS = [
  ["content_part.added", (r, d, id) => {
    r.addPart(d.content_index, obj(d.part), "message");
    r.answer.part(`${id}c${num(d.content_index)}`, partKind(obj(d.part)));
  }],
  ["content_part.done", (r, d) => r.finishPart(d.content_index, obj(d.part))],
  ["output_text.delta", (r, d, id) =>
    r.delta(d.content_index, d.delta, r.answer.part(`${id}c${num(d.content_index)}`, "text"))],
  ["output_text.done", (r, d, id) =>
    r.finishText(d.text, r.answer.part(`${id}c${num(d.content_index)}`, "text"))],
  ["output_text.annotation.added", (r, d) => {
    r.summary = str(obj(d.annotation).type);
  }],
  ["refusal.delta", (r, d, id) =>
    r.delta(d.content_index, d.delta, r.answer.part(`${id}c${num(d.content_index)}`, "refusal"))],
  ["refusal.done", (r, d, id) =>
    r.finishText(d.refusal, r.answer.part(`${id}c${num(d.content_index)}`, "refusal"))],
  ["function_call_arguments.delta", (r, d, id) =>
    r.delta(0, d.delta, r.answer.part(id, "call"))],
  ["function_call_arguments.done", (r, d, id) =>
    r.finishText(d.arguments, r.answer.part(id, "call"))],
  ["reasoning_summary_part.added", (r, d) =>
    r.addPart(d.summary_index, obj(d.part), "reasoning")],
  ["reasoning_summary_part.done", (r, d) => r.finishPart(d.summary_index, obj(d.part))],
  ["reasoning_summary_text.delta", (r, d, id) =>
    r.delta(d.summary_index, d.delta, r.answer.part(`${id}s${num(d.summary_index)}`, "reasoning"))],
  ["reasoning_summary_text.done", (r, d, id) =>
    r.finishText(d.text, r.answer.part(`${id}s${num(d.summary_index)}`, "reasoning"))],
  // Only some servers stream the reasoning itself; the grammar does not define it.
  ["reasoning_text.delta", (r, d, id) => {
    r.unknown = true;
    r.append(r.answer.part(`${id}r${num(d.content_index)}`, "reasoning"), d.delta);
  }],
  ["reasoning_text.done", (r, d, id) => {
    r.unknown = true;
    r.answer.close(`${id}r${num(d.content_index)}`);
  }],
];
const ITEM_EVENTS = new Map(ITEM_ACTIONS);

/** @param {Json} part @returns {"text" | "refusal"} */
const partKind = (part) => (part.type === "refusal" ? "refusal" : "text");
/** @param {Json} item @returns {string} */
const callIdentity = (item) =>
  item.type === "function_call" ? `${str(item.call_id)} ${str(item.name)}` : "";

/** The members that must be empty when the item is added. @param {Json} item @returns {any} */
function contentOf(item) {
  if (item.type === "function_call") return item.arguments;
  if (item.type === "message") return item.content;
  return item.type === "reasoning" ? item.summary : "";
}

/** An item as a string, equal for items of the same content. @param {unknown} value */
function fingerprint(value) {
  const item = obj(value);
  const texts = list(item.type === "reasoning" ? item.summary : item.content);
  const parts = texts.map((part) => [part?.type, part?.text ?? part?.refusal ?? ""]);
  return JSON.stringify([item.id, item.type, callIdentity(item), item.arguments, parts]);
}

/** The Chat Completions API: chunks without names, and `[DONE]`. */
class ChatReader extends Reader {
  constructor() {
    super();
    this.identity = "";
    /** @type {{calls: number, finished: boolean}[]} */
    this.choices = [];
    this.usageReceived = false;
  }

  /** @override @returns {[string, number]} */
  state() {
    if (this.ended) return ["done", 0];
    if (this.choices.length === 0) return ["not begun", 0];
    const open = this.choices.filter((choice) => !choice.finished).length;
    if (open === 0) return [this.usageReceived ? "usage received" : "finished", 1];
    const last = this.choices.at(-1);
    if (last && last.calls > 0) return [`call ${last.calls - 1} open`, 3];
    return [open === 1 ? `choice ${this.choices.length - 1} open` : `${open} choices open`, 2];
  }

  /** @override @param {string} name @param {string} data @returns {[string, Json | null]} */
  parse(name, data) {
    if (data.trim() === "[DONE]") return ["[DONE]", {}];
    const [, json] = super.parse(name, data);
    if (!json) return ["?", null];
    return [json.error ? "error" : str(json.object) || "chunk", json];
  }

  allFinished() {
    return this.choices.length > 0 && this.choices.every((choice) => choice.finished);
  }

  /** @override @param {string} type @param {Json} data */
  take(type, data) {
    if (type === "[DONE]") {
      this.want(this.allFinished(), "[DONE] before the finish reason");
      this.ended = true;
    } else if (type === "error") {
      this.fail(data);
    } else {
      this.chunk(data);
    }
  }

  /** @param {Json} data */
  chunk(data) {
    const identity = JSON.stringify([data.id, data.created, data.model]);
    const same = this.identity === "" || this.identity === identity;
    this.want(same, "a chunk whose id, creation time or model differs from the first");
    // A change is marked once, not in all chunks after it.
    this.identity = identity;
    this.answer.model ||= str(data.model);
    const choices = list(data.choices);
    if (data.usage || choices.length === 0) this.usage(data, choices.length === 0);
    for (const choice of choices) this.choice(obj(choice));
  }

  /** @param {Json} data @param {boolean} alone */
  usage(data, alone) {
    const ordered = !this.usageReceived && this.allFinished() && alone;
    this.want(ordered, "usage before every choice has finished, or twice");
    if (!data.usage) return;
    const counts = obj(data.usage);
    this.usageReceived = true;
    this.answer.usage = {
      input: num(counts.prompt_tokens),
      cached: num(obj(counts.prompt_tokens_details).cached_tokens),
      output: num(counts.completion_tokens),
      reasoning: num(obj(counts.completion_tokens_details).reasoning_tokens),
    };
    this.summary = `${num(counts.prompt_tokens)} in, ${num(counts.completion_tokens)} out`;
  }

  /** @param {Json} choice */
  choice(choice) {
    const delta = obj(choice.delta);
    const at = num(choice.index);
    if (delta.role && at < this.choices.length) {
      this.mark("a role after the first chunk of a choice");
    } else if (at >= this.choices.length) {
      const opens = Boolean(delta.role) && at === this.choices.length;
      this.want(opens, "a choice that starts without a role or out of order");
      while (this.choices.length <= Math.min(at, 127)) {
        this.choices.push({ calls: 0, finished: false });
      }
    }
    const state = this.choices[Math.min(at, 127)];
    this.want(!state.finished && !this.usageReceived, "a delta after the finish reason");
    this.summary = delta.role ? `role ${str(delta.role)}` : "";
    this.texts(at, delta);
    for (const call of list(delta.tool_calls)) this.call(at, state, obj(call));
    if (choice.finish_reason) {
      state.finished = true;
      this.answer.finish = str(choice.finish_reason);
      this.summary = `finish_reason ${str(choice.finish_reason)}`;
      for (const part of this.answer.parts) part.done = true;
    }
  }

  /** @param {number} at @param {Json} delta */
  texts(at, delta) {
    const reasoning = str(delta.reasoning_content) || str(delta.reasoning);
    if (reasoning) this.append(this.answer.part(`${at}reasoning`, "reasoning"), reasoning);
    if (str(delta.content)) {
      this.answer.close(`${at}reasoning`);
      const part = this.answer.part(`${at}text`, "text");
      // With several choices, each one is a part of its own, which says to which it belongs.
      if (this.choices.length > 1) part.name = `choice ${at}`;
      this.append(part, delta.content);
    }
    if (str(delta.refusal)) this.append(this.answer.part(`${at}refusal`, "refusal"), delta.refusal);
  }

  /** @param {number} at @param {{calls: number, finished: boolean}} state @param {Json} call */
  call(at, state, call) {
    const fn = obj(call.function);
    const index = num(call.index);
    const begins = Boolean(call.id) && Boolean(fn.name) && index === state.calls;
    const goesOn = !call.id && !fn.name && index < state.calls;
    this.want(begins || goesOn, "a fragment of a call that was not started, or started twice");
    if (index >= state.calls) state.calls = index + 1;
    const part = this.answer.part(`${at}call${index}`, "call");
    if (call.id) part.id = str(call.id);
    if (fn.name) part.name = str(fn.name);
    this.append(part, fn.arguments);
    if (fn.name) this.summary = `call ${str(fn.name)}`;
  }
}

/** The Messages API: blocks, one open at a time. */
class MessagesReader extends Reader {
  constructor() {
    super();
    /** @type {"before" | "between" | "within" | "stopping"} */
    this.stage = "before";
    this.blocks = 0;
    this.block = "";
    this.signed = false;
    /** True if the last block is a call whose input is no JSON object. */
    this.broken = false;
  }

  /** @override @returns {[string, number]} */
  state() {
    if (this.ended) return ["done", 0];
    if (this.stage === "before") return ["not begun", 0];
    if (this.stage === "within") return [`block ${this.blocks} open`, 2];
    return [this.stage === "stopping" ? "stopping" : "message open", 1];
  }

  /** @override @param {string} type @param {Json} data */
  take(type, data) {
    const action = MESSAGE_EVENTS.get(type);
    if (!action) {
      this.unknown = true;
      return;
    }
    const opening = this.stage === "before" && type !== "message_start" && type !== "error";
    this.want(!opening, "an event before message_start, or a message_start that is repeated or " +
      "has content");
    action(this, data);
  }

  /** @param {Json} message */
  start(message) {
    const first = this.stage === "before" && list(message.content).length === 0;
    this.want(first, "an event before message_start, or a message_start that is repeated or " +
      "has content");
    this.stage = "between";
    this.answer.model = str(message.model);
    this.usage(obj(message.usage));
    this.summary = str(message.id);
  }

  /** @param {Json} counts */
  usage(counts) {
    const usage = this.answer.usage ?? { input: 0, cached: 0, output: 0, reasoning: 0 };
    const cached = num(counts.cache_read_input_tokens);
    // The protocol counts the tokens of the cache beside the others; the page shows the sum.
    const fresh = num(counts.input_tokens) + num(counts.cache_creation_input_tokens);
    if (counts.input_tokens !== undefined && counts.input_tokens !== null) {
      usage.input = fresh + cached;
      usage.cached = cached;
    }
    usage.output = num(counts.output_tokens);
    this.answer.usage = usage;
  }

  /** @param {Json} data @param {Json} block */
  startBlock(data, block) {
    const ordered = this.stage === "between" && data.index === this.blocks;
    this.want(ordered, "a block that starts out of order");
    this.want(!this.broken, "a call whose input is not a JSON object");
    this.stage = "within";
    this.blocks = num(data.index);
    this.block = str(block.type);
    this.signed = false;
    this.summary = [this.block, str(block.name)].filter(Boolean).join(" ");
    const key = String(this.blocks);
    const text = str(block.text) || str(block.thinking);
    if (this.block === "text") this.answer.part(key, "text", { text });
    else if (this.block === "thinking") {
      const native = { type: "thinking", thinking: text, signature: "" };
      this.answer.part(key, "reasoning", { text, native });
    } else if (this.block === "redacted_thinking") {
      this.answer.part(key, "reasoning", { text: "(redacted)", native: block });
    } else if (this.block === "tool_use") {
      this.answer.part(key, "call", { name: str(block.name), id: str(block.id) });
    } else {
      this.answer.part(key, "other", { name: this.block, text: JSON.stringify(block, null, 2) });
    }
  }

  /** @param {Json} data @param {Json} delta */
  delta(data, delta) {
    const here = this.stage === "within" && data.index === this.blocks;
    this.want(here, "a delta that does not belong to the open block");
    const part = this.answer.byKey.get(String(num(data.index)));
    const [block, text] = DELTAS.get(str(delta.type)) ?? ["", ""];
    if (!block || !part || this.block === "") return;
    const fits = block === this.block || part.kind === "other";
    this.want(fits, "a delta that does not belong to the open block");
    if (this.block === "thinking") {
      this.want(!this.signed, "a second signature, or thinking after the signature");
    }
    if (delta.type === "signature_delta") {
      this.signed = true;
      this.summary = "signature";
      if (part.native) part.native.signature = str(delta.signature);
    } else if (part.kind !== "other") {
      this.append(part, delta[text]);
      if (part.native) part.native.thinking = part.text;
    }
  }

  /** @param {Json} data */
  stopBlock(data) {
    const here = this.stage === "within" && data.index === this.blocks;
    this.want(here, "the end of a block that is not open");
    const part = this.answer.byKey.get(String(this.blocks));
    this.broken = part?.kind === "call" && part.text.trim() !== "" && !isObject(part.text);
    if (part) part.done = true;
    this.stage = "between";
    this.blocks += 1;
  }

  /** @param {Json} data */
  stop(data) {
    const reason = str(obj(data.delta).stop_reason);
    const ordered = this.stage === "between" && reason !== "";
    this.want(ordered, "a message_delta within a block, a second one, or one without a stop " +
      "reason");
    const cut = ["max_tokens", "refusal", "model_context_window_exceeded"].includes(reason);
    this.want(!this.broken || cut, "a call whose input is not a JSON object");
    this.stage = "stopping";
    this.answer.finish = reason;
    this.usage(obj(data.usage));
    this.summary = `stop_reason ${reason}`;
  }
}

/** @type {[string, (reader: MessagesReader, data: Json) => void][]} */
const MESSAGE_ACTIONS = [
  ["message_start", (reader, data) => reader.start(obj(data.message))],
  ["content_block_start", (reader, data) => reader.startBlock(data, obj(data.content_block))],
  ["content_block_delta", (reader, data) => reader.delta(data, obj(data.delta))],
  ["content_block_stop", (reader, data) => reader.stopBlock(data)],
  ["message_delta", (reader, data) => reader.stop(data)],
  ["message_stop", (reader) => {
    reader.want(reader.stage === "stopping", "a message_stop before message_delta");
    reader.ended = true;
  }],
  ["ping", () => {}],
  ["error", (reader, data) => reader.fail(data)],
];
const MESSAGE_EVENTS = new Map(MESSAGE_ACTIONS);

/** The block of each delta type, and the field with its text. @type {Map<string, string[]>} */
const DELTAS = new Map([
  ["text_delta", ["text", "text"]],
  ["input_json_delta", ["tool_use", "partial_json"]],
  ["thinking_delta", ["thinking", "thinking"]],
  ["signature_delta", ["thinking", "signature"]],
]);

/** @param {string} text */
function isObject(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** The Images API. A stream ends after as many images as were requested. */
class ImagesReader extends Reader {
  /** @param {boolean} edits @param {number} count */
  constructor(edits, count) {
    super();
    this.family = edits ? "image_edit" : "image_generation";
    this.count = count;
    this.pictures = 0;
    /** The index of the last preview since the last completed image. */
    this.preview = -1;
    this.previews = 0;
  }

  /** @override @returns {[string, number]} */
  state() {
    if (this.ended) return ["done", 0];
    if (this.preview >= 0) return [`image ${this.pictures} preview ${this.preview}`, 2];
    return [`${this.pictures} of ${this.count} images`, 1];
  }

  /** @override @param {string} type @param {Json} data */
  take(type, data) {
    const [family, event] = type.split(".");
    if (type === "error" || data.error) {
      this.fail(data);
    } else if (event === "partial_image" || event === "completed") {
      this.want(family === this.family, "an event of the other operation");
      if (event === "completed") this.completed(data);
      else this.partial(data);
    } else {
      this.unknown = true;
    }
  }

  /** @param {Json} data */
  partial(data) {
    const index = num(data.partial_image_index);
    const ordered = this.pictures + 1 !== this.count || index > this.preview;
    this.want(ordered, "a preview whose index does not increase");
    this.preview = index;
    const name = `Preview ${index}`;
    const more = { name, text: str(data.b64_json), at: this.at };
    this.answer.part(`p${this.previews++}`, "image", more);
    this.summary = imageSummary(data);
  }

  /** @param {Json} data */
  completed(data) {
    this.preview = -1;
    this.pictures += 1;
    if (this.pictures >= this.count) this.ended = true;
    takeImage(this.answer, data, this.pictures, this.at);
    const counts = obj(data.usage);
    const usage = this.answer.usage ?? { input: 0, cached: 0, output: 0, reasoning: 0 };
    usage.input += num(counts.input_tokens);
    usage.output += num(counts.output_tokens);
    if (data.usage) this.answer.usage = usage;
    this.answer.finish = "completed";
    this.summary = imageSummary(data);
  }
}

/** @param {Json} data @returns {string} */
const imageSummary = (data) =>
  [str(data.size), str(data.output_format), str(data.quality)].filter(Boolean).join(" ");

/** @param {Answer} answer @param {Json} data @param {number} count @param {number} at */
function takeImage(answer, data, count, at) {
  const text = str(data.b64_json) || str(data.url);
  const more = { name: `Image ${count}`, text, at, done: true, id: str(data.revised_prompt) };
  answer.part(`image${count}`, "image", more);
}

/**
 * A reader of the events of one stream.
 * @param {Protocol} protocol @param {{edits: boolean, count: number}} images @returns {Reader}
 */
export function readerOf(protocol, images) {
  if (protocol === "responses") return new ResponsesReader();
  if (protocol === "chat") return new ChatReader();
  if (protocol === "messages") return new MessagesReader();
  return new ImagesReader(images.edits, images.count);
}

/**
 * The answer of a body that is no stream.
 * @param {Protocol} protocol @param {Json} body @param {number} at @returns {Answer}
 */
export function wholeAnswer(protocol, body, at) {
  const reader = readerOf(protocol, { edits: false, count: 1 });
  const answer = reader.answer;
  answer.model = str(body.model);
  if (reader instanceof ResponsesReader) {
    for (const item of list(body.output)) reader.takeItem(obj(item));
    reader.takeUsage(body.usage);
    answer.finish = str(obj(body.incomplete_details).reason) || str(body.status);
    if (body.error) reader.fail(body);
  } else if (reader instanceof ChatReader) {
    list(body.choices).forEach((value) => reader.choice(wholeChoice(obj(value))));
    if (body.usage) reader.usage(body, true);
  } else if (reader instanceof MessagesReader) {
    wholeMessage(reader, body);
  } else {
    list(body.data).forEach((image, index) => takeImage(answer, obj(image), index + 1, at));
    const usage = obj(body.usage);
    const [input, output] = [num(usage.input_tokens), num(usage.output_tokens)];
    if (body.usage) answer.usage = { input, cached: 0, output, reasoning: 0 };
    answer.finish = "completed";
  }
  for (const part of answer.parts) part.done = true;
  return answer;
}

/** A choice of a completion in the form of a chunk's. @param {Json} choice @returns {Json} */
function wholeChoice(choice) {
  const message = obj(choice.message);
  const calls = list(message.tool_calls).map((call, index) => ({ ...obj(call), index }));
  return { ...choice, delta: { ...message, tool_calls: calls } };
}

/** @param {MessagesReader} reader @param {Json} body */
function wholeMessage(reader, body) {
  reader.stage = "between";
  list(body.content).forEach((value, index) => {
    const block = obj(value);
    reader.startBlock({ index }, block);
    const part = reader.answer.byKey.get(String(index));
    if (part?.kind === "call") part.text = JSON.stringify(block.input ?? {});
    if (part?.native?.type === "thinking") part.native.signature = str(block.signature);
    reader.stopBlock({ index });
  });
  reader.usage(obj(body.usage));
  reader.answer.finish = str(body.stop_reason);
}
