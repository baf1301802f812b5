// Compat: a server can speak to session-style callers as another document than the specification says. The documents are
// values, in compat-documents.ts, which is loaded only if one is chosen. This file has what is needed before that.

import { didYouMean } from "../core/options.ts";
import type { CompatRules, DocumentName } from "./compat-documents.ts";

/**
 * As which document a server speaks to session-style callers: the specification (`mcp`), the documents of
 * CL-MCP-Server (`cl-mcp`), LLM-Pharo-MCP (`llm-pharo`) or mcp-chain (`chain`), or a widespread protocol reference
 * (`reference`).
 */
export type Compat = "mcp" | DocumentName;

export const COMPATS: readonly Compat[] = ["mcp", "cl-mcp", "llm-pharo", "chain", "reference"];

const loaded = new Map<Compat, CompatRules>();

/**
 * The rules of the document, as a promise until they are loaded; undefined for the specification. Throws a TypeError for
 * a value that does not exist.
 */
export function loadCompat(name: unknown = "mcp"): CompatRules | Promise<CompatRules> | undefined {
  if (name === "mcp") return undefined;
  const compat = COMPATS.find((known): known is DocumentName => known === name);
  if (compat === undefined)
    throw new TypeError(`compat: ${JSON.stringify(name)} is not valid; ${didYouMean(String(name), COMPATS, "values")}`);
  const load = async (): Promise<CompatRules> => {
    const { DOCUMENTS, compatRules } = await import("./compat-documents.ts");
    const rules = compatRules(DOCUMENTS[compat]);
    loaded.set(compat, rules);
    return rules;
  };
  return loaded.get(compat) ?? load();
}
