// Where the page is, as the hash says it: `#/traffic/12?filter=status:error`. Hash routes need nothing of the server and
// work under any path.

import { signal } from "@preact/signals";

export const PAGES = ["home", "traffic", "tools", "live", "chain"] as const;
export type PageName = (typeof PAGES)[number];

export interface Place {
  readonly page: PageName;
  /** The parts of the path after the page, decoded. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
  /** Whether it was reached by moving in a list, which keeps the focus. */
  readonly isMove?: boolean;
}

export const place = signal<Place>(parse(location.hash));

export function startRouter(): void {
  place.value = parse(location.hash);
  addEventListener("hashchange", () => (place.value = parse(location.hash)));
}

/** The hash of a place, for links. Parameters that are undefined or empty are left out. */
export function hrefOf(
  page: PageName,
  path: readonly (string | number)[] = [],
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== "") params.set(name, value);
  const parts = [page, ...path.map((part) => encodeURIComponent(part))];
  return `#/${parts.join("/")}${params.size === 0 ? "" : `?${params}`}`;
}

/** Goes to a place. With `replace`, the back button skips the place before. `isMove`: by the keys of a list. */
export function go(href: string, { replace = false, isMove = false } = {}): void {
  if (href === location.hash) return;
  if (replace) history.replaceState(null, "", href);
  else history.pushState(null, "", href);
  place.value = { ...parse(location.hash), isMove };
}

function parse(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [name = "", ...rest] = path.split("/");
  const page = PAGES.find((one) => one === name) ?? "home";
  return { page, path: rest.filter((part) => part !== "").map(decode), query: new URLSearchParams(query) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
