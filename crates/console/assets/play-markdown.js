// Shows a small, safe subset of Markdown by DOM calls, while the text is still growing.
//
// The text comes from a model. It becomes text nodes and a fixed set of elements; a link is only
// made for http and https, and says where it leads. Every search is bounded, so no text can make
// the page slow.

import { el } from "./dom.js";

const FENCE = /^\s*(```+|~~~+)\s*([\w+#.-]{0,20})/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*)$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^ {0,3}>\s?/;

/** @param {string} line @returns {Block["kind"]} */
function kindOf(line) {
  if (FENCE.test(line)) return "fence";
  if (HEADING.test(line)) return "heading";
  if (RULE.test(line)) return "rule";
  if (QUOTE.test(line)) return "quote";
  return ITEM.test(line) ? "list" : "text";
}

/**
 * Whether a line goes on with the block before it.
 * @param {Block} block @param {string} line @param {boolean} afterBlank
 */
function goesOn(block, line, afterBlank) {
  const kind = kindOf(line);
  if (block.kind === "list") return kind === "list" || (kind === "text" && /^\s/.test(line)) ||
    (kind === "text" && !afterBlank);
  if (block.kind === "quote") return kind === "quote" && !afterBlank;
  return block.kind === "text" && kind === "text" && !afterBlank;
}

/** Characters of a paragraph: the browser lays out again the whole one that changes. */
const LONGEST_PARAGRAPH = 4000;

/**
 * The offset behind the first words of a line that is too long for a paragraph; otherwise its end.
 * @param {string} text @param {number} from @param {number} end
 */
function cut(text, from, end) {
  const space = text.lastIndexOf(" ", from + LONGEST_PARAGRAPH) + 1;
  return end - from > LONGEST_PARAGRAPH && space > from ? space : end;
}

/**
 * Splits a text into blocks. `end` is the offset after the block; the last block may still grow.
 * @param {string} text @returns {Block[]}
 */
function split(text) {
  /** @type {Block[]} */
  const blocks = [];
  /** @type {Block | null} */
  let open = null;
  let fence = "";
  let blank = false;
  let isCut = false;
  let end = 0;
  for (let from = 0; from <= text.length; from = end) {
    const lineEnd = text.indexOf("\n", from) + 1 || text.length + 1;
    end = fence ? lineEnd : cut(text, from, lineEnd);
    const line = text.slice(from, end).replace(/\n$/, "");
    if (isCut) {
      open = { kind: "text", lines: [line], level: 0, end, closed: false };
      blocks.push(open);
    } else if (fence && open) {
      open.closed = line.trim() === fence;
      if (open.closed) fence = "";
      else open.lines.push(line);
    } else if (line.trim() === "") {
      blank = true;
    } else if (open && goesOn(open, line, blank)) {
      open.lines.push(line);
      blank = false;
    } else {
      fence = FENCE.exec(line)?.[1] ?? "";
      const level = HEADING.exec(line)?.[1].length ?? 0;
      const name = FENCE.exec(line)?.[2] ?? "";
      const lines = fence ? [name] : [line];
      open = { kind: kindOf(line), lines, level, end: 0, closed: false };
      blocks.push(open);
      blank = false;
    }
    if (open) open.end = Math.min(end, text.length);
    isCut = end < lineEnd;
  }
  return blocks;
}

/** A text that grows, and its elements. Blocks that can no longer change are made only once. */
export class MarkdownView {
  constructor() {
    this.node = el("div", { class: "md" });
    /** The offset of the first block that can still change. */
    this.settled = 0;
    /** The text that was shown last. */
    this.shown = "";
    /** @type {ChildNode[]} */
    this.tail = [];
    /** @type {HTMLElement | null} the code of a block that is still open */
    this.code = null;
  }

  /** @param {string} text the whole text so far */
  update(text) {
    if (text === this.shown) return;
    if (!text.startsWith(this.shown)) this.restart();
    const more = text.slice(this.shown.length);
    this.shown = text;
    // The common case of a long code block: the new lines cannot be the end of the block.
    const lineStart = text.lastIndexOf("\n", text.length - more.length - 1) + 1;
    if (this.code && !/^\s*(`|~)/m.test(text.slice(lineStart))) {
      appendCode(this.code, more);
      return;
    }
    for (const node of this.tail) node.remove();
    const blocks = split(text.slice(this.settled));
    const last = blocks.pop();
    for (const block of blocks) this.node.append(render(block));
    this.settled += blocks.at(-1)?.end ?? 0;
    this.tail = last ? [render(last)] : [];
    this.node.append(...this.tail);
    const isOpen = last?.kind === "fence" && !last.closed;
    this.code = isOpen ? this.node.querySelector("pre:last-child > code") : null;
  }

  restart() {
    this.node.replaceChildren();
    this.settled = 0;
    this.tail = [];
    this.code = null;
    this.shown = "";
  }
}

