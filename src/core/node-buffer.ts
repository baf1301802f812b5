// The part of Node's Buffer that the client and the fetch server use, for bundles that run in browsers and Workers. The
// field `browser` of package.json puts this file in the place of node:buffer; in Node itself it is never loaded.

type Encoding = "utf8" | "latin1" | "base64" | "base64url" | "hex";

const ENCODER = new TextEncoder();
// A byte order mark is kept, as Node does.
const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });
/** How many bytes become arguments of one call. */
const MAX_ARGUMENTS = 8_192;

/** Without the static methods of Uint8Array, since ours have other parameters. */
const Bytes: new (content: number | ArrayBufferLike, at?: number, length?: number) => Uint8Array = Uint8Array;

export class Buffer extends Bytes {
  static from(value: string | ArrayLike<number> | ArrayBufferLike, at?: Encoding | number, length?: number): Buffer {
    if (typeof value === "string") return fromString(value, typeof at === "string" ? at : undefined);
    if (!("length" in value)) return new Buffer(value, typeof at === "number" ? at : undefined, length);
    const copy = new Buffer(value.length);
    copy.set(value);
    return copy;
  }

  static alloc(length: number): Buffer {
    return new Buffer(length);
  }

  static allocUnsafe(length: number): Buffer {
    return new Buffer(length);
  }

  static isBuffer(value: unknown): value is Buffer {
    return value instanceof Buffer;
  }

  static byteLength(text: string): number {
    return ENCODER.encode(text).length;
  }

  override toString(encoding: Encoding = "utf8", start = 0, end: number = this.length): string {
    const bytes = super.subarray(start, end);
    switch (encoding) {
      case "utf8":
        // Browsers do not decode memory that can be resized.
        return DECODER.decode("resizable" in bytes.buffer && bytes.buffer.resizable === true ? bytes.slice() : bytes);
      case "latin1":
        return toLatin1(bytes);
      case "base64":
        return btoa(toLatin1(bytes));
      case "base64url":
        return btoa(toLatin1(bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
      case "hex":
        return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    }
  }

  write(text: string, at = 0): number {
    const bytes = ENCODER.encode(text).subarray(0, this.length - at);
    this.set(bytes, at);
    return bytes.length;
  }
}

export function isAscii(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte < 0x80);
}

export function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

function toLatin1(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += MAX_ARGUMENTS) {
    text += String.fromCharCode(...bytes.subarray(at, at + MAX_ARGUMENTS));
  }
  return text;
}

function fromString(text: string, encoding: Encoding = "utf8"): Buffer {
  if (encoding === "utf8") return Buffer.from(ENCODER.encode(text).buffer);
  if (encoding === "latin1") return Buffer.from(Array.from({ length: text.length }, (_, at) => text.charCodeAt(at)));
  if (encoding === "hex") {
    return Buffer.from((text.match(/[0-9a-f]{2}/gi) ?? []).map((pair) => Number.parseInt(pair, 16)));
  }
  // Like Node, accepts both alphabets and ignores what is not valid. Callers compare with the canonical encoding.
  const digits = text
    .replace(/=.*$/s, "")
    .replaceAll("-", "+")
    .replaceAll("_", "/")
    .replace(/[^a-z0-9+/]/gi, "");
  return fromString(atob(digits.length % 4 === 1 ? digits.slice(0, -1) : digits), "latin1");
}
