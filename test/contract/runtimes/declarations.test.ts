// What users export of each entry, in projects with `declaration` and `composite`.

import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { declarationErrors, entries, entriesWithSamples } from "./declarations.ts";

const TSC = fileURLToPath(new URL("../../../node_modules/typescript/bin/tsc", import.meta.url));

it("every entry of the package has a sample of what users export", () => {
  expect(entriesWithSamples()).toEqual(entries());
});

it("the compiler can name everything that a project with declarations infers from an entry", () => {
  expect(declarationErrors(TSC, false)).toEqual([]);
});
