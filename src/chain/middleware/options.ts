// What people write as the options of a link, in code or in a config file, looked at before the link is made. Each
// fault names the link and the option, and a name that there is not comes with the one that was probably meant.

import { nearest } from "../../core/nearest.ts";
import { isObject } from "../../protocol/check.ts";
import { noSuchMethod, REQUEST_NAMES } from "../method-names.ts";

export class OptionError extends TypeError {
  /** Which one, by its path (`tools.only`); empty where it is all of them. */
  readonly option: string;

  constructor(link: string, option: string, problem: string) {
    super(`${link}: ${option === "" ? "" : `\`${option}\` `}${problem}`);
    this.name = "OptionError";
    this.option = option;
  }
}

/** Options that were given, under the names that there are. */
export class Options {
  readonly #link: string;
  readonly #path: string;
  readonly #given: { readonly [name: string]: unknown };

  constructor(link: string, given: unknown, names: readonly string[], path: string = "", or: string = "") {
    this.#link = link;
    this.#path = path;
    this.#given = isObject(given) ? given : {};
    if (given !== undefined && !isObject(given))
      throw this.fault("", `must be ${or}an object with ${names.join(", ")}`);
    const unknown = Object.keys(this.#given).find((name) => !names.includes(name));
    if (unknown === undefined) return;
    const [near] = nearest(unknown, names);
    const hint = near === undefined ? `there are ${names.join(", ")}` : `did you mean \`${near}\`?`;
    throw this.fault(unknown, `is no option of it; ${hint}`);
  }

  fault(option: string, problem: string): OptionError {
    const path = [this.#path, option].filter((part) => part !== "").join(".");
    return new OptionError(this.#link, path, problem);
  }

  /** At most what setTimeout can wait for. */
  ms(name: string): number | undefined {
    return this.#number(name, (value) => value > 0 && value <= MOST_MS, `must be milliseconds above 0, to ${MOST_MS}`);
  }

  count(name: string): number | undefined {
    return this.#number(name, (value) => Number.isInteger(value) && value > 0, "must be a whole number above 0");
  }

  choice<Choice extends string>(name: string, choices: readonly Choice[]): Choice | undefined {
    const value = this.#given[name];
    if (value === undefined || choices.includes(value as Choice)) return value as Choice | undefined;
    throw this.fault(name, `must be ${choices.map((one) => JSON.stringify(one)).join(" or ")}${shown(value)}`);
  }

  /** Methods of requests; each must be one that there is. */
  methods(name: string = "methods"): ReadonlySet<string> | undefined {
    const methods = this.texts(name);
    const wrong = methods?.find((method) => !REQUEST_NAMES.has(method));
    if (wrong !== undefined) throw this.fault(name, `has a wrong name: ${noSuchMethod(wrong, REQUEST_NAMES)}`);
    return methods && new Set(methods);
  }

  texts(name: string): readonly string[] | undefined {
    const value = this.#given[name];
    if (value === undefined) return undefined;
    if (Array.isArray(value) && value.every((one) => typeof one === "string" && one !== "")) {
      return value as readonly string[];
    }
    throw this.fault(name, `must be an array of texts that are not empty${shown(value)}`);
  }

  /** From text to text. */
  pairs(name: string): ReadonlyMap<string, string> {
    const value = this.#given[name];
    if (value === undefined) return new Map();
    if (!isObject(value)) throw this.fault(name, `must be an object of texts${shown(value)}`);
    for (const [key, text] of Object.entries(value)) {
      if (typeof text !== "string" || text === "" || key === "") {
        throw this.fault(`${name}.${key}`, `must be a text that is not empty${shown(text)}`);
      }
    }
    return new Map(Object.entries(value) as [string, string][]);
  }

  function(name: string): unknown {
    const value = this.#given[name];
    if (value === undefined || typeof value === "function") return value;
    throw this.fault(name, `must be a function${shown(value)}`);
  }

  /** As it was given; whoever reads it checks it. */
  any(name: string): unknown {
    return this.#given[name];
  }

  /** Options within an option. */
  inner(name: string, names: readonly string[]): Options {
    const value = this.#given[name];
    if (value !== undefined && !isObject(value)) {
      throw this.fault(name, `must be an object with ${names.join(", ")}${shown(value)}`);
    }
    return new Options(this.#link, value, names, [this.#path, name].filter((part) => part !== "").join("."));
  }

  #number(name: string, fits: (value: number) => boolean, rule: string): number | undefined {
    const value = this.#given[name];
    if (value === undefined) return undefined;
    if (typeof value === "number" && fits(value)) return value;
    throw this.fault(name, `${rule}${shown(value)}`);
  }
}

const MOST_MS = 0x7fffffff;

/** Only what surely is no secret and no page long. */
function shown(value: unknown): string {
  if (typeof value === "number" || typeof value === "boolean" || value === null) return `, not ${String(value)}`;
  return typeof value === "string" && value.length <= 30 ? `, not ${JSON.stringify(value)}` : "";
}
