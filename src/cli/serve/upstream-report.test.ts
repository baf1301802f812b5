// Reports on upstreams: each change once, and sanitized.

import { styleText } from "node:util";
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import type { UpstreamStatus } from "../../chain/upstream/options.ts";
import { EventLog } from "./event-log.ts";
import { UpstreamReport, upstreamTable } from "./upstream-report.ts";

let printed: string[] = [];
const log = (): EventLog => new EventLog({ hasTimes: false });
beforeEach(() => {
  printed = [];
  vi.spyOn(process.stderr, "write").mockImplementation((text) => printed.push(String(text)) > 0);
});
afterEach(() => {
  vi.restoreAllMocks();
});

const status = (state: UpstreamStatus["state"], more: Partial<UpstreamStatus> = {}): UpstreamStatus => ({
  state,
  target: "npx",
  sessions: 0,
  pids: [],
  restarts: 0,
  ...more,
});

it("a report prints each change once", () => {
  const report = new UpstreamReport(log(), true);
  const reason = "npx exited with code 3";
  const crash = { problem: `${reason}; the end of its stderr:\nits last words`, reason };
  report.onState("notes", status("starting"));
  report.onState("notes", status("running", { pids: [7], revision: "R" }));
  report.onState("notes", status("running", { pids: [7], revision: "R", sessions: 2 }));
  report.onState("notes", status("running", { pids: [7, 9], sessions: 2 }));
  report.onState("notes", status("running", { pids: [7], sessions: 1 }));
  report.onState("notes", status("restarting", crash));
  report.onState("notes", status("restarting", crash));
  report.onState("notes", status("restarting", { problem: "another reason", cause: "start", restartInMs: 3_100 }));
  const known = { problem: "another reason" };
  report.onState("notes", status("starting", known));
  report.onState("notes", status("running", { pids: [8], ...known }));
  report.onState("notes", status("idle", known));
  report.onState("notes", status("running", known));
  report.onState("notes", status("failed", crash));
  report.onState("notes", status("closed", crash));
  expect(printed).toEqual([
    "notes started (pid 7, revision R)\n",
    "notes has 2 processes (pid 7, 9)\n",
    "notes crashed; restarts on next use: npx exited with code 3\n",
    "notes failed to start; tried again on next use after 4 s: another reason\n",
    "notes restarted (pid 8)\n",
    "notes stopped (idle)\n",
    "notes started\n",
    "notes crashed too often; not restarted for a while; last error: npx exited with code 3\n",
  ]);
});

it("a report prints only failures and recoveries if it is not verbose", () => {
  const report = new UpstreamReport(log(), false);
  for (const state of ["running", "idle", "running"] as const) report.onState("notes", status(state));
  for (const state of ["restarting", "running"] as const) report.onState("notes", status(state, { problem: "gone" }));
  expect(printed).toEqual(["notes crashed; restarts on next use: gone\n", "notes restarted\n"]);
});

it("a report prints once that a server is unreachable, and that it is reachable again", () => {
  const report = new UpstreamReport(log(), true);
  const problem = "Nothing listens at 127.0.0.1:9";
  for (const again of [1, 2]) {
    report.onState("far", status("starting", again === 1 ? {} : { problem }));
    report.onState("far", status("starting", { problem }));
    report.onState("far", status("idle", { problem }));
  }
  // With a session per caller, there may be none in between.
  report.onState("far", status("starting"));
  report.onState("far", status("starting", { problem }));
  report.onState("far", status("running", { revision: "R" }));
  report.onState("far", status("running", { revision: "R", problem }));
  report.onState("far", status("running", { revision: "R", problem }));
  report.onState("far", status("running", { revision: "R" }));
  report.onState("far", status("running", { revision: "R", sessions: 2 }));
  report.onState("far", status("idle", { problem: "The session is forgotten" }));
  expect(printed).toEqual([
    "far failed: Nothing listens at 127.0.0.1:9\n",
    "far reachable again (revision R)\n",
    "far failed: Nothing listens at 127.0.0.1:9\n",
    "far reachable again (revision R)\n",
    "far failed: The session is forgotten\n",
  ]);
});

it("a report colours its own words at a terminal, and escapes control characters of others", () => {
  const { isTTY } = process.stderr;
  process.stderr.isTTY = true;
  vi.stubEnv("NO_COLOR", "");
  vi.stubEnv("TERM", "xterm");
  onTestFinished(() => {
    process.stderr.isTTY = isTTY;
    vi.unstubAllEnvs();
  });
  const report = new UpstreamReport(log(), true);
  report.onState("notes", status("running", { pids: [7], revision: "R\u001b[2J" }));
  report.onStderr("notes", "\u001b[31mred\n");
  const bold = styleText("bold", "notes", { validateStream: false });
  expect(printed).toEqual([
    `${bold} ${styleText("green", "started", { validateStream: false })} (pid 7, revision R\\x1b[2J)\n`,
    `${styleText("dim", "notes:", { validateStream: false })} \\x1b[31mred\n`,
  ]);
});

