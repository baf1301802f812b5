// A user's module, JavaScript or TypeScript, imported. Node reads TypeScript itself where it can; otherwise a hook is
// registered, once and only when the first such module is asked for, because it costs a thread. What a module exports
// is not looked at here.

import { register } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { explained } from "./load-fault.ts";
import { isTypeScript } from "./typescript.ts";

let registered = false;

/**
 * Relative to the working directory. Fails with what the module throws; where it cannot be read, with a SyntaxError that
 * begins with file, line and column.
 */
export async function loadModule(file: string): Promise<Record<string, unknown>> {
  const path = resolve(file);
  if (isTypeScript(path) && !isRead()) {
    registered = true;
    register("./typescript-hook.js", import.meta.url);
  }
  try {
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  } catch (error) {
    throw await explained(error, path);
  }
}

/** Whatever runs this very file as TypeScript runs others too. */
function isRead(): boolean {
  const { typescript } = process.features as { readonly typescript?: string | false };
  return registered || (typescript ?? false) !== false || import.meta.url.endsWith(".ts");
}
