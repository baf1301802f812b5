// What an end offers, remembered: its answer to `server/discover` and its four lists. An end that does not run is
// shown by it without being started. A catalogue is read from the end itself after each start and after each change
// that it tells of; how it is kept between two lives of this process is for catalogue-file.

import type { Context } from "../../core/handler.ts";
import type { Handler, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/objects.ts";
import type { Json } from "../../protocol/revision.ts";

/** The lists, each with the capability that stands for it. */
export const LISTS = [
  { method: "tools/list", field: "tools", family: "tools" },
  { method: "prompts/list", field: "prompts", family: "prompts" },
  { method: "resources/list", field: "resources", family: "resources" },
  { method: "resources/templates/list", field: "resourceTemplates", family: "resources" },
] as const;

export type ListMethod = (typeof LISTS)[number]["method"];

export interface Catalogue {
  readonly discovered: Result;
  /** Whole lists by method; one that the end refuses is not there. */
  readonly lists: Readonly<Partial<Record<ListMethod, readonly unknown[]>>>;
}

/** An end whose lists are longer is not remembered: it is started instead. */
const MOST_PAGES = 20;
const MOST_ITEMS = 5_000;

/** Undefined where the end is not one that can be remembered. */
export async function readCatalogue(
  handler: Handler,
  discovered: Result,
  home: Context,
): Promise<Catalogue | undefined> {
  const capabilities = isObject(discovered["capabilities"]) ? discovered["capabilities"] : {};
  const lists: Partial<Record<ListMethod, readonly unknown[]>> = {};
  for (const { method, field, family } of LISTS) {
    if (capabilities[family] === undefined) continue;
    const items = await walk(handler, method, field, home);
    if (items === undefined) return undefined;
    if (items !== "refused") lists[method] = items;
  }
  return { discovered, lists };
}

async function walk(
  handler: Handler,
  method: ListMethod,
  field: string,
  home: Context,
): Promise<readonly unknown[] | "refused" | undefined> {
  const items: unknown[] = [];
  let cursor: unknown;
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    let page: Result;
    try {
      page = await handler({ method, params: cursor === undefined ? {} : { cursor } }, home);
    } catch {
      // Some ends declare resources and know of no templates.
      return pages === 0 ? "refused" : undefined;
    }
    const found = page[field];
    if (!Array.isArray(found)) return undefined;
    items.push(...(found as unknown[]));
    cursor = page["nextCursor"];
    if (cursor === undefined || cursor === null) return items;
    if (typeof cursor !== "string" || items.length > MOST_ITEMS) return undefined;
  }
  return undefined;
}

/** The answer that the end would give; undefined where only it can know. */
export function answerFrom(catalogue: Catalogue, { method, params }: Request): Result | undefined {
  if (method === "server/discover") return catalogue.discovered;
  const list = LISTS.find((one) => one.method === method);
  const items = list === undefined ? undefined : catalogue.lists[list.method];
  if (list === undefined || items === undefined || params["cursor"] !== undefined) return undefined;
  return { resultType: "complete", [list.field]: items, ttlMs: 0, cacheScope: "private" };
}

/** The notifications that tell what is different now. */
export function changesBetween(before: Catalogue, now: Catalogue): readonly string[] {
  const changed = LISTS.filter(
    ({ method }) => JSON.stringify(before.lists[method]) !== JSON.stringify(now.lists[method]),
  );
  return [...new Set(changed.map(({ family }) => `notifications/${family}/list_changed`))];
}

/** What a listen of these wishes is granted by an end that offers this; the same that the end itself would say. */
export function grantedBy({ discovered }: Catalogue, wanted: Json): Json {
  const capabilities = isObject(discovered["capabilities"]) ? discovered["capabilities"] : {};
  const granted = ["tools", "prompts", "resources"].flatMap((family) => {
    const flag = `${family}ListChanged`;
    const canChange = isObject(capabilities[family]) && capabilities[family]["listChanged"] === true;
    return canChange && wanted[flag] === true ? [[flag, true] as const] : [];
  });
  return Object.fromEntries(granted);
}
