// What may stand at a place of a config, as small readers that are put together: each gives what it has read, or tells
// what is wrong and gives nothing. A value that came from a variable is read like any other, and never shown.

import { resolve } from "node:path";
import { nearest } from "../core/options.ts";
import type { Value } from "./document.ts";
import type { FileCheck, Spot } from "./cursor.ts";
import type { Expanded } from "./variables.ts";

/** Undefined: it has been told what is wrong, or an input must be asked for first. */
export type Reader<T> = (spot: Spot) => T | undefined;
export type Fields = Readonly<Record<string, Reader<unknown>>>;
/** What was read of an object; names that are missing, or wrong, are not there. */
export type Read<F extends Fields> = { readonly [K in keyof F]?: F[K] extends Reader<infer T> ? T & {} : never };

const KINDS: Readonly<Record<Value["kind"], string>> = {
  text: "a text",
  object: "an object",
  list: "a list",
  number: "a number",
  boolean: "true or false",
  null: "null",
};

export function wrongKind(spot: Spot, wanted: string, hint?: string): undefined {
  return spot.error(` must be ${wanted}, and is ${KINDS[spot.value.kind]}`, hint);
}

function expanded(spot: Spot, wanted: string): Expanded | undefined {
  return spot.value.kind === "text" ? spot.reading.variables.expand(spot.value) : wrongKind(spot, wanted);
}

export const anyText: Reader<string> = (spot) => expanded(spot, "a text")?.text;

/** A text of which more is wanted: `rest` is what is wrong where it does not fit. */
export function textThat(fits: (given: string) => boolean, rest: string, hint?: string): Reader<string> {
  return (spot) => {
    const read = expanded(spot, "a text");
    if (read === undefined || read.isOpen || fits(read.text)) return read?.text;
    return spot.error(`${rest}${read.hidden.length > 0 ? ", once its variables are put in" : ""}`, hint);
  };
}

export const text: Reader<string> = textThat(
  (given) => given.trim() !== "",
  " is empty",
  "write something, or leave it out",
);

/** `advice` is what is said of another. */
export function oneOf<const T extends string>(
  choices: readonly T[],
  advice: (given: string) => string | undefined = (given) => meant(given, choices),
): Reader<T> {
  const list = choices.map((choice) => JSON.stringify(choice)).join(", ");
  return (spot) => {
    const read = expanded(spot, `one of ${list}`);
    if (read === undefined || read.isOpen) return undefined;
    const choice = choices.find((known) => known === read.text);
    if (choice !== undefined) return choice;
    return spot.error(` must be one of ${list}`, read.hidden.length > 0 ? undefined : advice(read.text));
  };
}

export const flag: Reader<boolean> = (spot) =>
  spot.value.kind === "boolean" ? spot.value.plain === true : wrongKind(spot, "true or false");

/** Also a text with variables that comes to a number, as "${PORT:-3000}" does. */
export function numberThat(fits: (given: number) => boolean, wanted: string): Reader<number> {
  return (spot) => {
    const { value } = spot;
    if (value.kind === "number")
      return fits(Number(value.plain)) ? Number(value.plain) : spot.error(` must be ${wanted}`);
    if (value.kind !== "text") return wrongKind(spot, wanted);
    if (!value.text.includes("${")) {
      // What is no number in quotes is none without them.
      return wrongKind(spot, wanted, /\d/.test(value.text) ? "write it without quotes" : undefined);
    }
    const read = spot.reading.variables.expand(value);
    if (read === undefined || read.isOpen) return undefined;
    const given = read.text.trim() === "" ? Number.NaN : Number(read.text);
    return fits(given) ? given : spot.error(` must be ${wanted}, once its variables are put in`);
  };
}

/** What a timer can wait for; a longer one would go off at once. */
const MOST_MS = 2 ** 31 - 1;

export const milliseconds: Reader<number> = numberThat(
  (given) => given >= 0 && given <= MOST_MS,
  `a number of milliseconds from 0 to ${MOST_MS}`,
);

/** Some clients count in seconds. */
const SUSPICIOUS_MS = 1_000;

/** Of what a person may have taken for seconds. */
export function warnOfSeconds(spot: Spot, given: number | undefined): void {
  if (spot.value.kind !== "number" || given === undefined || given <= 0 || given >= SUSPICIOUS_MS) return;
  spot.warn(" is less than a second", `it is counted in milliseconds: write ${given}000 if seconds are meant`);
}

