// The definitions that the middleware `pin` of a config has approved and holds: what `catenary pins` and the console show
// and approve. Separate from chain/pins.ts, the file itself, which requests read.

import { dirname, resolve } from "node:path";
import { Pins, PIN_KINDS, type Definition, type Pin, type PinKind, type PinnedDefinition } from "../chain/pins.ts";
import { diffLines } from "../core/line-diff.ts";
import { isObject } from "../core/values.ts";
import { visible } from "../core/visible.ts";
import type { Config } from "./load.ts";

/** An item of a file of pins. */
export interface PinnedItem {
  readonly pins: Pins;
  readonly server: string;
  readonly kind: PinKind;
  readonly name: string;
  readonly pin: Pin;
}

/** The files that the middleware of a config use. */
export async function pinFilesOf(config: Config): Promise<readonly string[]> {
  const files = pinOptionsOf(config).map(({ file }) => Pins.fileIn(dirname(resolve(config.path)), file));
  return [...new Set(await Promise.all(files))];
}

/** The names under which the files have the servers of a config. They may have others that were in it before. */
export function pinnedServersOf(config: Config): ReadonlySet<unknown> {
  return new Set([...config.upstreams.keys(), ...pinOptionsOf(config).map(({ server }) => server)]);
}

function pinOptionsOf({ chain, upstreams }: Config): readonly Definition[] {
  const entries = [...chain, ...[...upstreams.values()].flatMap(({ use }) => use)];
  return entries.flatMap((entry) => {
    if (entry.kind !== "named" || entry.name !== "pin") return [];
    return [isObject(entry.options) ? entry.options : {}];
  });
}

/** What is in a file now. */
export async function readPinnedItems(pins: Pins): Promise<readonly PinnedItem[]> {
  await pins.refresh();
  return [...pins.servers].flatMap(([server, { pins: byKind }]) =>
    PIN_KINDS.flatMap((kind) => [...byKind[kind]].map(([name, pin]) => ({ pins, server, kind, name, pin }))),
  );
}

/** Returns the items that were approved. */
export async function approveHeld(chosen: readonly PinnedItem[]): Promise<readonly PinnedItem[]> {
  const approved: PinnedItem[] = [];
  for (const item of chosen) {
    const { pins: file, server, kind, name, pin } = item;
    // Only what was shown: the server may have changed it again meanwhile.
    await file.change(() => {
      const now = file.find(server, kind, name);
      if (pin.held === undefined || now?.held?.digest !== pin.held.digest) return false;
      file.set(server, kind, name, { approved: pin.held });
      approved.push(item);
      return true;
    });
  }
  return approved;
}

export function stateOf({ approved, held }: Pin): "approved" | "changed" | "new" {
  if (held === undefined) return "approved";
  return approved === undefined ? "new" : "changed";
}

/** The lines of a field of a definition: "+ ", "- " or two spaces, and the text with all characters visible. */
export interface ChangedField {
  readonly field: string;
  readonly lines: readonly string[];
}

/**
 * The lines of each field that differ. For one and the same definition, all its lines. Undefined if a definition is too
 * long to be kept.
 */
export function changedLines(
  from: PinnedDefinition | undefined,
  to: PinnedDefinition | undefined,
): readonly ChangedField[] | undefined {
  const [before, after] = [from?.definition, to?.definition];
  if ((from !== undefined && before === undefined) || after === undefined) return undefined;
  const fields = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after)])];
  return fields.flatMap((field) => {
    const [old, now] = [linesOf(before, field), linesOf(after, field)];
    const isSame = old.join("\n") === now.join("\n");
    if (isSame && from !== to) return [];
    return [{ field, lines: isSame ? now.map((line) => `  ${line}`) : diffLines(old, now, 1) }];
  });
}

/** A description by its lines, anything else as JSON on several lines. All characters are visible. */
function linesOf(definition: Definition | undefined, field: string): readonly string[] {
  const value = definition?.[field];
  if (value === undefined) return [];
  const text = typeof value === "string" ? value : JSON.stringify(value, undefined, 2);
  return text.split("\n").map(visible);
}