/** Characters of code in one element: the browser lays out again the whole one that changes. */
const CODE_PIECE = 4000;

/** @param {HTMLElement} code @param {string} text */
function appendCode(code, text) {
  let piece = code.lastElementChild;
  let from = 0;
  while (from < text.length) {
    const shown = piece?.textContent ?? "";
    // Pieces end at the end of a line, because each is a block of its own.
    if (!piece || (shown.length >= CODE_PIECE && shown.endsWith("\n"))) {
      piece = el("span", {}, document.createTextNode(""));
      code.append(piece);
      continue;
    }
    const lineEnd = text.indexOf("\n", from + Math.max(0, CODE_PIECE - shown.length));
    const end = lineEnd < 0 ? text.length : lineEnd + 1;
    /** @type {Text} */ (piece.firstChild).appendData(text.slice(from, end));
    from = end;
  }
}

/** @param {Block} block @returns {HTMLElement} */
function render(block) {
  const [first, ...rest] = block.lines;
  if (block.kind === "fence") {
    const code = el("code", {});
    appendCode(code, rest.join("\n"));
    const label = first ? `Code, ${first}` : "Code";
    return el("pre", { tabindex: "0", role: "group", "aria-label": label }, code);
  }
  if (block.kind === "heading") {
    // The page has the levels one and two itself.
    const level = Math.min(block.level + 2, 6);
    return el(/** @type {"h3"} */ (`h${level}`), {}, inline(HEADING.exec(first)?.[2] ?? ""));
  }
  if (block.kind === "rule") return el("hr");
  if (block.kind === "list") return renderList(block.lines);
  if (block.kind === "quote") {
    return el("blockquote", {}, inline(block.lines.map((l) => l.replace(QUOTE, "")).join("\n")));
  }
  return el("p", {}, inline(block.lines.join("\n")));
}

/** @param {string[]} lines @returns {HTMLElement} */
function renderList(lines) {
  /** @type {{indent: number, node: HTMLElement}[]} */
  const stack = [];
  /** @type {{text: string, node: HTMLElement}[]} */
  const items = [];
  let root = /** @type {HTMLElement | null} */ (null);
  for (const line of lines) {
    const match = ITEM.exec(line);
    const last = items.at(-1);
    if (!match) {
      if (last) last.text += `\n${line.trim()}`;
      continue;
    }
    const indent = match[1].length;
    while (stack.length > 1 && indent < (stack.at(-1)?.indent ?? 0)) stack.pop();
    const open = stack.at(-1);
    if (!open || (indent > open.indent + 1 && stack.length < 6)) {
      const number = Number.parseInt(match[2], 10);
      const node = Number.isNaN(number) ? el("ul") : el("ol", { start: String(number) });
      if (open && last) last.node.append(node);
      else root = node;
      stack.push({ indent, node });
    }
    const item = el("li");
    // The text comes first, and a nested list after it.
    items.push({ text: match[3], node: item });
    stack.at(-1)?.node.append(item);
  }
  for (const item of items) item.node.prepend(...inline(item.text));
  return root ?? el("ul");
}

/**
 * Delimiters and their elements; the longer ones first.
 * @type {[string, "strong" | "em" | "del"][]}
 */
const EMPHASIS = [["**", "strong"], ["__", "strong"], ["~~", "del"], ["*", "em"], ["_", "em"]];
/** The longest emphasis, link label and address that are recognized. */
const LONGEST = 2000;

/**
 * The nodes of a line of text: code, emphasis, links, and text.
 * @param {string} text @param {number} [depth] @returns {Node[]}
 */
