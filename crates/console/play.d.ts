// The types of the screen Play. For the type check alone: browsers never load it.

type Protocol = "responses" | "chat" | "messages" | "images";
/** Something that a server or a model sent: every field may be missing or of the wrong type. */
type Json = Record<string, any>;

/** One piece of an answer, in the order of arrival. */
interface Part {
  kind: "text" | "reasoning" | "refusal" | "call" | "image" | "other";
  /** The arguments of a call, and the base64 of an image. */
  text: string;
  /** The function of a call, the type of another item, the caption of an image. */
  name: string;
  /** The id of a call. */
  id: string;
  done: boolean;
  /** Milliseconds since the request was sent. */
  at: number;
  /** A block of the Messages API that must be sent back unchanged. */
  native: Json | null;
}

/** Numbers of tokens. */
interface Usage {
  input: number;
  cached: number;
  output: number;
  reasoning: number;
}

/** The reading of one event. */
interface Reading {
  type: string;
  summary: string;
  /** The state of the grammar after the event. */
  state: string;
  /** The number of open levels: response, item, part. */
  depth: number;
  /** A violation of the grammar, or "". */
  offence: string;
  /** True for an event that the grammar does not define. */
  unknown: boolean;
}

/** The item of the Responses API that is open. */
interface OpenItem {
  id: string;
  type: string;
  /** The call id and the name of the function. */
  call: string;
  parts: number;
}

/** A line of the event tape. */
interface Row {
  /** Milliseconds since the request was sent. */
  at: number;
  reading: Reading;
  /** Bytes. */
  size: number;
  raw: string;
  /** False for the head and the end of the response. */
  isEvent: boolean;
}

/** A file; `url` is a data URL. */
interface Attachment {
  name: string;
  mime: string;
  url: string;
}

interface Call {
  id: string;
  name: string;
  arguments: string;
}

/** One turn of the conversation. */
interface Turn {
  role: "user" | "assistant" | "tools";
  text: string;
  files: Attachment[];
  /** The calls of the assistant. */
  calls: Call[];
  /** Blocks that the Messages API wants back unchanged. */
  native: Json[];
  /** The results of the tools. */
  results: { id: string; output: string }[];
}

/**
 * One turn on the page. A turn that does not count is not part of the next request: what failed,
 * what was sent as JSON, and images.
 */
interface Entry {
  turn: Turn;
  node: HTMLElement;
  counts: boolean;
}

/** The values of the form, as the user wrote them. */
interface Form {
  protocol: Protocol;
  model: string;
  instructions: string;
  maxTokens: string;
  temperature: string;
  effort: string;
  stream: boolean;
  tools: string;
  edits: boolean;
  n: string;
  size: string;
  quality: string;
  format: string;
  previews: string;
  seed: string;
}

/** A request that is ready to be sent, except for the content of its files. */
interface Draft {
  path: string;
  body: Json;
  files: Attachment[];
}

/** The facts about an answer that has ended. */
interface Facts {
  end: "complete" | "stopped" | "failed";
  problem: string;
  /** -1 if there was no event. */
  firstMs: number;
  totalMs: number;
  requestId: string;
  dropped: string;
}

interface PartView {
  node: HTMLElement;
  update: (part: Part) => void;
}

type UseImage = (name: string, url: string) => void;

/** How a language writes values. */
interface Style {
  key: (name: string) => string;
  plain: (value: unknown) => string;
  /** Writes the content of an attachment. */
  file: (file: Attachment, asBase64: boolean) => string;
  files: Attachment[];
}

type Language = "curl" | "python" | "node";
/** A tab of the composer. */
type View = "message" | "json" | Language;

/** The actions of the composer's owner. */
interface Owner {
  send: () => void;
  stop: () => void;
  restart: () => void;
  /** The request of the form. */
  draft: () => Promise<Draft>;
  protocol: () => Protocol;
  /** The path of the chosen protocol. */
  path: () => string;
  /** The public address of the gateway. */
  address: () => string;
  attached: () => void;
}

/** A block of Markdown. */
interface Block {
  kind: "fence" | "heading" | "rule" | "list" | "quote" | "text";
  lines: string[];
  /** The level of a heading. */
  level: number;
  /** The offset after the block; the last block may still grow. */
  end: number;
  /** Whether the end of a code block has come. */
  closed: boolean;
}

/** A line of the brush, or a rectangle. All numbers are pixels of the image. */
type Mark =
  | { kind: "line"; width: number; points: [number, number][] }
  | { kind: "box"; x: number; y: number; width: number; height: number };
