// The declarations of the package two levels deep with the newest compiler, and one level deep with the last one that is
// written in JavaScript, which is slow.

import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { declarationErrors } from "./declarations.ts";
import { missingRuntimes } from "./runtimes.ts";

const tscIn = (folder: string): string =>
  fileURLToPath(new URL(`${folder}/node_modules/typescript/bin/tsc`, import.meta.url));

it("the newest compiler can name everything that is inferred from an entry, two levels deep", () => {
  expect(declarationErrors(tscIn("../../.."), true)).toEqual([]);
});

const reason = await missingRuntimes();

it.skipIf(reason !== undefined)(
  `TypeScript 5.9${reason === undefined ? "" : ` (${reason})`} can name everything that is inferred from an entry`,
  () => {
    expect(declarationErrors(tscIn("packages"), false)).toEqual([]);
  },
);