it("a report leaves out the announcement of the stderr", () => {
  const reason = "node exited with code 1";
  const problem = `${reason}; the end of its stderr:\nno key`;
  new UpstreamReport(log(), false).onState("notes", status("restarting", { problem, reason }));
  expect(printed).toEqual(["notes crashed; restarts on next use: node exited with code 1\n"]);
});

it("a report prints the first lines of stdout that are not messages", () => {
  const report = new UpstreamReport(log(), false);
  for (const line of ["a", "b".repeat(300), "c", "d", "e", "f", "g"]) report.onNoise("notes", line);
  report.onNoise("other", "h");
  expect(printed).toEqual([
    "notes: stdout (not a message): a\n",
    `notes: stdout (not a message): ${"b".repeat(200)} ...\n`,
    "notes: stdout (not a message): c\n",
    "notes: stdout (not a message): d\n",
    "notes: stdout (not a message): e (further lines are not shown)\n",
    "other: stdout (not a message): h\n",
  ]);
});

it("a report prints each line of stderr after the name of the upstream", () => {
  const report = new UpstreamReport(log(), false);
  report.onStderr("notes", "one\ntw");
  report.onStderr("other", "three\n");
  report.onStderr("notes", "o\nrest");
  report.onState("notes", status("restarting", { problem: "gone" }));
  expect(printed.slice(0, 4)).toEqual(["notes: one\n", "other: three\n", "notes: two\n", "notes: rest\n"]);
});

it("a report prints once that an upstream cannot be listed", () => {
  const report = new UpstreamReport(log(), false);
  const unlisted = "tools/list failed: no key";
  report.onState("notes", status("starting"));
  for (let times = 0; times < 2; times += 1) report.onState("notes", status("running", { unlisted }));
  expect(printed).toEqual(["notes cannot be listed: tools/list failed: no key\n"]);
});

it("a report begins with a table that tells servers apart, and fits a terminal of 80 columns without a loss", () => {
  const upstreams = {
    thinking: status("idle", { target: "npx @modelcontextprotocol/server-sequential-thinking" }),
    github: status("idle", { target: "node /home/someone/projects/github-mcp-server/dist/index.js" }),
    gitlab: status("restarting", {
      target: "node /home/someone/projects/gitlab-mcp-server/dist/index.js",
      cause: "start",
      restartInMs: 900,
      problem: "node exited with code 1: Error: GITLAB_TOKEN is required",
    }),
  };
  const stream = { isTTY: true, columns: 80 } as NodeJS.WriteStream;
  expect(upstreamTable(upstreams, { ...stream, columns: 200 } as NodeJS.WriteStream)).toBe(
    [
      "  thinking  npx .../server-sequential-thinking        idle (starts on first use)",
      "  github    node .../github-mcp-server/dist/index.js  idle (starts on first use)",
      "  gitlab    node .../gitlab-mcp-server/dist/index.js  failed to start; tried again on next use after 1 s: node exited with code 1: Error: GITLAB_TOKEN is required",
      "",
    ].join("\n"),
  );
  expect(upstreamTable(upstreams, stream)).toBe(
    [
      "  thinking  server-sequen...  idle (starts on first use)",
      "  github    github-mcp-se...  idle (starts on first use)",
      "  gitlab    gitlab-mcp-se...  failed to start; tried again on next use after 1 s",
      "    node exited with code 1: Error: GITLAB_TOKEN is required",
      "",
    ].join("\n"),
  );
});

it("a report begins with a table", () => {
  const upstreams = {
    mute: status("running", { unlisted: "tools/list failed: no key" }),
    notes: status("idle"),
    weather: status("running", { target: "https://example.com/mcp", problem: "old" }),
    dead: status("failed", { problem: "no key\nat all" }),
    local: status("idle", { target: "node /home/someone/projects/notes-server/dist/main.js" }),
  };
  expect(upstreamTable(upstreams)).toBe(
    [
      "  mute     npx                                 running; cannot be listed: tools/list failed: no key",
      "  notes    npx                                 idle (starts on first use)",
      "  weather  https://example.com/mcp             running",
      "  dead     npx                                 crashed too often; not restarted for a while: no key at all",
      "  local    node .../notes-server/dist/main.js  idle (starts on first use)",
      "",
    ].join("\n"),
  );
});

it("prints once what a program says at each of its two starts", () => {
  const report = new UpstreamReport(log(), false);
  report.onState("notes", status("starting"));
  report.onStderr("notes", "no key\nsee log-1\n");
  report.onStderr("notes", "no key\nsee log-2\n");
  report.onState("notes", status("restarting", { problem: "gone" }));
  report.onState("notes", status("starting", { problem: "gone" }));
  report.onStderr("notes", "no key\n");
  report.onState("notes", status("running", { problem: "gone" }));
  report.onStderr("notes", "same\nsame\n");
  const said = ["notes: no key\n", "notes: see log-1\n", "notes crashed; restarts on next use: gone\n"];
  expect(printed).toEqual([...said, "notes: no key\n", "notes restarted\n", "notes: same\n", "notes: same\n"]);
});
