// The catalogue on the page: read when the page is first shown and whenever it may have changed, searched, and grouped by
// server.

import { computed, effect, signal } from "@preact/signals";
import type { Catalogue, CatalogueItem } from "../../../src/console/types.ts";
import { get, post, reasonOf } from "../api.ts";
import { hrefOf } from "../router.ts";
import { catalogueVersion, say } from "../state.ts";
import { valuesIn } from "./template.ts";

export type Kind = "tools" | "resources" | "prompts";

export const catalogue = signal<Catalogue | undefined>(undefined);
/** Why the catalogue could not be read. */
export const failure = signal<string | undefined>(undefined);
export const kind = signal<Kind>("tools");
export const query = signal("");

/** Templates are shown among the resources. */
export function kindOf(item: CatalogueItem): Kind {
  return item.kind === "templates" ? "resources" : item.kind;
}

export function hrefOfItem(item: CatalogueItem, args?: object): string {
  const kind = kindOf(item);
  return hrefOf("tools", [item.server ?? "-", item.name], {
    kind: kind === "tools" ? undefined : kind,
    arguments: args && JSON.stringify(args),
  });
}

/** Where the resource is on the page, as itself or by a template. Undefined if the catalogue was not read, or has none. */
export function hrefOfResource(uri: string): string | undefined {
  const items = catalogue.value?.items ?? [];
  const own = items.find(({ kind: one, name }) => one === "resources" && name === uri);
  if (own !== undefined) return hrefOfItem(own);
  for (const item of items) {
    const values = item.kind === "templates" ? valuesIn(item.name, uri) : undefined;
    if (values !== undefined) return hrefOfItem(item, values);
  }
  return undefined;
}

let reading: Promise<void> | undefined;
let isStale = false;

/** Reads the catalogue. If it changes meanwhile, it is read once more. */
export function readCatalogue(): Promise<void> {
  if (reading !== undefined) {
    isStale = true;
    return reading;
  }
  reading = get<Catalogue>("catalogue")
    .then(
      (read) => {
        catalogue.value = read;
        failure.value = undefined;
      },
      (error: unknown) => {
        failure.value = reasonOf(error);
      },
    )
    .finally(() => {
      reading = undefined;
      if (isStale) {
        isStale = false;
        void readCatalogue();
      }
    });
  return reading;
}

/** Keeps the catalogue up to date while the page is shown. */
export function followCatalogue(): () => void {
  return effect(() => {
    // Read again whenever this changes.
    void catalogueVersion.value;
    void readCatalogue();
  });
}

/** Hides a server or a tool from clients, or shows it, and says where that is kept. */
export async function setHidden(isHidden: boolean, server: string, tool?: string): Promise<void> {
  const what = tool ?? server;
  try {
    const kept = await post<{ readonly config?: string }>(isHidden ? "hide" : "show", {
      server,
      ...(tool !== undefined && { tool }),
    });
    const where = kept.config === undefined ? "Until the gateway ends: it has no config" : "The config says so too";
    say(`${what} is ${isHidden ? "hidden from" : "shown to"} clients. ${where}.`);
    await readCatalogue();
  } catch (error) {
    say(reasonOf(error), true);
  }
}

/** One line of the list: a server, or one of its items. */
export type Line =
  | { readonly server: string; readonly count: number; readonly tokens: number }
  | { readonly item: CatalogueItem };

const texts = new WeakMap<CatalogueItem, string>();

function textOf(item: CatalogueItem): string {
  let text = texts.get(item);
  if (text === undefined) {
    const { name, ownName = "", server = "", title = "", definition } = item;
    const about = typeof definition["description"] === "string" ? definition["description"] : "";
    text = `${name} ${ownName} ${server} ${title} ${about}`.toLowerCase();
    texts.set(item, text);
  }
  return text;
}

/** How many there are of each kind. */
export const counts = computed(() => {
  const numbers: Record<Kind, number> = { tools: 0, resources: 0, prompts: 0 };
  for (const item of catalogue.value?.items ?? []) numbers[kindOf(item)] += 1;
  return numbers;
});

/** The lines to show: by server, and those whose names begin with what is searched before others. */
export const lines = computed((): readonly Line[] => {
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  const byServer = new Map<string, CatalogueItem[]>();
  for (const item of catalogue.value?.items ?? []) {
    if (kindOf(item) !== kind.value) continue;
    if (words.length > 0) {
      const text = textOf(item);
      if (!words.every((word) => text.includes(word))) continue;
    }
    const server = item.server ?? "";
    const items = byServer.get(server);
    if (items === undefined) byServer.set(server, [item]);
    else items.push(item);
  }
  const [first] = words;
  return [...byServer].flatMap(([server, items]): Line[] => {
    const tokens = items.reduce((sum, item) => sum + (item.hidden === undefined ? item.tokens : 0), 0);
    const sorted = items.toSorted((one, other) => rank(one, first) - rank(other, first) || compare(one, other));
    return [{ server, count: items.length, tokens }, ...sorted.map((item) => ({ item }))];
  });
});

const { compare: compareTexts } = new Intl.Collator("en", { numeric: true });

function compare(one: CatalogueItem, other: CatalogueItem): number {
  return compareTexts(one.name, other.name);
}

function rank({ name }: CatalogueItem, word: string | undefined): number {
  if (word === undefined) return 0;
  const lower = name.toLowerCase();
  return lower.startsWith(word) ? 0 : lower.includes(word) ? 1 : 2;
}

/** The item at a place of the page: by server and name; a server `-` or none stands for any. */
export function findItem(server: string, name: string, wanted: Kind | undefined): CatalogueItem | undefined {
  const fitting = (catalogue.value?.items ?? []).filter(
    (item) =>
      (item.name === name || (item.ownName === name && item.server === server)) &&
      (server === "" || server === "-" || item.server === server),
  );
  return fitting.find((item) => kindOf(item) === (wanted ?? "tools")) ?? fitting[0];
}
