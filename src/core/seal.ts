// Seals JSON objects into opaque tokens that a caller stores for us. The cipher is AES-256-GCM: without the key, a
// token can be neither read nor changed. To bind a token to a call, put the call's principal, its method and a digest
// of its arguments into the object, and compare them after opening. node:crypto is loaded on first use, since most
// programs never seal.

import type * as Crypto from "node:crypto";
import type { Request } from "./handler.ts";

const FORMAT = 1;
const IV_BYTES = 12;
const TAG_BYTES = 16;

let loaded: typeof Crypto | undefined;
function crypto(): typeof Crypto {
  return (loaded ??= loadCrypto());
}

function loadCrypto(): typeof Crypto {
  const { process }: { process?: Pick<NodeJS.Process, "getBuiltinModule"> } = globalThis;
  const module = process?.getBuiltinModule("node:crypto");
  if (module !== undefined) return module;
  throw new Error("Sealed state needs node:crypto; in Workers, set the compatibility flag nodejs_compat");
}

export class Seal {
  readonly #secret: Uint8Array | string | undefined;
  #derived: Uint8Array | undefined;
  #id: string | undefined;

  /** Without a key, each seal has its own random one. All processes that use the same key must share the clock. */
  constructor(key?: Uint8Array | string) {
    if (key?.length === 0) throw new TypeError("A seal key must not be empty");
    this.#secret = typeof key === "object" ? Uint8Array.from(key) : key;
  }

  /** A short public fingerprint of the key, which reveals nothing about it. */
  get id(): string {
    return (this.#id ??= Buffer.from(derive(this.#key(), "fingerprint", 6)).toString("base64url"));
  }

  #key(): Uint8Array {
    return (this.#derived ??= derive(this.#secret ?? crypto().randomBytes(32), "key", 32));
  }

  seal(payload: object, ttlMs: number): string {
    const iv = crypto().randomBytes(IV_BYTES);
    const cipher = crypto().createCipheriv("aes-256-gcm", this.#key(), iv);
    const plain = JSON.stringify({ until: Date.now() + ttlMs, payload });
    const parts = [Buffer.of(FORMAT), iv, cipher.update(plain, "utf8"), cipher.final(), cipher.getAuthTag()];
    return Buffer.concat(parts).toString("base64url");
  }

  /** Undefined if the token is forged, altered, expired, or sealed with another key. */
  open(token: string): object | undefined {
    const bytes = Buffer.from(token, "base64url");
    // Node's decoder ignores invalid characters and unused bits. Accept only the exact encoding that we wrote.
    if (bytes.toString("base64url") !== token) return undefined;
    if (bytes.length <= 1 + IV_BYTES + TAG_BYTES || bytes[0] !== FORMAT) return undefined;
    const iv = bytes.subarray(1, 1 + IV_BYTES);
    const decipher = crypto().createDecipheriv("aes-256-gcm", this.#key(), iv, { authTagLength: TAG_BYTES });
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    let plain: string;
    try {
      plain = decipher.update(bytes.subarray(1 + IV_BYTES, -TAG_BYTES), undefined, "utf8") + decipher.final("utf8");
    } catch {
      return undefined;
    }
    const { until, payload } = JSON.parse(plain) as { until: number; payload: object };
    return Date.now() < until ? payload : undefined;
  }
}

function derive(secret: Uint8Array | string, purpose: string, length: number): Uint8Array {
  return new Uint8Array(crypto().hkdfSync("sha256", secret, "catenary", `seal ${purpose}`, length));
}

/** A short hash of a JSON value that does not depend on the order of keys. */
export function digest(value: unknown): string {
  return crypto().createHash("sha256").update(canonical(value)).digest("base64url");
}

/** Of the method and the params, without those in which a retry differs from the first call. */
export function callDigest({ method, params }: Request): string {
  const { _meta, inputResponses: _answers, requestState: _state, ...rest } = params;
  return digest([method, rest]);
}

/** A JSON value as a string that does not depend on the order of keys. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  fields.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${canonical(field)}`).join(",")}}`;
}
