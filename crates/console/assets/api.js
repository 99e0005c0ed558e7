// Calls the gateway: JSON requests, server-sent events, the stream of changes, the keys of Play.

/** A request that the gateway refused, or that did not arrive (status 0). */
export class ApiFailure extends Error {
  /**
   * @param {number} status
   * @param {string} message
   * @param {string | null} [code]
   * @param {string | null} [param]
   */
  constructor(status, message, code = null, param = null) {
    super(message);
    this.name = "ApiFailure";
    this.status = status;
    this.code = code;
    this.param = param;
  }
}

/** @type {() => Promise<boolean>} asks for the admin key; true once the session exists */
let signIn = async () => false;

/**
 * Sets what to do when there is no session.
 * @param {() => Promise<boolean>} ask
 */
export function onUnauthorized(ask) {
  signIn = ask;
}

/**
 * Sends a request of the admin API and returns its JSON, or null if the answer has none.
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @returns {Promise<any>}
 */
export async function api(method, path, body) {
  let response = await send(method, path, body);
  if (response.status === 401 && (await signIn())) response = await send(method, path, body);
  const content = await response.text();
  if (!response.ok) throw failureOf(response.status, content);
  return content ? JSON.parse(content) : null;
}

/**
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @param {AbortSignal} [signal]
 */
export async function send(method, path, body, signal) {
  /** @type {Record<string, string>} */
  const headers = {};
  // A header that forms and other sites cannot set without asking first.
  if (method !== "GET") headers["x-sluicegate-console"] = "1";
  if (body !== undefined) headers["content-type"] = "application/json";
  const init = {
    method,
    headers,
    signal,
    body: body === undefined ? undefined : JSON.stringify(body),
  };
  try {
    return await fetch(path, init);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiFailure(0, "The gateway does not answer.", "no_connection");
  }
}

/**
 * Reads an error body of the gateway, in either of its two shapes.
 * @param {number} status
 * @param {string} content
 */
export function failureOf(status, content) {
  let error;
  try {
    error = JSON.parse(content)?.error;
  } catch {
    // Not JSON: something in front of the gateway answered.
  }
  const message =
    typeof error?.message === "string"
      ? error.message
      : `The gateway answered with status ${status}.`;
  return new ApiFailure(status, message, error?.code ?? error?.type ?? null, error?.param ?? null);
}

/**
 * @typedef {object} ServerEvent
 * @property {string} name the type; `message` if the event has none
 * @property {string} data
 * @property {string} raw the lines of the event as they came
 * @property {number} at when it was complete, by performance.now()
 */

/**
 * Reads server-sent events as the HTML standard says: any line end, several data lines, comments, a
 * BOM. An event that the end of the stream cuts off is dropped.
 * @param {Response} response
 * @param {AbortSignal} [signal]
 * @returns {AsyncGenerator<ServerEvent, void, void>}
 */
export async function* readEvents(response, signal) {
  if (!response.body) return;
  const reader = response.body.getReader();
  const cancel = () => void reader.cancel().catch(() => {});
  signal?.addEventListener("abort", cancel, { once: true });
  const decoder = new TextDecoder();
  const parser = new EventParser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    signal?.removeEventListener("abort", cancel);
    cancel();
  }
}

/** Splits text into server-sent events. */
export class EventParser {
  #rest = "";
  #afterCr = false;
  #name = "";
  /** @type {string[]} */
  #data = [];
  /** @type {string[]} */
  #raw = [];

  /**
   * Adds text and returns the events that it completes.
   * @param {string} chunk
   * @returns {ServerEvent[]}
   */
  push(chunk) {
    // The LF of a CRLF whose CR ended the chunk before.
    const begins = this.#afterCr && chunk.startsWith("\n") ? 1 : 0;
    if (chunk === "") return [];
    this.#afterCr = chunk.endsWith("\r");
    const lines = chunk.slice(begins).split(/\r\n|\n|\r/);
    // An image is one line of megabytes in many chunks: only the new text is searched.
    lines[0] = this.#rest + lines[0];
    this.#rest = lines.pop() ?? "";
    const events = [];
    for (const line of lines) {
      const event = this.#line(line);
      if (event) events.push(event);
    }
    return events;
  }

  /**
   * @param {string} line
   * @returns {ServerEvent | null}
   */
  #line(line) {
    if (line === "") return this.#dispatch();
    this.#raw.push(line);
    const colon = line.indexOf(":");
    if (colon === 0) return null;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    if (field === "event") this.#name = value;
    else if (field === "data") this.#data.push(value);
    return null;
  }

  /** @returns {ServerEvent | null} */
  #dispatch() {
    const [name, data, raw] = [this.#name || "message", this.#data, this.#raw.join("\n")];
    this.#name = "";
    this.#data = [];
    this.#raw = [];
    if (data.length === 0) return null;
    return { name, data: data.join("\n"), raw, at: performance.now() };
  }
}

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 15_000;
const HIDDEN_MS = 300_000;

