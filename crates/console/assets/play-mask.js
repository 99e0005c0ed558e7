// The mask of an image edit: painted with the pointer, or a rectangle by four numbers.
//
// The mask is a list of marks. It becomes a picture only when the request is sent: opaque where the
// image must stay, transparent where it may change, as the Images API wants it.

import { announce, el, replace } from "./dom.js";

/** The longest side of the canvas on the page; the mask itself has the size of the image. */
const SHOWN = 768;

export class MaskEditor {
  constructor() {
    /** @type {Mark[]} */
    this.marks = [];
    this.image = el("img", { alt: "The image to edit" });
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.brush = el("input", {
      type: "range", min: "4", max: "200", value: "48", id: "mask-brush",
      oninput: () => this.cursor(),
    });
    this.dot = el("span", { class: "mask-dot" });
    this.status = el("p", { class: "soft mask-status" });
    this.stage = el("div", { class: "mask-stage" }, this.image, this.canvas, this.dot);
    this.node = el("fieldset", { class: "mask", hidden: true }, el("legend", null, "Mask"),
      el("p", { class: "soft" }, "Paint what may change, or add a rectangle in pixels. Without a ",
        "mask the whole image may change."),
      this.stage, this.tools(), this.boxFields(), this.status);
    this.image.addEventListener("load", () => this.fit());
    this.listen();
  }

  tools() {
    return el("div", { class: "mask-tools" },
      el("label", { for: "mask-brush" }, "Brush"), this.brush,
      el("button", { type: "button", onclick: () => this.undo() }, "Undo"),
      el("button", { type: "button", onclick: () => this.clear() }, "Clear"));
  }

  boxFields() {
    const field = (/** @type {string} */ name) => {
      const input = el("input", { type: "number", min: "0", step: "1", inputmode: "numeric" });
      return { input, label: el("label", null, name, input) };
    };
    const fields = ["Left", "Top", "Width", "Height"].map(field);
    const add = () => {
      const [x, y, width, height] = fields.map(({ input }) => input.valueAsNumber);
      if (!(width > 0 && height > 0 && x >= 0 && y >= 0)) {
        replace(this.status, "A rectangle needs four numbers; width and height must be above 0.");
        return;
      }
      this.mark({ kind: "box", x, y, width, height });
    };
    return el("div", { class: "mask-box" }, fields.map(({ label }) => label),
      el("button", { type: "button", "aria-label": "Add the rectangle", onclick: add }, "Add"));
  }

  /** Shows the editor for an image, or hides it. @param {Attachment | null} file */
  show(file) {
    this.node.hidden = file === null;
    if (file && this.image.getAttribute("src") !== file.url) {
      this.marks = [];
      this.image.src = file.url;
    }
  }

  /** Canvas pixels for each image pixel. */
  scale() {
    return this.canvas.width / (this.image.naturalWidth || 1);
  }

  fit() {
    const { naturalWidth: width, naturalHeight: height } = this.image;
    const scale = Math.min(1, SHOWN / Math.max(width, height));
    this.canvas.width = Math.max(1, Math.round(width * scale));
    this.canvas.height = Math.max(1, Math.round(height * scale));
    this.draw();
  }

  listen() {
    const { canvas } = this;
    /** @type {Mark | null} */
    let open = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      const width = Number(this.brush.value) / this.shownScale();
      open = { kind: "line", width, points: [this.place(event)] };
      this.mark(open);
    });
    canvas.addEventListener("pointermove", (event) => {
      this.cursor(event);
      if (open?.kind !== "line") return;
      // A fast pointer moves several times in a frame.
      const moves = event.getCoalescedEvents?.() ?? [];
      for (const move of moves.length > 0 ? moves : [event]) open.points.push(this.place(move));
      this.draw();
    });
    const end = () => {
      open = null;
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("pointerleave", () => this.dot.classList.remove("shown"));
  }

  /** Page pixels for each image pixel. */
  shownScale() {
    return this.canvas.getBoundingClientRect().width / (this.image.naturalWidth || 1) || 1;
  }

  /** @param {PointerEvent} event @returns {[number, number]} */
  place(event) {
    const box = this.canvas.getBoundingClientRect();
    const scale = this.shownScale();
    return [(event.clientX - box.left) / scale, (event.clientY - box.top) / scale];
  }

  /** Shows the size of the brush at the pointer. @param {PointerEvent} [event] */
  cursor(event) {
    const size = Number(this.brush.value);
    this.dot.style.width = this.dot.style.height = `${size}px`;
    if (!event) return;
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left - size / 2, event.clientY - box.top - size / 2];
    this.dot.style.transform = `translate(${x}px, ${y}px)`;
    this.dot.classList.add("shown");
  }

  /** @param {Mark} mark */
  mark(mark) {
    this.marks.push(mark);
    this.draw();
    if (mark.kind === "box") announce(`${this.status.textContent}`);
  }

  undo() {
    this.marks.pop();
    this.draw();
  }

  clear() {
    this.marks = [];
    this.draw();
  }

  draw() {
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    paint(context, this.marks, this.scale(), getComputedStyle(this.canvas).color);
    const { naturalWidth, naturalHeight } = this.image;
    const count = this.marks.length;
    replace(this.status, `Image of ${naturalWidth} × ${naturalHeight} pixels, `,
      count === 0 ? "no mask" : `${count} ${count === 1 ? "mark" : "marks"} in the mask`);
  }

  /** The mask as a PNG of the size of the image; null if nothing is marked. */
  async file() {
    const { naturalWidth, naturalHeight } = this.image;
    if (this.node.hidden || this.marks.length === 0 || naturalWidth === 0) return null;
    const canvas = el("canvas", { width: naturalWidth, height: naturalHeight });
    const context = canvas.getContext("2d");
    if (!context) return null;
    context.fillStyle = "#000";
    context.fillRect(0, 0, naturalWidth, naturalHeight);
    context.globalCompositeOperation = "destination-out";
    paint(context, this.marks, 1, "#000");
    /** @type {Blob | null} */
    const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    return blob && readFile(blob, "mask.png");
  }
}

/**
 * @param {CanvasRenderingContext2D} context @param {Mark[]} marks @param {number} scale
 * @param {string} colour
 */
function paint(context, marks, scale, colour) {
  context.strokeStyle = context.fillStyle = colour;
  context.lineCap = context.lineJoin = "round";
  for (const mark of marks) {
    if (mark.kind === "box") {
      const { x, y, width, height } = mark;
      context.fillRect(x * scale, y * scale, width * scale, height * scale);
      continue;
    }
    context.lineWidth = mark.width * scale;
    context.beginPath();
    for (const [x, y] of mark.points) context.lineTo(x * scale, y * scale);
    // A single point is drawn too.
    const [[x, y]] = mark.points;
    if (mark.points.length === 1) context.lineTo(x * scale, y * scale);
    context.stroke();
  }
}

/** The formats that the protocols take. */
export const IMAGE_TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif"];

/**
 * A file as a data URL.
 * @param {Blob} blob @param {string} name @returns {Promise<Attachment>}
 */
export function readFile(blob, name) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve({ name, mime: blob.type, url: String(reader.result) });
    reader.onerror = () => reject(reader.error ?? new Error("The file cannot be read."));
    reader.readAsDataURL(blob);
  });
}
