// Runs before each test file if RECORD_WIRE names a folder: records what passes on the wire, into a file in it for each
// test file. Recording into the same folder again adds to it, so that it has what only some runs have.

import { relative } from "node:path";
import { configureGlobal } from "fast-check";
import { afterAll, beforeAll, expect } from "vitest";
import { memoryPair } from "../../../src/transport/memory.ts";
import { hookMemory, hookProcess, recordingOf, saveRecording, startRecording } from "./recorder.ts";

const folder = process.env["RECORD_WIRE"];
const HOOKED = Symbol.for("catenary.test.wire");

if (folder !== undefined) {
  const globals = globalThis as Record<symbol, unknown>;
  if (globals[HOOKED] === undefined) {
    globals[HOOKED] = true;
    hookProcess();
    hookMemory(memoryPair()[0]);
  }
  // Properties make the same cases in each run.
  configureGlobal({ seed: 1 });
  beforeAll(startRecording);
  afterAll(() => saveRecording(recordingOf(folder, relative(process.cwd(), expect.getState().testPath ?? "unknown"))));
}