function inline(text, depth = 0) {
  /** @type {Node[]} */
  const nodes = [];
  /** @type {Set<string>} delimiters that do not occur any more */
  const gone = new Set();
  let plain = 0;
  let at = 0;
  // Jumps from one character that may begin something to the next.
  const special = /[`*_~[\\!h]/g;
  while (depth < 5) {
    special.lastIndex = at;
    const found = special.exec(text);
    if (!found) break;
    at = found.index;
    const [node, end] = piece(text, at, gone, depth);
    if (end === 0) {
      at += 1;
      continue;
    }
    if (at > plain) nodes.push(document.createTextNode(text.slice(plain, at)));
    nodes.push(node);
    plain = at = end;
  }
  if (plain < text.length) nodes.push(document.createTextNode(text.slice(plain)));
  return nodes;
}

const NOTHING = document.createTextNode("");

/**
 * The element that begins at a character, and its end; 0 if none begins there.
 * @param {string} text @param {number} at @param {Set<string>} gone @param {number} depth
 * @returns {[Node, number]}
 */
function piece(text, at, gone, depth) {
  const char = text[at];
  if (char === "\\" && /[\\`*_~[\]()#!-]/.test(text[at + 1] ?? "")) {
    return [document.createTextNode(text[at + 1]), at + 2];
  }
  if (char === "`") return codeSpan(text, at, gone);
  if (char === "[" || (char === "!" && text[at + 1] === "[")) return link(text, at, depth);
  if (char === "h") return address(text, at);
  return emphasis(text, at, gone, depth);
}

/** @param {string} text @param {number} at @param {Set<string>} gone @returns {[Node, number]} */
function codeSpan(text, at, gone) {
  const ticks = /`{1,20}/y;
  ticks.lastIndex = at;
  const mark = ticks.exec(text)?.[0] ?? "`";
  const from = at + mark.length;
  const end = search(text, mark, from, gone);
  if (end < 0) return [NOTHING, 0];
  return [el("code", {}, text.slice(from, end).replace(/^ (.+) $/, "$1")), end + mark.length];
}

/** @param {string} text @param {string} mark @param {number} from @param {Set<string>} gone */
function search(text, mark, from, gone) {
  if (gone.has(mark)) return -1;
  const end = text.slice(from, from + LONGEST).indexOf(mark);
  if (end < 0 && from + LONGEST >= text.length) gone.add(mark);
  return end < 0 ? -1 : from + end;
}

/**
 * @param {string} text @param {number} at @param {Set<string>} gone @param {number} depth
 * @returns {[Node, number]}
 */
function emphasis(text, at, gone, depth) {
  const known = EMPHASIS.find(([mark]) => text.startsWith(mark, at));
  if (!known) return [NOTHING, 0];
  const [mark, tag] = known;
  const from = at + mark.length;
  // `snake_case` and `2 * 3` are no emphasis.
  const inWord = mark[0] === "_" && /\w/.test(text[at - 1] ?? "");
  if (inWord || /\s/.test(text[from] ?? " ")) return [NOTHING, 0];
  const end = search(text, mark, from, gone);
  if (end <= from || /\s/.test(text[end - 1])) return [NOTHING, 0];
  if (mark[0] === "_" && /\w/.test(text[end + mark.length] ?? "")) return [NOTHING, 0];
  return [el(tag, {}, inline(text.slice(from, end), depth + 1)), end + mark.length];
}

/** `[label](address "title")`, or the same of an image, which is shown as a link. */
const LINK = /!?\[([^[\]\n]{0,500})\]\( {0,9}([^\s()<>]{1,2000})(?: +"[^"\n]{0,200}")? {0,9}\)/y;

/** @param {string} text @param {number} at @param {number} depth @returns {[Node, number]} */
function link(text, at, depth) {
  LINK.lastIndex = at;
  const match = LINK.exec(text);
  const url = match && webAddress(match[2]);
  if (!match || !url) return [NOTHING, 0];
  const label = match[1].trim() || url.href;
  return [anchor(url, inline(label, Math.max(depth, 4)), label), at + match[0].length];
}

/** @param {string} text @param {number} at @returns {[Node, number]} */
function address(text, at) {
  const form = /https?:\/\/[^\s<>"'`\])}]{1,2000}/y;
  form.lastIndex = at;
  const found = /\w/.test(text[at - 1] ?? "") ? null : form.exec(text);
  const written = found?.[0].replace(/[.,;:!?*_]+$/, "") ?? "";
  const url = webAddress(written);
  return url ? [anchor(url, [written], written), at + written.length] : [NOTHING, 0];
}

/** @param {string} text @returns {URL | null} */
function webAddress(text) {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url && /^https?:$/.test(url.protocol) ? url : null;
}

/**
 * A link that shows its host, because its label may claim another one.
 * @param {URL} url @param {(Node | string)[]} label @param {string} text @returns {Node}
 */
function anchor(url, label, text) {
  const attributes = { href: url.href, target: "_blank", rel: "noopener noreferrer" };
  const link = el("a", attributes, label);
  if (webAddress(text)?.host === url.host) return link;
  return el("span", {}, link, el("span", { class: "host" }, ` (${url.host})`));
}
