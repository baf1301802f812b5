// Values that can be looked into by a handle. A session must not keep what nothing else uses: small values of known size
// are kept within a budget of bytes, the oldest dropped first. All others can be looked into as long as something else
// holds them, such as a variable, or `_` until the next evaluation.

import { types } from "node:util";

/** The most handles that are known; the oldest is forgotten. */
const MAX_HANDLES = 200;
/** What all values that only handles keep may take. */
const MAX_BYTES = 4_000_000;
/** Values with more parts are too large. */
const MAX_PARTS = 20_000;
/** About what an object takes, and each of its properties or elements. */
const OBJECT_BYTES = 64;
const PART_BYTES = 16;

// Saved, because the user's code may declare or replace these names.
const NativeMap = Map;
const NativeSet = Set;
const NativeWeakRef = WeakRef;
const { isArray } = Array;
const { apply, ownKeys } = Reflect;
const { getOwnPropertyDescriptor, getPrototypeOf } = Object;
/** The prototypes of values that hold nothing but their parts. */
const PLAIN = new NativeSet<unknown>([null, Object.prototype, Array.prototype, Map.prototype, Set.prototype]);
// Unbound on purpose: they are applied to values of the user.
// oxlint-disable-next-line typescript/unbound-method
const { forEach: forEachEntry } = Map.prototype;
// oxlint-disable-next-line typescript/unbound-method
const { forEach: forEachValue } = Set.prototype;
// oxlint-disable-next-line typescript/unbound-method
const mapSize = getOwnPropertyDescriptor(Map.prototype, "size")?.get as () => number;
// oxlint-disable-next-line typescript/unbound-method
const setSize = getOwnPropertyDescriptor(Set.prototype, "size")?.get as () => number;

interface Kept {
  /** The value itself, while it is within the budget. */
  value?: unknown;
  readonly bytes: number;
  readonly ref: WeakRef<object> | undefined;
}

export class HandleTable {
  readonly #kept = new NativeMap<number, Kept>();
  #bytes = 0;
  #last = 0;
  #isOff = false;

  /** From now on nothing gets a handle, since the caller has no tool that takes one. */
  turnOff(): void {
    this.#isOff = true;
    this.#kept.clear();
  }

  /** Returns the handle of the value; undefined if there are none. */
  add(value: unknown): number | undefined {
    if (this.#isOff) return undefined;
    this.#last += 1;
    const ref = isReference(value) ? new NativeWeakRef(value) : undefined;
    const bytes = sizeOf(value);
    const isKept = ref === undefined || bytes <= MAX_BYTES;
    this.#kept.set(this.#last, isKept ? { value, bytes, ref } : { bytes: 0, ref });
    if (isKept) this.#bytes += bytes;
    for (const [handle, kept] of this.#kept) {
      const isForgotten = this.#last - handle >= MAX_HANDLES;
      // The newest stays in any case: a long string.
      if (!isForgotten && (this.#bytes <= MAX_BYTES || handle === this.#last)) break;
      if ("value" in kept) this.#bytes -= kept.bytes;
      delete kept.value;
      if (isForgotten) this.#kept.delete(handle);
    }
    return this.#last;
  }

  /** The value of a handle, or why there is none. */
  get(handle: number): { readonly value: unknown } | { readonly problem: string } {
    const kept = this.#kept.get(handle);
    if (kept !== undefined && "value" in kept) return { value: kept.value };
    const value = kept?.ref?.deref();
    if (value !== undefined) return { value };
    const isKnown = handle >= 1 && handle <= this.#last;
    const newest = this.#last === 0 ? "this session has given none yet" : `the newest is ${this.#last}`;
    if (!isKnown) return { problem: `There is no handle ${handle}: ${newest}.` };
    const rule = `the last ${MAX_HANDLES} are kept if they are small, or as long as a variable holds them`;
    return { problem: `The value of handle ${handle} was dropped: ${rule}. Evaluate the code again.` };
  }
}

function isReference(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

/** About how many bytes a value takes; Infinity if that cannot be found out quickly. Calls no code of the user. */
function sizeOf(root: unknown): number {
  const seen = new NativeSet<unknown>();
  const open: object[] = [];
  let parts = 0;
  let bytes = 0;
  const add = (part: unknown): void => {
    bytes += PART_BYTES;
    if (typeof part === "string") bytes += 2 * part.length;
    else if (isReference(part)) open.push(part);
  };
  add(root);
  for (let value = open.pop(); value !== undefined && bytes <= MAX_BYTES; value = open.pop()) {
    if (seen.has(value)) continue;
    seen.add(value);
    // What a function, a promise or an object of a class holds is not known.
    if (typeof value === "function" || types.isProxy(value) || !PLAIN.has(getPrototypeOf(value))) return Infinity;
    const isMap = types.isMap(value);
    const isSet = types.isSet(value);
    parts += isArray(value) ? value.length : isMap ? apply(mapSize, value, []) : isSet ? apply(setSize, value, []) : 1;
    if (parts > MAX_PARTS) return Infinity;
    const keys = ownKeys(value);
    parts += keys.length;
    if (parts > 2 * MAX_PARTS) return Infinity;
    bytes += OBJECT_BYTES;
    if (isMap) apply(forEachEntry, value, [(item: unknown, key: unknown) => (add(item), add(key))]);
    if (isSet) apply(forEachValue, value, [(item: unknown) => add(item)]);
    for (const key of keys) {
      const known = getOwnPropertyDescriptor(value, key);
      // What a getter holds is not known either.
      if (known !== undefined && !("value" in known)) return Infinity;
      add(known?.value);
    }
  }
  return bytes;
}
