// The second half of `npm run load`: 100 sessions of Lisp and then 50 of JavaScript behind one `catenary serve`, all at
// once, each with 100 evaluations. Checks every result, measures latency and memory, and checks that no process is left.
// Stops after five minutes per language at the latest.

import { spawnSync } from "node:child_process";
import { runLiveSessions } from "./live-sessions.ts";

const EVALUATIONS = 100;
const TIMEOUT_MS = 300_000;
const LANGUAGES = [
  { language: "lisp", sessions: 100 },
  { language: "js", sessions: 50 },
] as const;

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const onProgress = (line: string): void => void process.stderr.write(`${line}\n`);

function check(isGood: boolean, text: string): void {
  print(`${isGood ? "ok  " : "FAIL"} ${text}`);
  if (!isGood) process.exitCode = 1;
}

for (const { language, sessions } of LANGUAGES) {
  if (language === "lisp" && spawnSync("sbcl", ["--version"]).status !== 0) {
    print("     SBCL is not installed (apt-get install sbcl): its sessions were skipped");
    continue;
  }
  const all = sessions * EVALUATIONS;
  const figures = await runLiveSessions({
    language,
    sessions,
    evaluations: EVALUATIONS,
    timeoutMs: TIMEOUT_MS,
    onProgress,
  });
  const { wrong, right, running, remaining, startSeconds, perSecond, p50Ms, p99Ms, maxMs, peakMb } = figures;
  print(`     ${language}: ${sessions} sessions were open after ${startSeconds.toFixed(1)} s`);
  print(
    `     ${perSecond.toFixed(0)} evaluations a second; p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms, ` +
      `longest ${maxMs.toFixed(0)} ms`,
  );
  print(`     peak memory of the gateway: ${peakMb.toFixed(0)} MB`);
  check(right === all, `${right} of ${all} results are right${wrong.map((problem) => `; ${problem}`).join("")}`);
  check(Number.isNaN(running) || running >= sessions, `${running} processes ran behind it`);
  check(remaining.length === 0, `${remaining.length} of them still run afterwards`);
}
