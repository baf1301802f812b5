// Loaded before a measured program with `--import`: reports CPU time and memory of the process each time the parent sends
// "cost", and for "functions" how often each function of the package was called since the last time. Exits when the
// channel closes.

import { Session } from "node:inspector/promises";

const session = new Session();
let isCounting = false;

async function calledFunctions() {
  if (!isCounting) {
    isCounting = true;
    session.connect();
    await session.post("Profiler.enable");
    await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  }
  const { result } = await session.post("Profiler.takePreciseCoverage");
  return result
    .filter(({ url }) => url.includes("/dist/"))
    .flatMap(({ url, functions }) =>
      functions.map(({ functionName, ranges }) => ({
        name: `${url.replace(/.*\//, "")} ${functionName || "(closure)"} ${ranges[0]?.startOffset}`,
        count: ranges[0]?.count ?? 0,
      })),
    )
    .filter(({ count }) => count > 0);
}

async function report(message) {
  if (message === "functions") process.send?.(await calledFunctions());
  if (message !== "cost") return;
  const { user, system } = process.cpuUsage();
  const { maxRSS } = process.resourceUsage();
  process.send?.({
    cpuMs: (user + system) / 1000,
    rssMb: process.memoryUsage.rss() / 1024 ** 2,
    peakMb: maxRSS / 1024,
  });
}

process.on("message", (message) => void report(message));
process.once("disconnect", () => process.exit());
