// Measures what the user's code does in the main thread, by Node's inspector, which is loaded with the first
// measurement: where time goes, and what stays allocated. What was measured is read elsewhere (see reports).

import { createRequire } from "node:module";
import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";

type Inspector = typeof import("node:inspector");
type Session = import("node:inspector").Session;

/** Bytes between two samples of what is allocated. */
const HEAP_INTERVAL = 16 * 1024;

const memory = process.memoryUsage.bind(process);
let session: Session | undefined;
/** Something was begun, and has not been ended. */
let isMeasuring = false;

/** In this thread every answer is there when `post` returns. */
function post(method: string, params: object = {}): unknown {
  if (session === undefined) {
    const { Session } = createRequire(import.meta.url)("node:inspector") as Inspector;
    session = new Session();
    session.connect();
  }
  let answer: unknown;
  session.post(method, params, (error, result) => {
    answer = error === null ? result : undefined;
  });
  return answer;
}

export interface HeapFound {
  readonly heap: ReturnType<typeof getHeapStatistics>;
  readonly spaces: ReturnType<typeof getHeapSpaceStatistics>;
  readonly memory: NodeJS.MemoryUsage;
  /** Bytes that code has left behind, and who allocated them. */
  readonly grown?: number;
  readonly profile?: unknown;
}

/** Begins to measure; what it returns ends that, and says what was found. */
export function measured(op: string, params: Readonly<Record<string, unknown>>, hasCode: boolean): () => unknown {
  isMeasuring = op === "profile-code" || hasCode;
  const found = op === "profile-code" ? time(params) : heap(params, hasCode);
  return () => {
    const what = found();
    isMeasuring = false;
    return what;
  };
}

/** Ends what was begun and abandoned: it would take time and memory for as long as the process lives. */
export function unmeasured(): void {
  if (!isMeasuring) return;
  post("Profiler.disable");
  post("HeapProfiler.stopSampling");
  isMeasuring = false;
}

function time(params: Readonly<Record<string, unknown>>): () => unknown {
  const interval = typeof params["interval"] === "number" ? params["interval"] : 500;
  post("Profiler.enable");
  post("Profiler.setSamplingInterval", { interval });
  post("Profiler.start");
  return () => {
    const found = post("Profiler.stop") as { readonly profile?: unknown } | undefined;
    post("Profiler.disable");
    return found?.profile;
  };
}

function heap(params: Readonly<Record<string, unknown>>, hasCode: boolean): () => HeapFound {
  const collects = hasCode || params["gc"] === true;
  if (collects) post("HeapProfiler.collectGarbage");
  const before = getHeapStatistics().used_heap_size;
  if (hasCode) post("HeapProfiler.startSampling", { samplingInterval: HEAP_INTERVAL });
  return () => {
    const after = hasCode ? grown(before) : {};
    return { heap: getHeapStatistics(), spaces: getHeapSpaceStatistics(), memory: memory(), ...after };
  };
}

function grown(before: number): Pick<HeapFound, "grown" | "profile"> {
  post("HeapProfiler.collectGarbage");
  const { profile } = (post("HeapProfiler.stopSampling") ?? {}) as { readonly profile?: unknown };
  return { grown: getHeapStatistics().used_heap_size - before, profile };
}
