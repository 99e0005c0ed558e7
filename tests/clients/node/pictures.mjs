// Pictures to send, written by hand, and a look at the heads of those that come back.

import assert from "node:assert/strict";
import { crc32, deflateSync } from "node:zlib";

export const SIZE = "96x64";

/** A PNG of SIZE with these red, green, blue and alpha values in its middle and beside it. */
function png(middle, beside) {
  const [width, height] = SIZE.split("x").map(Number);
  const isMiddle = (x, y) => x >= 24 && x < 72 && y >= 16 && y < 48;
  const row = (y) => [0, ...Array.from({ length: width }, (_, x) => (isMiddle(x, y) ? middle : beside)).flat()];
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  // Eight bits a channel, red, green, blue and alpha.
  head.set([8, 6], 8);
  const rows = Buffer.from(Array.from({ length: height }, (_, y) => row(y)).flat());
  return Buffer.concat([SIGNATURE, chunk("IHDR", head), chunk("IDAT", deflateSync(rows)), chunk("IEND")]);
}

function chunk(name, data = Buffer.alloc(0)) {
  const named = Buffer.concat([Buffer.from(name), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}

/** The encoding of a picture, and the size that a PNG has. */
export function seen(b64) {
  const file = Buffer.from(b64, "base64");
  assert.equal(file.toString("base64"), b64);
  if (file.subarray(0, 8).equals(SIGNATURE)) {
    return { encoding: "png", size: `${file.readUInt32BE(16)}x${file.readUInt32BE(20)}` };
  }
  if (file.readUInt16BE(0) === 0xffd8) return { encoding: "jpeg" };
  if (file.toString("latin1", 8, 12) === "WEBP") return { encoding: "webp" };
  return assert.fail("no picture");
}

const SIGNATURE = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");

export const RED = png([200, 30, 30, 255], [200, 30, 30, 255]);
export const BLUE = png([30, 30, 200, 255], [30, 30, 200, 255]);
/** Transparent in its middle, where the edit applies. */
export const MASK = png([0, 0, 0, 0], [0, 0, 0, 255]);
