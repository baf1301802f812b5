// Every module of ours that is loaded on first use is loaded at the start of a gateway, or cannot be first used by a
// request.

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { readSources, withoutComments, type SourceFile } from "../../../test/support/house/source.ts";

const SOURCES = readSources(fileURLToPath(new URL("../../../", import.meta.url)), "src").filter(
  ({ path }) => !path.endsWith(".test.ts"),
);

/** Files whose imports happen before a gateway serves, or in another process. */
const BEFORE_SERVING: Readonly<Record<string, string>> = {
  "src/index.ts": "the first call of serve() or connect() of a library",
  "src/serve.ts": "serve() itself",
  "src/config/live.ts": "a live server, a sandbox or code mode is created with the gateway",
  "src/config/tool-kinds.ts": "programs and APIs are created with the gateway",
  "src/openapi/document.ts": "a document is read when its server is created",
  "src/live/js/entry.ts": "a language is loaded with its server, that of code mode by preload.ts",
  "src/live/lisp/entry.ts": "the same",
  "src/live/smalltalk/entry.ts": "the same",
  "src/live/js/guest.ts": "in the process of a session",
};

/** The modules of ours that a file loads by import(), relative to the root. */
function lateImports({ path, text }: SourceFile): string[] {
  const calls = withoutComments(text).matchAll(/(?<!typeof )\bimport\(\s*"(\.[^"]+)"\s*\)/g);
  return [...calls].map(([, specifier = ""]) => join(dirname(path), specifier));
}

it("loads at the start of a gateway what is else loaded on first use", () => {
  const preload = SOURCES.find(({ path }) => path === "src/cli/serve/preload.ts");
  const loaded = new Set(preload === undefined ? [] : lateImports(preload));
  const late = SOURCES.filter(({ path }) => !path.startsWith("src/cli/") && !Object.hasOwn(BEFORE_SERVING, path));
  const missing = late.flatMap((file) => lateImports(file).map((module) => ({ from: file.path, module })));
  expect(missing.length).toBeGreaterThan(30);
  expect(missing.filter(({ module }) => !loaded.has(module))).toEqual([]);
});