export function listOf<T>(reader: Reader<T>, wanted: string): Reader<readonly T[]> {
  return (spot) =>
    spot.value.kind === "list" ? spot.items().flatMap((item) => reader(item) ?? []) : wrongKind(spot, wanted);
}

/** Names that the writer chooses, with values of one kind. */
export function recordOf<T>(reader: Reader<T>, wanted: string): Reader<Readonly<Record<string, T>>> {
  return (spot) => {
    if (spot.value.kind !== "object") return wrongKind(spot, wanted);
    const read = spot.members().map((member) => [member.name, reader(spot.member(member))] as const);
    return Object.fromEntries(read.filter((one): one is readonly [string, T & {}] => one[1] !== undefined));
  };
}

/** Anything, with the variables in its texts put in. */
export const anything: Reader<unknown> = (spot) => {
  const { value } = spot;
  if (value.kind === "text") return anyText(spot);
  if (value.kind === "list") return spot.items().map(anything);
  if (value.kind !== "object") return value.plain;
  return Object.fromEntries(value.members.map((member) => [member.name, anything(spot.member(member))]));
};

/** What is in the texts of it: all that is hidden, and whether an input must be asked for before it is whole. */
export function contents(spot: Spot): Pick<Expanded, "hidden" | "isOpen"> {
  if (spot.value.kind === "text") return spot.reading.variables.expand(spot.value) ?? { hidden: [], isOpen: true };
  const parts = [...spot.items(), ...spot.members().map((member) => spot.member(member))].map(contents);
  return { hidden: parts.flatMap(({ hidden }) => hidden), isOpen: parts.some(({ isOpen }) => isOpen) };
}

/** A path, relative to the config, of something that should be there. */
export function pathTo(kind: FileCheck["kind"], severity: FileCheck["severity"]): Reader<string> {
  return (spot) => {
    const read = expanded(spot, `the path of a ${kind}`);
    if (read === undefined || read.isOpen) return read?.text;
    if (read.text.trim() === "" || read.text.includes("\0"))
      return spot.error(` is no path`, `write one, or leave it out`);
    const path = resolve(spot.reading.folder, read.text);
    spot.reading.files.push({ path, kind, severity, spot, isHidden: read.hidden.length > 0 });
    return path;
  };
}

/** The names that are known, each read by its reader. `onStray` is told of every other. */
export function readFields<F extends Fields>(
  spot: Spot,
  fields: F,
  onStray: (stray: Spot, name: string, known: readonly string[]) => void = refuseStray,
): Read<F> {
  const known = Object.keys(fields);
  const read = spot.members().flatMap((member) => {
    const inner = spot.member(member);
    const reader = Object.hasOwn(fields, member.name) ? fields[member.name] : undefined;
    if (reader === undefined) onStray(inner, member.name, known);
    const value = reader?.(inner);
    return value === undefined ? [] : [[member.name, value] as const];
  });
  return Object.fromEntries(read) as Read<F>;
}

export function objectOf<F extends Fields>(fields: F, wanted: string): Reader<Read<F>> & { readonly fields: F } {
  const reader = (spot: Spot): Read<F> | undefined =>
    spot.value.kind === "object" ? readFields(spot, fields) : wrongKind(spot, wanted);
  reader.fields = fields;
  return reader;
}

/** Where all names are ours: another is a mistake. */
function refuseStray(stray: Spot, name: string, known: readonly string[]): void {
  const hint = meant(name, known) ?? `there are ${known.join(", ")}`;
  stray.reading.problems.error(stray.nameOffset, `${stray.way} is not known`, hint);
}

/** Where others have names too: only what looks like one of ours is told. */
export function warnOfStray(stray: Spot, name: string, known: readonly string[]): void {
  const near = misspelt(name, known);
  if (near === undefined) return;
  stray.reading.problems.warn(stray.nameOffset, `${stray.way} is passed over`, `did you mean ${near}?`);
}

/** For what is wrong in any case: a guess may be far off. */
export function meant(name: string, known: Iterable<string>): string | undefined {
  const [near] = nearest(name, known, name.length < 4 ? 1 : 2);
  return near && `did you mean ${near}?`;
}

/** For what may be right: one of ours that was most probably meant. Short names are near to everything. */
export function misspelt(name: string, known: readonly string[]): string | undefined {
  return name.length < 3 ? undefined : nearest(name, known, Math.min(Math.floor(name.length / 3), 2))[0];
}
