// The labels of upstreams, which tell their names and URIs apart from those of others.

import { checksum } from "../../protocol/pages.ts";

/** The prefixes of an upstream. */
export interface Label {
  /** For the names of tools and prompts. */
  readonly name: string;
  /** For URIs and the ids of tasks. */
  readonly scheme: string;
}

export const MAX_LABEL_LENGTH = 24;

export const cleanName: (name: string) => string = (name: string): string => name.replaceAll(/[^A-Za-z0-9_-]/gu, "_");

/**
 * Upstream names may contain any characters. Labels contain only characters that tool names and URI schemes allow. They
 * are unique and not empty, and contain no dot, so that the first dot of a URI ends the label. A valid name is its own
 * label. `prefixOf`: the label that the options ask for.
 */
export function createLabels(
  names: readonly string[],
  prefixOf: (name: string) => string | undefined = () => undefined,
): readonly Label[] {
  const prefixes = names.map(prefixOf);
  const labels = uniqueLabels(names, prefixes, cleanName);
  const schemes = uniqueLabels(names, prefixes, (name) =>
    name
      .toLowerCase()
      .replaceAll(/[^a-z0-9+-]/g, "-")
      .replace(/^(?![a-z])/, "e-"),
  );
  return names.map((_name, index) => ({ name: labels[index] ?? "", scheme: schemes[index] ?? "" }));
}

function uniqueLabels(
  names: readonly string[],
  prefixes: readonly (string | undefined)[],
  clean: (name: string) => string,
): readonly string[] {
  const takenLabels = new Set<string>();
  const labels = names.map((): string | undefined => undefined);
  const isFree = (label: string): boolean => label.length <= MAX_LABEL_LENGTH && !takenLabels.has(label);
  const set = (index: number, label: string): void => {
    labels[index] = label;
    takenLabels.add(label);
  };
  // First those that need no change: a label must not depend on upstreams with names that must be changed.
  for (const wishes of [prefixes, names]) {
    for (const [index, wish] of wishes.entries()) {
      if (labels[index] === undefined && wish !== undefined && clean(wish) === wish && isFree(wish) && wish !== "")
        set(index, wish);
    }
  }
  for (const [index, name] of names.entries()) {
    if (labels[index] !== undefined) continue;
    const label = clean(prefixes[index] ?? name) || "upstream";
    let free = label;
    for (let salt = 0; !isFree(free); salt += 1) {
      const sum = checksum(`${salt} ${name}`);
      free = `${label.slice(0, MAX_LABEL_LENGTH - 1 - sum.length)}-${sum}`;
    }
    set(index, free);
  }
  return labels.map((label) => label ?? "");
}
