// Which ends a gateway did without: each is told once, and what a stranger writes in their place is not believed.

import { expect, it } from "vitest";
import { metaOf, missingUpstreams, remarkOn } from "./missing-ends.ts";

const KEY = "catenary/unavailable";
const GONE = { end: "notes", message: "The end notes failed: node exited with code 1; the end of its stderr:\nno key" };

it("is told to the person in a line, and to programs as it came", () => {
  const missing = missingUpstreams({ _meta: { [KEY]: [GONE] } }, { _meta: { [KEY]: [GONE] } }, {});
  expect(missing).toEqual([GONE]);
  const said: string[] = [];
  remarkOn(missing, (text) => said.push(text));
  expect(said).toEqual(["What notes has is missing: The end notes failed: node exited with code 1"]);
  expect(metaOf(missing)).toEqual({ _meta: { [KEY]: [GONE] } });
  expect(metaOf([])).toEqual({});
});

it("is nothing where something else stands there", () => {
  const odd = [7, "notes", {}, [null, { end: 3, message: "x" }, { end: "x" }]];
  expect(missingUpstreams(...odd.map((value) => ({ _meta: { [KEY]: value } })), { _meta: 7 as never })).toEqual([]);
});
