// One pass over a message before JSON.parse: it checks the nesting depth and records the positions of tokens that must
// be sent back byte for byte. It is not a parser: for invalid JSON it may record nonsense, but then JSON.parse fails.
// It does not recurse, reads each character a bounded number of times, and allocates very little for most messages.

/**
 * One name on a path to a recorded token. `slot` is its index in `starts` and `ends`. Its descendants have the slots
 * `slot + 1` to `lastSlot`.
 */
interface Step {
  readonly name: string;
  readonly path: readonly string[];
  readonly parent: Step | undefined;
  readonly children: Step[];
  readonly slot: number;
  readonly exact: boolean;
  lastSlot: number;
  /** A key of this many characters or more, escapes included, cannot be the name of a child. */
  keyLengthBound: number;
}

/** The names to look for, and scratch space for one scan. Scans are synchronous, so they never overlap. */
export interface Paths {
  readonly root: Step;
  readonly steps: readonly Step[];
  readonly starts: Int32Array;
  readonly ends: Int32Array;
}

/** A token that JavaScript might write differently: `text.slice(start, end)`, at `path` in item `item` of a batch. */
export interface Token {
  readonly item: number;
  readonly path: readonly string[];
  readonly start: number;
  readonly end: number;
}

export interface Scan {
  readonly tooDeep: boolean;
  readonly batch: boolean;
  readonly tokens: readonly Token[] | undefined;
}

/** Facts about a message that cannot be parsed, because it is too deep or too long. */
interface Peeked {
  readonly id: string | undefined;
  readonly hasMethod: boolean;
  readonly isResponse: boolean;
}

const QUOTE = 34;
const COMMA = 44;
const MINUS = 45;
const BACKSLASH = 92;
const BRACE = 123; // with bit 32 set, `[` and `{` both have this code, and `]` and `}` both have this code plus 2

// Recorded so that `peek` can tell whether a message that is too deep to parse is a request or a response.
const MARKS = [["method"], ["result"], ["error"]];

/** Prepares the paths of the tokens to record exactly. The top-level id is always one of them. */
export function compilePaths(others: readonly (readonly string[])[]): Paths {
  const exact = [["id"], ...others];
  const isPrefixOf = (path: readonly string[], longer: readonly string[]): boolean =>
    path.every((name, at) => name === longer[at]);
  const steps: Step[] = [];
  const addStep = (name: string, path: readonly string[], parent: Step | undefined): Step => {
    const isExact = exact.some((one) => one.length === path.length && isPrefixOf(path, one));
    const step: Step = {
      name,
      path,
      parent,
      children: [],
      slot: steps.length,
      exact: isExact,
      lastSlot: 0,
      keyLengthBound: 0,
    };
    steps.push(step);
    const names = new Set<string>();
    for (const one of [...exact, ...MARKS]) {
      const next = one[path.length];
      if (next !== undefined && isPrefixOf(path, one)) names.add(next);
    }
    for (const next of names) {
      step.children.push(addStep(next, [...path, next], step));
      // An escaped character takes at most six characters.
      step.keyLengthBound = Math.max(step.keyLengthBound, 1 + 6 * next.length);
    }
    step.lastSlot = steps.length - 1;
    return step;
  };
  const root = addStep("", [], undefined);
  return { root, steps, starts: new Int32Array(steps.length), ends: new Int32Array(steps.length) };
}

/** Records tokens only in the first `maxItems` items of a batch, since a longer batch is refused. */
export function scan(text: string, paths: Paths, maxDepth: number, maxItems: number): Scan {
  const { root, starts, ends } = paths;
  let tokens: Token[] | undefined;
  let tooDeep = false;
  let depth = 0;
  let batch = false;
  let item = 0;
  let step: Step | undefined; // the object being read; values without recorded names are skipped as a whole
  let atKey = false;
  let pending: Step | undefined; // the step whose key was just read and whose value comes next

  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === QUOTE) {
      const close = stringEnd(text, i);
      if (atKey && step !== undefined) {
        atKey = false;
        pending = stepFor(step, text, i, close);
        if (pending !== undefined) {
          // Of duplicate keys JSON.parse keeps only the last, so what an earlier one recorded is dropped.
          forget(paths, pending);
          starts[pending.slot] = i;
        }
      } else if (pending?.exact === true) {
        starts[pending.slot] = i;
        ends[pending.slot] = close + 1;
        pending = undefined;
      }
      i = close;
    } else if (c === COMMA) {
      pending = undefined;
      if (step !== undefined) atKey = true;
      else item++;
    } else if ((c | 32) === BRACE) {
      const within: Step | undefined =
        c === BRACE ? (step === undefined && (depth === 0 || item < maxItems) ? root : pending) : undefined;
      if (within !== undefined && within.children.length > 0) {
        if (within === root) forget(paths, root);
        step = within;
        atKey = true;
        depth++;
      } else if (c !== BRACE && depth === 0) {
        batch = true;
        depth++;
      } else {
        const close = skip(text, i, maxDepth - depth);
        if (close < 0) tooDeep = true;
        i = close < 0 ? ~close : close;
      }
      if (depth > maxDepth) tooDeep = true;
      pending = undefined;
    } else if ((c | 32) === BRACE + 2) {
      if (step === root) tokens = collect(text, paths, item, tokens);
      step = step?.parent;
      atKey = false;
      pending = undefined;
      depth--;
    } else if (pending?.exact === true && (c === MINUS || (c >= 48 && c <= 57))) {
      const end = numberEnd(text, i);
      starts[pending.slot] = i;
      ends[pending.slot] = end;
      pending = undefined;
      i = end - 1;
    }
  }
  return { tooDeep, batch, tokens };
}

