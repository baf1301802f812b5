// `npm run load`, its second half: 100 sessions of SBCL and then 50 of JavaScript behind one `catenary serve`, each with
// 100 evaluations, all sessions at once. Whether each answer is the one that was asked for, what it costs the program
// that stands before them, and whether anything is left running. It ends by itself, within five minutes a language.

import { spawnSync } from "node:child_process";
import { liveCrowd, type CrowdOptions } from "./live-crowd.ts";

const EVALUATIONS = 100;
const LONGEST_MS = 300_000;
const CROWDS = [
  { language: "lisp", sessions: 100 },
  { language: "js", sessions: 50 },
] as const;

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const tell: CrowdOptions["tell"] = (text) => void process.stderr.write(`${text}\n`);

function hold(isTrue: boolean, text: string): void {
  say(`${isTrue ? "ok  " : "FAIL"} ${text}`);
  if (!isTrue) process.exitCode = 1;
}

for (const { language, sessions } of CROWDS) {
  if (language === "lisp" && spawnSync("sbcl", ["--version"]).status !== 0) {
    say("     SBCL is not here (apt-get install sbcl): its sessions are left out");
    continue;
  }
  const all = sessions * EVALUATIONS;
  const figures = await liveCrowd({ language, sessions, evaluations: EVALUATIONS, longestMs: LONGEST_MS, tell });
  const { wrong, right, living, left, startSeconds, perSecond, p50Ms, p99Ms, longestMs, peakMb } = figures;
  say(`     ${language}: ${sessions} sessions had begun after ${startSeconds.toFixed(1)} s`);
  say(
    `     ${perSecond.toFixed(0)} evaluations a second; p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms, ` +
      `longest ${longestMs.toFixed(0)} ms`,
  );
  say(`     memory of the program before them: at most ${peakMb.toFixed(0)} MB`);
  hold(right === all, `${right} of ${all} answers are right${wrong.map((one) => `; ${one}`).join("")}`);
  hold(Number.isNaN(living) || living >= sessions, `${living} processes stood behind it`);
  hold(left.length === 0, `${left.length} of them are left afterwards`);
}
