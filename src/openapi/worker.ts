// Converts one OpenAPI document in a thread of its own, which load.ts ends if it takes too long.

import { parentPort, workerData } from "node:worker_threads";
import { errorMessage } from "../core/values.ts";
import { type Converted, convertText } from "./convert.ts";
import type { Conversion } from "./load.ts";

const { text, source, options } = workerData as Conversion;
const answer = await convertText(text, source, options).then(
  (converted: Converted) => ({ converted }),
  (error: unknown) => ({ problem: errorMessage(error) }),
);
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- ports of threads have no origin
parentPort?.postMessage(answer);
