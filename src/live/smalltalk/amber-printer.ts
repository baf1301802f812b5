// Prints values of Amber within limits, and keeps those that were not printed whole, so that they can be inspected by a
// handle. Printing an object may run the user's code.

import { inspect } from "node:util";
import { firstChars } from "../../core/text.ts";
import { HandleTable } from "../js/handles.ts";
import { handleText, type GuestText } from "../runtime.ts";
import type { AmberImage } from "./amber-image.ts";

export interface Printed {
  readonly text: string;
  /** Absent if the value was printed whole. */
  readonly handle?: number;
}

export interface PrintOptions {
  readonly printLength: number;
  readonly printDepth: number;
  /** The maximum number of characters. */
  readonly chars?: number;
}

const MAX_CHARS = 1_000_000;
const PAGE = 50;
/** For the parts of an object, and for variables. */
export const SHORT: PrintOptions = { printLength: 20, printDepth: 2, chars: 200 };

interface Part {
  readonly name: string;
  readonly value: unknown;
}

export class AmberPrinter {
  readonly #image: AmberImage;
  readonly #handles = new HandleTable();

  constructor(image: AmberImage) {
    this.#image = image;
  }

  /** Throws what the user's printOn: throws. */
  print(value: unknown, options: PrintOptions): Printed {
    const { text, isWhole } = this.#shortText(value, options);
    const handle = isWhole ? undefined : this.#handles.add(value);
    return handle === undefined ? { text } : { text, handle };
  }

  /** The same, for values that were not asked for. Never throws. */
  printSafely(value: unknown): Printed {
    try {
      return this.print(value, SHORT);
    } catch {
      return { text: "(a value whose printString fails)" };
    }
  }

  /** From now on nothing gets a handle. */
  turnOffHandles(): void {
    this.#handles.turnOff();
  }

  /** Describes the parts of a value, or says why there is none. With `wantsParts`, as data too. */
  describe(
    handle: number,
    start = 0,
    count: number = PAGE,
    wantsParts = false,
  ): GuestText | { readonly problem: string } {
    const entry = this.#handles.get(handle);
    if ("problem" in entry) return entry;
    const { value } = entry;
    const parts = this.#parts(value);
    const shownParts = parts.slice(start, start + Math.min(count, PAGE));
    const shown = shownParts.map(({ name, value: part }) => ({ name, ...this.printSafely(part) }));
    const lines = shown.map(({ name, text, handle: inner }, at) => {
      return `${start + at}: ${name} = ${text}${handleText(inner)}`;
    });
    const end = start + shownParts.length;
    const rest = end < parts.length ? [`... ${parts.length - end} more; go on with start ${end}`] : [];
    const plural = parts.length === 1 ? "part" : "parts";
    const head = [this.#shortText(value, SHORT).text, `Class: ${this.#className(value)}, ${parts.length} ${plural}`];
    if (wantsParts) return { text: head.join("\n"), parts: shown, total: parts.length };
    return { text: [...head, ...lines, ...rest].join("\n") };
  }

  #shortText(value: unknown, options: PrintOptions): { readonly text: string; readonly isWhole: boolean } {
    const state = { isWhole: true };
    const { chars = MAX_CHARS } = options;
    const text = this.#text(value, options, options.printDepth, state);
    return text.length > chars ? { text: `${firstChars(text, chars)}...`, isWhole: false } : { text, ...state };
  }

  #className(value: unknown): string {
    const behavior = this.#image.classOf(value);
    return behavior === undefined ? "an object of JavaScript" : (behavior.name ?? "Metaclass");
  }

  #text(value: unknown, options: PrintOptions, depth: number, state: { isWhole: boolean }): string {
    const image = this.#image;
    if (image.isNil(value)) return "nil";
    const behavior = image.classOf(value);
    if (behavior === undefined) return this.#foreignText(value, options, depth, state);
    const element = (item: unknown): string => this.#text(item, options, depth - 1, state);
    const pair = (association: { readonly key: unknown; readonly value: unknown }): string =>
      `${element(association.key)} -> ${element(association.value)}`;
    switch (behavior.name ?? "") {
      case "Array":
        return this.#collectionText("an Array", value as unknown[], " ", element, options, depth, state);
      case "Set":
        return this.#collectionText(
          "a Set",
          image.send(value, "asArray") as unknown[],
          " ",
          element,
          options,
          depth,
          state,
        );
      case "Dictionary":
      case "HashedCollection": {
        const title = behavior.name === "Dictionary" ? "a Dictionary" : "a HashedCollection";
        const pairs = image.send(value, "associations") as Parameters<typeof pair>[0][];
        return this.#collectionText(title, pairs, " , ", pair, options, depth, state);
      }
      case "Association":
        return pair(value as Parameters<typeof pair>[0]);
    }
    const text = String(image.send(value, "printString"));
    const hasParts =
      typeof value !== "function" && ((image.send(behavior, "allInstanceVariableNames") as unknown[]) ?? []).length > 0;
    if (hasParts && /^an? \S+$/.test(text) && text.endsWith(` ${behavior.name}`)) state.isWhole = false;
    return text;
  }

  #foreignText(value: unknown, options: PrintOptions, depth: number, state: { isWhole: boolean }): string {
    const text = inspect(value, { depth, maxArrayLength: options.printLength, maxStringLength: MAX_CHARS });
    if (/\[\w+\]|more item/.test(text)) state.isWhole = false;
    return text;
  }

  #collectionText<T>(
    title: string,
    items: readonly T[],
    separator: string,
    print: (item: T) => string,
    { printLength }: PrintOptions,
    depth: number,
    state: { isWhole: boolean },
  ): string {
    if (items.length > 0 && depth <= 0) {
      state.isWhole = false;
      return `${title} (...)`;
    }
    const printed = items.slice(0, printLength).map(print).join(separator);
    if (items.length <= printLength) return `${title} (${printed})`;
    state.isWhole = false;
    return `${title} (${printed} ... ${items.length - printLength} more)`;
  }

  #parts(value: unknown): Part[] {
    const image = this.#image;
    const behavior = image.classOf(value);
    if (Array.isArray(value)) return value.map((item: unknown, index) => ({ name: `[${index + 1}]`, value: item }));
    if (behavior === undefined)
      return Object.entries(value as Record<string, unknown>).map(([name, field]) => ({ name, value: field }));
    if (behavior.name === "Dictionary" || behavior.name === "HashedCollection") {
      const pairs = image.send(value, "associations") as { readonly key: unknown; readonly value: unknown }[];
      return pairs.map((pair) => ({ name: this.printSafely(pair.key).text, value: pair.value }));
    }
    if (behavior.name === "Set") {
      return (image.send(value, "asArray") as unknown[]).map((item, index) => ({
        name: `[${index + 1}]`,
        value: item,
      }));
    }
    const names = image.isNil(value) ? [] : (image.send(behavior, "allInstanceVariableNames") as string[]);
    return names.map((name) => ({ name, value: (value as Readonly<Record<string, unknown>>)[name] }));
  }
}
