// Links as a config names them: those of the house by name, with options, and users' own by the path of a module. A
// link of the house is made once to see whether its options are right; users' modules are not loaded here.

import { OptionError } from "../core/options.ts";
import type { MiddlewareFactory } from "../chain/middleware/registry.ts";
import { errorMessage } from "../core/text.ts";
import type { Member } from "./document.ts";
import type { Position } from "./problems.ts";
import {
  anyText,
  anything,
  contents,
  meant,
  objectOf,
  pathTo,
  text,
  wrongKind,
  type Fields,
  type Reader,
} from "./readers.ts";
import type { Spot } from "./cursor.ts";
import { withoutHidden, type Hidden } from "./variables.ts";

/** The links that there are by name; a maker throws a TypeError that says what is wrong with its options. */
export type MiddlewareFactories = ReadonlyMap<string, MiddlewareFactory>;

interface Placed {
  readonly position: Position;
}

export interface NamedLink extends Placed {
  readonly kind: "named";
  readonly name: string;
  /** Undefined where none were written. */
  readonly options: unknown;
}

export interface ModuleMiddleware extends Placed {
  readonly kind: "module";
  readonly file: string;
  readonly options: unknown;
  /** What of the options must not be shown. */
  readonly hidden: readonly Hidden[];
  /** What it is called; otherwise its own name, or that of its file. */
  readonly name?: string;
}

export type MiddlewareEntry = NamedLink | ModuleMiddleware;

const MODULE = {
  use: pathTo("file", "error"),
  options: anything,
  name: text,
} as const satisfies Fields;

export const MODULE_FIELDS: Fields = MODULE;

const moduleMiddleware = objectOf(MODULE, "an object");

const FORMS = '"log", {"log": {...}} or {"use": "./mine.ts"}';

export const middlewareList: Reader<readonly MiddlewareEntry[]> = (spot) => {
  if (spot.value.kind !== "list") return wrongKind(spot, `a list of links, such as ["log", {"use": "./mine.ts"}]`);
  return spot.items().flatMap((item) => link(item) ?? []);
};

function link(spot: Spot): MiddlewareEntry | undefined {
  const { value } = spot;
  if (value.kind === "text") {
    const name = anyText(spot);
    return name === undefined || contents(spot).isOpen ? undefined : named(spot, name, value.text, undefined);
  }
  if (value.kind !== "object") return wrongKind(spot, `a link: ${FORMS}`);
  if (value.members.some(({ name }) => name === "use")) return ofModule(spot);
  const [only, second] = value.members;
  if (only === undefined) return spot.error(" names no link", `write ${FORMS}`);
  if (second !== undefined) return notOne(spot, only, second);
  return named(spot.member(only), only.name, only.name, spot.member(only));
}

function ofModule(spot: Spot): ModuleMiddleware | undefined {
  const { use: file, options, name } = moduleMiddleware(spot) ?? {};
  if (file === undefined) return undefined;
  const given = spot.named("options");
  const { hidden } = given === undefined ? { hidden: [] } : contents(given);
  return { kind: "module", file, options, hidden, position: spot.position, ...(name !== undefined && { name }) };
}

function notOne(spot: Spot, first: Member, second: Member): undefined {
  const isModule = [first, second].some(({ name }) => Object.hasOwn(MODULE, name));
  const hint = isModule
    ? 'a module is named by "use", beside "options" and "name"'
    : `give each an object of its own: {${JSON.stringify(first.name)}: ...}, {${JSON.stringify(second.name)}: ...}`;
  return spot.error(" has more than one name in it, and a link has one", hint);
}

/** `written` is the name as it stands there. */
function named(spot: Spot, name: string, written: string, given: Spot | undefined): NamedLink | undefined {
  const { links, problems } = spot.reading;
  const make = links.get(name);
  if (make === undefined) {
    const shown = JSON.stringify(written);
    const known = `there are ${[...links.keys()].join(", ")}; one of your own is written {"use": "./mine.ts"}`;
    const isPath = /\.|[/\\]/.test(written);
    const hint = isPath ? `a module of your own is written {"use": ${shown}}` : (meant(written, links.keys()) ?? known);
    problems.error(spot.nameOffset, `There is no link ${shown}`, hint);
    return undefined;
  }
  const options = given && anything(given);
  const { isOpen, hidden } = contents(given ?? spot);
  // Where something is missing, that has been told, or is asked for later; the maker could only complain of the gap.
  const fault = isOpen ? undefined : faultOf(make, options);
  if (fault === undefined) return { kind: "named", name, options, position: spot.position };
  const { offset } = placeOf(given ?? spot, fault.option).value;
  problems.error(offset, withoutHidden(fault.message, hidden));
  return undefined;
}

function faultOf(
  make: MiddlewareFactory,
  options: unknown,
): { readonly message: string; readonly option: string } | undefined {
  try {
    make(options)
      .close?.()
      .catch(() => undefined);
    return undefined;
  } catch (error) {
    return { message: errorMessage(error), option: error instanceof OptionError ? error.option : "" };
  }
}

/** Where an option such as `tools.only` stands, or the nearest that is written of it. */
function placeOf(spot: Spot, option: string): Spot {
  const whole = spot.named(option);
  if (whole !== undefined) return whole;
  const [first = "", ...rest] = option.split(".");
  const inner = spot.named(first);
  return inner === undefined ? spot : placeOf(inner, rest.join("."));
}