/**
 * Dispatches `live` and `requests` from the stream of changes, `open` when the stream begins
 * (again), on which listeners load what they show, and `lost` when it has ended or could not begin.
 * The stream exists while somebody listens and the page was visible in the last five minutes.
 */
class Changes extends EventTarget {
  #listeners = 0;
  /** @type {AbortController | null} */
  #stream = null;
  /** @type {number | undefined} */
  #timer;
  #delay = FIRST_DELAY_MS;
  isOpen = false;

  constructor() {
    super();
    document.addEventListener("visibilitychange", () => this.#visible());
  }

  /**
   * Listens until the returned function is called. `open` is called soon if the stream is open
   * already.
   * @param {Record<string, (detail: any) => void>} listeners by name of the event
   * @returns {() => void}
   */
  listen(listeners) {
    const entries = Object.entries(listeners).map(([name, listener]) => {
      /** @param {Event} event */
      const listen = (event) => listener(/** @type {CustomEvent} */ (event).detail);
      return /** @type {const} */ ([name, listen]);
    });
    for (const [name, listen] of entries) this.addEventListener(name, listen);
    if (this.isOpen) queueMicrotask(() => listeners.open?.(null));
    return () => {
      for (const [name, listen] of entries) this.removeEventListener(name, listen);
    };
  }

  /** @param {Parameters<EventTarget["addEventListener"]>} args */
  addEventListener(...args) {
    super.addEventListener(...args);
    this.#listeners += 1;
    if (!this.#stream) this.#start();
  }

  /** @param {Parameters<EventTarget["removeEventListener"]>} args */
  removeEventListener(...args) {
    super.removeEventListener(...args);
    this.#listeners -= 1;
    // A change of the screen removes all listeners and adds others in the same task.
    setTimeout(() => {
      if (this.#listeners === 0) this.#stop();
    });
  }

  #start() {
    clearTimeout(this.#timer);
    this.#stream = new AbortController();
    void this.#run(this.#stream.signal);
  }

  #stop() {
    clearTimeout(this.#timer);
    this.#stream?.abort();
    this.#stream = null;
    this.isOpen = false;
  }

  #visible() {
    clearTimeout(this.#timer);
    if (document.hidden) this.#timer = setTimeout(() => this.#stop(), HIDDEN_MS);
    else if (this.#listeners > 0 && !this.#stream) this.#start();
  }

  /** @param {AbortSignal} signal */
  async #run(signal) {
    while (!signal.aborted) {
      try {
        await this.#read(signal);
      } catch {
        // The connection failed: tried again below.
      }
      if (signal.aborted) return;
      this.isOpen = false;
      this.#notify("lost");
      await new Promise((resolve) => setTimeout(resolve, this.#delay * (0.75 + Math.random() / 2)));
      this.#delay = Math.min(this.#delay * 2, LONGEST_DELAY_MS);
    }
  }

  /** @param {AbortSignal} signal */
  async #read(signal) {
    const response = await send("GET", "/admin/v1/changes", undefined, signal);
    // After the form is closed, the button of the page signs in, and mounts the screen again.
    if (response.status === 401 && !(await signIn())) return this.#stop();
    if (!response.ok) return;
    this.isOpen = true;
    this.#delay = FIRST_DELAY_MS;
    this.#notify("open");
    for await (const event of readEvents(response, signal)) {
      this.#notify(event.name, JSON.parse(event.data));
    }
  }

  /**
   * @param {string} name
   * @param {unknown} [detail]
   */
  #notify(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

export const changes = new Changes();

/** @typedef {{ name: string, key: string, scopes?: string[] }} PlayKey */

const TAB_KEY = "sluicegate.key";
/** @type {PlayKey[]} keys that the user has pasted */
const pasted = [];

/**
 * Returns the API keys that Play can use: the keys of the gateway, then the keys that the user has
 * pasted.
 * @returns {Promise<PlayKey[]>}
 */
export async function playKeys() {
  const made = /** @type {PlayKey[]} */ ((await api("GET", "/console/keys")).keys);
  const kept = sessionStorage.getItem(TAB_KEY);
  const remembered = kept && !pasted.some(({ key }) => key === kept) ? [nameKey(kept)] : [];
  return [...made, ...pasted, ...remembered];
}

/**
 * Keeps a pasted key in memory, and for the life of this tab if the user asked for it.
 * @param {string} key
 * @param {boolean} [inTab]
 */
export function rememberKey(key, inTab = false) {
  if (!pasted.some((other) => other.key === key)) pasted.push(nameKey(key));
  if (inTab) sessionStorage.setItem(TAB_KEY, key);
  else if (sessionStorage.getItem(TAB_KEY) === key) sessionStorage.removeItem(TAB_KEY);
}

/** @param {string} key */
function nameKey(key) {
  return { name: `pasted …${key.slice(-4)}`, key };
}
