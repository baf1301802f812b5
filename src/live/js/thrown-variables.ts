// Keeps the variables of the user's functions at the place where an error was thrown, for the text of the error and for
// evaluate-in-frame. V8 pauses at an error that it expects to be uncaught; the values are read only if that error ends
// the evaluation. Errors that the user's code catches cost next to nothing.

import {
  setDebugging,
  type Pause,
  type PausedFrame,
  onUncaught,
  setPausing,
  releasePause,
  urlOf,
  valueOf,
} from "./inspector.ts";

// Saved because the user's code may declare this name.
const { create, is, keys } = Object;

/** The most frames that are kept, and variables of a frame that are shown. */
const MAX_FRAMES = 20;
const MAX_SHOWN = 20;
/** After this many pauses there are no more until the next evaluation, since each takes about a millisecond. */
const MAX_PAUSES = 20;

/** Scopes of the function itself; the others belong to functions and modules around it. */
const OWN_SCOPES: ReadonlySet<string> = new Set(["local", "block", "catch", "eval", "with"]);
const OUTER_SCOPES: ReadonlySet<string> = new Set(["closure", "module", "script"]);
/** Parameters of rewritten code, and what every function has. */
export const HIDDEN: RegExp = /^(?:\$c\$*|arguments)$/;

export interface CapturedFrame {
  readonly name: string;
  readonly url: string;
  /** Counted from 1. */
  readonly line: number;
  readonly column: number;
  readonly self: unknown;
  /** Copies of all variables that the function could use, without globals. */
  readonly variables: Readonly<Record<string, unknown>>;
  /** The names of its own variables, the innermost first. */
  readonly ownNames: readonly string[];
}

export class Captures {
  /** The frames of the last error. */
  frames: readonly CapturedFrame[] = [];
  readonly #isOwnFile: (url: string) => boolean;
  #isListening = false;
  #isOn = false;
  #pauses = 0;
  #pause: Pause | undefined;

  /** `isOwnFile`: whether a file belongs to the guest. */
  constructor(isOwnFile: (url: string) => boolean) {
    this.#isOwnFile = isOwnFile;
  }

  /** Forgets the variables of the last error. */
  clear(): void {
    this.frames = [];
  }

  /** The first time takes tens of milliseconds. */
  turn(isOn: boolean): void {
    if (isOn === this.#isOn) return;
    this.#isOn = isOn;
    if (isOn && !this.#isListening) {
      this.#isListening = true;
      onUncaught((pause) => this.#onPause(pause));
    }
    setDebugging(isOn);
    if (isOn) setPausing(true);
    this.#pauses = 0;
  }

  /** Must be called before each evaluation. */
  begin(): void {
    if (this.#pauses >= MAX_PAUSES) setPausing(true);
    if (this.#pauses > 0) releasePause();
    this.#pauses = 0;
    this.#pause = undefined;
  }

  /** Reads the variables if `error` is the last at which V8 has paused. */
  take(error: unknown): readonly CapturedFrame[] {
    const pause = this.#pause;
    this.#pause = undefined;
    this.frames = [];
    if (pause !== undefined && this.#isSame(pause, error)) {
      const ownFrames = pause.callFrames.filter(({ location }) => {
        const url = urlOf(location.scriptId);
        return url !== "" && !this.#isOwnFile(url);
      });
      this.frames = ownFrames.slice(0, MAX_FRAMES).map(captureFrame);
    }
    return this.frames;
  }

  #isSame({ data }: Pause, error: unknown): boolean {
    return data !== undefined && is(valueOf(data as Parameters<typeof valueOf>[0]), error);
  }

  #onPause(pause: Pause): void {
    // The values of the pause before are no longer needed.
    if (this.#pause !== undefined) releasePause();
    this.#pause = pause;
    this.#pauses += 1;
    if (this.#pauses >= MAX_PAUSES) setPausing(false);
  }
}

function captureFrame({ functionName: name, location, scopeChain, this: self }: PausedFrame): CapturedFrame {
  const variables = create(null) as Record<string, unknown>;
  const ownNames: string[] = [];
  for (const { type, object } of scopeChain) {
    const isOwn = OWN_SCOPES.has(type);
    if (!isOwn && !OUTER_SCOPES.has(type)) continue;
    const values = (valueOf(object) ?? {}) as Record<string, unknown>;
    for (const key of keys(values)) {
      if (key in variables) continue;
      try {
        variables[key] = values[key];
      } catch {
        // It has no value yet.
        continue;
      }
      if (isOwn && ownNames.length < MAX_SHOWN && !HIDDEN.test(key)) ownNames.push(key);
    }
  }
  return {
    name,
    url: urlOf(location.scriptId),
    line: location.lineNumber + 1,
    column: (location.columnNumber ?? 0) + 1,
    self: valueOf(self),
    variables,
    ownNames,
  };
}
