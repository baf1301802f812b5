// Profiles the user's code in the main thread with Node's inspector: CPU time and retained allocations. tool-texts.ts turns
// the profiles into text.

import process from "node:process";
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from "node:v8";
// Only to get the function `gc`, which a context has if it was created while the flag was set.
// oxlint-disable-next-line no-restricted-imports
import { runInNewContext } from "node:vm";
import { post } from "./inspector.ts";

/** The number of allocated bytes between two heap samples. */
const HEAP_INTERVAL = 16 * 1024;

/** Whether a profile was started and not stopped. */
let isProfiling = false;

let gc: (() => void) | undefined;

/** Collects all garbage before it returns. The inspector's collectGarbage does so later in some versions of Node. */
export function collectGarbage(): void {
  if (gc === undefined) {
    setFlagsFromString("--expose-gc");
    gc = runInNewContext("gc") as () => void;
    setFlagsFromString("--no-expose-gc");
  }
  gc();
}

export interface HeapProfile {
  readonly heap: ReturnType<typeof getHeapStatistics>;
  readonly spaces: ReturnType<typeof getHeapSpaceStatistics>;
  readonly memory: NodeJS.MemoryUsage;
  /** How many bytes the heap has grown, and the functions that allocated what is still in use. */
  readonly grown?: number;
  readonly profile?: unknown;
}

/** Starts profiling. The returned function stops it and returns the profile. */
export function startProfiling(op: string, params: Readonly<Record<string, unknown>>, hasCode: boolean): () => unknown {
  isProfiling = op === "profile-code" || hasCode;
  const stop = op === "profile-code" ? profileTime(params) : profileHeap(params, hasCode);
  return () => {
    const profile = stop();
    isProfiling = false;
    return profile;
  };
}

/** Stops the profiler after a job was abandoned, since it would cost time and memory as long as the process runs. */
export function abortProfiling(): void {
  if (!isProfiling) return;
  post("Profiler.disable");
  post("HeapProfiler.stopSampling");
  isProfiling = false;
}

function profileTime(params: Readonly<Record<string, unknown>>): () => unknown {
  const interval = typeof params["interval"] === "number" ? params["interval"] : 500;
  post("Profiler.enable");
  post("Profiler.setSamplingInterval", { interval });
  post("Profiler.start");
  return () => {
    const stopped = post("Profiler.stop") as { readonly profile?: unknown } | undefined;
    post("Profiler.disable");
    return stopped?.profile;
  };
}

function profileHeap(params: Readonly<Record<string, unknown>>, hasCode: boolean): () => HeapProfile {
  if (hasCode || params["gc"] === true) collectGarbage();
  const before = getHeapStatistics().used_heap_size;
  if (hasCode) post("HeapProfiler.startSampling", { samplingInterval: HEAP_INTERVAL });
  return () => {
    const growth = hasCode ? heapGrowth(before) : {};
    return { heap: getHeapStatistics(), spaces: getHeapSpaceStatistics(), memory: process.memoryUsage(), ...growth };
  };
}

function heapGrowth(before: number): Pick<HeapProfile, "grown" | "profile"> {
  collectGarbage();
  const { profile } = (post("HeapProfiler.stopSampling") ?? {}) as { readonly profile?: unknown };
  return { grown: getHeapStatistics().used_heap_size - before, profile };
}
