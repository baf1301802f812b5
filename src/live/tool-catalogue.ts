// The tools that one caller can call from code, with the names that they have there: `notes.search` for the tool `search`
// of the upstream `notes`, whatever the gateway calls it. Made from the caller's own list.

import { isObject } from "../core/values.ts";
import { OWN_NAMES, UPSTREAM } from "../protocol/lists.ts";
import { type CallSyntax, type ListedTool, OBJECT_SYNTAX, signatureOf, summaryOf, ToolIndex } from "../tools/search.ts";

export interface CatalogueEntry {
  /** How code names the tool: one or two valid identifiers, such as `notes.search`. Unique. */
  readonly path: string;
  /** How the gateway names it. */
  readonly name: string;
  readonly tool: ListedTool;
  /** As the language writes a call, such as `notes.search({ query: string })`. */
  readonly signature: string;
  /** The first sentence of its description. */
  readonly summary: string;
  /** Whether it says that it may destroy something. */
  readonly isDestructive: boolean;
}

/** What `tools` itself has in a session, or what would make it look like a promise. */
const RESERVED: ReadonlySet<string> = new Set(["call", "catalogue", "output", "search"]);
const NOWHERE: ReadonlySet<string> = new Set(["then", "__proto__"]);
/** The gateway shows a name with such an end if the upstream's own one was too long or not valid. */
const CHANGED = /-[0-9a-z]{7}$/;

export class ToolCatalogue {
  readonly entries: readonly CatalogueEntry[];
  readonly #byName = new Map<string, CatalogueEntry>();

  /** `only`: the name of the upstream, if there is only one, since its tools do not say it. */
  constructor(tools: readonly ListedTool[], only?: string, syntax: CallSyntax = OBJECT_SYNTAX) {
    const taken = new Set<string>();
    this.entries = tools.map((tool) => {
      const path = freePath(pathOf(tool, only), taken);
      const { annotations } = tool;
      const hints = isObject(annotations) ? annotations : {};
      return {
        path,
        name: tool.name,
        tool,
        signature: signatureOf({ ...tool, name: path }, syntax),
        summary: summaryOf(tool),
        isDestructive: hints["destructiveHint"] === true && hints["readOnlyHint"] !== true,
      };
    });
    for (const entry of this.entries) this.#byName.set(entry.name, entry);
    // A path wins over the shown name of another tool.
    for (const entry of this.entries) this.#byName.set(entry.path, entry);
  }

  /** Finds a tool by its path, as `tools.notes.search` too, or by the name that the gateway shows. */
  find(name: string): CatalogueEntry | undefined {
    return this.#byName.get(name) ?? this.#byName.get(name.replace(/^tools\./, ""));
  }

  /** The best matches first. Without words, the first tools. */
  async search(
    query: string,
    limit: number,
    offset?: number,
  ): Promise<{ found: readonly CatalogueEntry[]; total: number }> {
    const index = await ToolIndex.of(this.entries.map(({ path, tool }) => ({ ...tool, name: path })));
    const { found, total } = index.search(query, limit, offset);
    return { found: found.flatMap(({ tool }) => this.#byName.get(tool.name) ?? []), total };
  }
}

/** What the directory of servers may take of the description of a tool. */
const MAX_DIRECTORY = 600;

/** The servers and how many tools each has, in one sentence for a model: `Servers: files (14 tools), memory (9).` */
export function directoryOf(entries: readonly CatalogueEntry[], missing: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const { path } of entries) {
    const [server = "", ...rest] = path.split(".");
    if (rest.length > 0) counts.set(server, (counts.get(server) ?? 0) + 1);
  }
  const known = [...counts].map(([server, count], at) => {
    const noun = at > 0 ? "" : count === 1 ? " tool" : " tools";
    return `${server.slice(0, 60)} (${count}${noun})`;
  });
  const late = missing.map((server) => `${identifier(server).slice(0, 60)} (not listed yet)`);
  const all = [...known, ...late];
  let length = 0;
  const listed = all.filter((path) => (length += path.length + 2) <= MAX_DIRECTORY);
  const rest = listed.length < all.length ? ` and ${all.length - listed.length} more` : "";
  return all.length === 0 ? "" : ` Servers: ${listed.join(", ")}${rest}.`;
}

function pathOf({ name, _meta: meta }: ListedTool, only: string | undefined): readonly string[] {
  const { [UPSTREAM]: upstream = only, [OWN_NAMES]: names } = isObject(meta) ? meta : {};
  const ownName: unknown = Array.isArray(names) ? names[0] : undefined;
  // A name that ends otherwise was chosen by a person, with the middleware `rename`.
  const isShown = typeof ownName !== "string" || !(name.endsWith(ownName) || CHANGED.test(name));
  const last = identifier(isShown ? name : ownName);
  return typeof upstream === "string" ? [identifier(upstream), last] : [last];
}

/** `sequential-thinking` becomes `sequential_thinking`. */
export function identifier(name: string): string {
  const valid = name.replaceAll(/[^A-Za-z0-9_$]/g, "_");
  return /^[A-Za-z_$]/.test(valid) ? valid : `_${valid}`;
}

function freePath([first = "", ...rest]: readonly string[], taken: Set<string>): string {
  const safe = (part: string): string => (NOWHERE.has(part) ? `${part}_` : part);
  const path = [RESERVED.has(first) ? `${first}_` : first, ...rest].map(safe).join(".");
  let free = path;
  for (let count = 2; taken.has(free); count += 1) free = `${path}_${count}`;
  taken.add(free);
  return free;
}
