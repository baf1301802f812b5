// What Node asks, on a thread of its own, for the source of each module, once `load-module` has registered this file.
// Only TypeScript is answered for; everything else goes on to Node.

import { readFile } from "node:fs/promises";
import type { LoadHook } from "node:module";
import { fileURLToPath } from "node:url";
import { compile, isTypeScript } from "./typescript.ts";

export const load: LoadHook = async (url, context, next) => {
  const file = url.startsWith("file:") ? fileURLToPath(url) : "";
  if (!isTypeScript(file)) return next(url, context);
  const { code } = await compile(await readFile(file, "utf8"), file);
  return { format: "module", source: code, shortCircuit: true };
};
