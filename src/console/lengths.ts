// How long values are as JSON, and how much memory they hold, without writing them: about, for what is shown, and exactly,
// for what is kept. All of it takes a bounded time and never throws, whatever a value of user code is.

/** More values in one are not kept: it would take long to count them, to hide secrets in them and to send them. */
const MAX_HELD_VALUES = 10_000;
/** Objects with about so many fields. Even to look at the first ones takes long, since V8 lists the names of all. */
const wide = new WeakSet<object>();
/** As JSON, at least. */
const WIDE_LENGTH = 10 * MAX_HELD_VALUES;

/** So many values are looked at; what follows them is taken to be like them. */
const MAX_VALUES = 100;

/** About how long a value is as JSON. Takes a bounded time and never throws, whatever the value is. */
export function estimateLength(value: unknown): number {
  if (typeof value === "string") return value.length + 2;
  try {
    return lengthOf(value, { values: MAX_VALUES });
  } catch {
    // A getter or a Proxy of user code.
    return 2;
  }
}

function lengthOf(value: unknown, left: { values: number }): number {
  left.values -= 1;
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return 5;
  if (wide.has(value)) return WIDE_LENGTH;
  let length = 2;
  let seen = 0;
  if (Array.isArray(value)) {
    for (const item of value) {
      if (left.values <= 0) break;
      length += lengthOf(item, left) + 1;
      seen += 1;
    }
    return seen === 0 ? length + value.length : Math.round((length * value.length) / seen);
  }
  for (const key in value) {
    length += key.length + 4;
    // Names without their values say too little to go on from them.
    if (left.values > 0) length += lengthOf((value as Record<string, unknown>)[key], left);
    else if ((seen += 1) > MAX_VALUES) break;
  }
  return length;
}

/** About how much memory a value takes beside its characters. */
const VALUE_BYTES = 32;

/** How long a value is as JSON, or a little less or more. Undefined if it has too many values in it to be kept. */
export function countedLength(value: unknown): number | undefined {
  const count = new Count();
  return count.isOf(value) ? count.length : undefined;
}

/** About how many bytes of memory a value holds, at least the length of its JSON. Undefined as above. */
export function heldBytes(value: unknown): number | undefined {
  const count = new Count();
  return count.isOf(value) ? count.length + VALUE_BYTES * (MAX_HELD_VALUES - count.left) : undefined;
}

class Count {
  length = 0;
  left: number = MAX_HELD_VALUES;

  /** Whether the value has no more values than may be counted. */
  isOf(value: unknown): boolean {
    try {
      this.#add(value);
    } catch {
      // What has a getter that throws, or is too deep, cannot be written either.
      return true;
    }
    return this.left >= 0;
  }

  #add(value: unknown): void {
    this.left -= 1;
    if (typeof value === "string") this.length += value.length + 2;
    else if (typeof value !== "object" || value === null) this.length += 5;
    else if (Array.isArray(value)) {
      this.length += 2 + value.length;
      for (let at = 0; at < value.length && this.left >= 0; at += 1) this.#add(value[at]);
    } else if (wide.has(value)) this.left = -1;
    else this.#addFields(value);
  }

  #addFields(value: object): void {
    this.length += 2;
    let fields = 0;
    for (const key in value) {
      fields += 1;
      if (this.left < 0) {
        if (fields > MAX_HELD_VALUES / 2) wide.add(value);
        return;
      }
      this.length += key.length + 4;
      this.#add((value as Record<string, unknown>)[key]);
    }
  }
}
