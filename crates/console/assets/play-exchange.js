// Sends one request by the road of everybody's requests, and reads its answer as it comes.

import { api, failureOf, readEvents } from "./api.js";
import { Answer, readerOf, wholeAnswer } from "./play-events.js";
import { fill } from "./play-request.js";

/** @typedef {import("./play-answer.js").AnswerView} AnswerView */
/** @typedef {import("./play-tape.js").Tape} Tape */
/** @typedef {{protocol: Protocol, draft: Draft, key: string, signal: AbortSignal}} Order */

/** How long the page works before it lets the browser draw and take input. */
const SLICE_MS = 8;

/** Lets the browser do what waits. */
const pause = () => new Promise((resolve) => setTimeout(resolve));

/** One request and its answer. */
export class Exchange {
  /** @param {Order} order @param {Tape} tape @param {AnswerView} view */
  constructor(order, tape, view) {
    this.order = order;
    this.tape = tape;
    this.view = view;
    this.answer = new Answer();
    this.sentAt = 0;
    /** @type {Facts} */
    this.facts = {
      end: "complete", problem: "", firstMs: -1, totalMs: 0, requestId: "", dropped: "",
    };
  }

  now() {
    return performance.now() - this.sentAt;
  }

  /** Sends the request. Never throws: what goes wrong is in the facts. */
  async run() {
    this.tape.restart();
    this.sentAt = performance.now();
    try {
      await this.receive(await this.send());
    } catch (error) {
      this.lost(error);
    }
    if (this.order.signal.aborted) this.stopped();
    this.facts.totalMs = this.now();
    this.view.show(this.answer);
    this.view.finish(this.facts);
  }

  send() {
    const { draft, key, signal } = this.order;
    const headers = {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "x-sluicegate-console": "1",
    };
    const body = JSON.stringify(fill(draft.body, draft.files));
    return fetch(`/play${draft.path}`, { method: "POST", headers, body, signal });
  }

  /** @param {Response} response */
  async receive(response) {
    const type = response.headers.get("content-type") ?? "";
    this.facts.requestId = response.headers.get("x-request-id") ?? "";
    this.facts.dropped = response.headers.get("x-sluicegate-dropped") ?? "";
    this.tape.note(this.now(), { type: `HTTP ${response.status}`, summary: type.split(";")[0] });
    if (!response.ok) await this.refused(response);
    else if (type.startsWith("text/event-stream")) await this.stream(response);
    else await this.whole(response);
  }

  /** @param {Response} response */
  async refused(response) {
    const content = await response.text();
    const { message, code, param } = failureOf(response.status, content);
    const details = [response.status, code, param].filter(Boolean).join(", ");
    const wait = response.headers.get("retry-after");
    const later = wait ? ` Try again in ${wait} s.` : "";
    this.fail(`${message}${later} (${details})`);
    this.tape.note(this.now(), { type: "body", summary: message, state: "refused" }, content);
    // It may be the session that has ended: this asks for the admin key then.
    if (response.status === 401) void api("GET", "/console/session").catch(() => {});
  }

  /** @param {string} problem */
  fail(problem) {
    this.facts.end = "failed";
    this.facts.problem = problem;
  }

  /** @param {Response} response */
  async stream(response) {
    const { protocol, draft, signal } = this.order;
    const count = Number(draft.body.n ?? 1);
    const reader = readerOf(protocol, { edits: draft.path.endsWith("/edits"), count });
    this.answer = reader.answer;
    let sliceFrom = performance.now();
    for await (const event of readEvents(response, signal)) {
      const at = event.at - this.sentAt;
      if (this.facts.firstMs < 0) this.facts.firstMs = at;
      this.tape.add(at, reader.read(event.name, event.data, at), event.raw);
      this.view.show(this.answer);
      if (performance.now() - sliceFrom < SLICE_MS) continue;
      await pause();
      sliceFrom = performance.now();
      if (signal.aborted) return;
    }
    if (signal.aborted) return;
    const offence = reader.finish();
    this.tape.note(this.now(), { type: "end of the body", offence, state: "done" });
    if (offence) this.fail(`The answer is not complete: ${offence}.`);
    if (this.answer.failure) this.fail(this.answer.failure);
  }

  /** @param {Response} response */
  async whole(response) {
    const content = await response.text();
    const at = this.now();
    this.tape.note(at, { type: "body", summary: "not streamed", state: "done" }, content);
    try {
      const body = JSON.parse(content);
      this.answer = wholeAnswer(this.order.protocol, body ?? {}, at);
      if (this.answer.failure) this.fail(this.answer.failure);
    } catch {
      this.fail("The gateway answered with something that is not JSON.");
    }
  }

  /** @param {unknown} error */
  lost(error) {
    if (this.order.signal.aborted) return;
    const offence = "the connection was lost before the end";
    this.tape.note(this.now(), { type: "end of the body", offence, summary: String(error) });
    this.fail(this.facts.firstMs < 0 ? "The gateway does not answer."
      : "The connection was lost before the end of the answer.");
  }

  stopped() {
    this.facts.end = "stopped";
    this.facts.problem = "";
    this.tape.note(this.now(), { type: "stopped", summary: "by you", state: "connection closed" });
  }
}