/** Returns the index of the closing bracket, or the length of the text; complemented (`~`) if the value is too deep. */
function skip(text: string, open: number, maxDepth: number): number {
  let depth = 0;
  let deepest = 0;
  let i = open;
  for (; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === QUOTE) i = stringEnd(text, i);
    else if ((c | 32) === BRACE) {
      depth++;
      if (depth > deepest) deepest = depth;
    } else if ((c | 32) === BRACE + 2) {
      depth--;
      if (depth === 0) break;
    }
  }
  return deepest > maxDepth ? ~i : i;
}

function forget(paths: Paths, step: Step): void {
  for (let slot = step.slot; slot <= step.lastSlot; slot++) {
    paths.starts[slot] = -1;
    paths.ends[slot] = -1;
  }
}

/** Valid only right after a scan of the same text, which must not be a batch. */
export function peek(text: string, paths: Paths): Peeked {
  const seen = (name: string): Step | undefined => {
    const step = paths.root.children.find((one) => one.name === name);
    return step !== undefined && (paths.starts[step.slot] ?? -1) >= 0 ? step : undefined;
  };
  const id = seen("id");
  const end = id === undefined ? -1 : (paths.ends[id.slot] ?? -1);
  return {
    // A token at the very end of the text may be cut off.
    id: id === undefined || end < 0 || end >= text.length ? undefined : text.slice(paths.starts[id.slot], end),
    hasMethod: seen("method") !== undefined,
    isResponse: seen("result") !== undefined || seen("error") !== undefined,
  };
}

/** The index of the closing quote, or the length of the text. Each backslash is read twice at most. */
function stringEnd(text: string, open: number): number {
  for (let close = text.indexOf('"', open + 1); close !== -1; close = text.indexOf('"', close + 1)) {
    let before = close - 1;
    while (text.charCodeAt(before) === BACKSLASH) before--;
    if ((close - before) % 2 === 1) return close;
  }
  return text.length;
}

function numberEnd(text: string, start: number): number {
  let end = start + 1;
  for (; end < text.length; end++) {
    const c = text.charCodeAt(end);
    const inside = (c >= 48 && c <= 57) || c === 43 || c === MINUS || c === 46 || (c | 32) === 101;
    if (!inside) break;
  }
  return end;
}

function stepFor(step: Step, text: string, open: number, close: number): Step | undefined {
  const length = close - open - 1;
  for (const one of step.children) {
    if (one.name.length === length && text.startsWith(one.name, open + 1)) return one;
  }
  if (length >= step.keyLengthBound) return undefined;
  let at = open + 1;
  while (at < close && text.charCodeAt(at) !== BACKSLASH) at++;
  if (at === close) return undefined;
  try {
    const name: unknown = JSON.parse(text.slice(open, close + 1));
    return step.children.find((one) => one.name === name);
  } catch {
    return undefined;
  }
}

function collect(text: string, paths: Paths, item: number, tokens: Token[] | undefined): Token[] | undefined {
  let found = tokens;
  for (const step of paths.steps) {
    const start = paths.starts[step.slot] ?? -1;
    const end = paths.ends[step.slot] ?? -1;
    if (end < 0 || isPlain(text, start, end)) continue;
    found ??= [];
    found.push({ item, path: step.path, start, end });
  }
  return found;
}

/** Whether JavaScript certainly writes the token unchanged: a string without escapes, or an integer up to 15 digits. */
function isPlain(text: string, start: number, end: number): boolean {
  if (text.charCodeAt(start) === QUOTE) return !text.slice(start, end).includes("\\");
  const first = text.charCodeAt(start) === MINUS ? start + 1 : start;
  if (end - first > 15) return false;
  if (text.charCodeAt(first) === 48) return first === start && end === start + 1;
  for (let i = first; i < end; i++) {
    const c = text.charCodeAt(i);
    if (c < 48 || c > 57) return false;
  }
  return true;
}
