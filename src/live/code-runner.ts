// Runs code that calls the tools of a gateway, for code mode: a live server whose only evaluation is `run-code`. What
// one run may call, and what it has called, is in code-run.ts. How a caller finds tools is not known here.

import type { Context, Handler } from "../core/handler.ts";
import type { Tool } from "../protocol/model/index.ts";
import type { CallSyntax } from "../protocol/tool-index.ts";
import { CodeRun, type CodeBudgets, type RunTools } from "./code-run.ts";
import { createLiveServer, evaluationTool, type Live, type LiveOptions } from "./server.ts";
import { required, type GuestTool, type Language } from "./tool.ts";

export type { RunTools } from "./code-run.ts";

export interface CodeRunnerOptions extends LiveOptions, Partial<CodeBudgets> {
  /** Whether the caller is asked before code calls tools that may destroy something. Default: no. */
  readonly confirm?: "destructive" | undefined;
  /** What a caller may call. Called for each run, with a context of that caller. */
  readonly tools: (context: Context) => Promise<RunTools>;
}

export interface CodeRunner {
  /** Answers `tools/call` of `run-code`, and has the resources of the sessions. */
  readonly handler: Handler & Pick<Live, "notify">;
  /** The definition of `run-code`, as it is listed. */
  readonly tool: Tool;
  /** How the code writes a call, if not as JavaScript does. */
  readonly callSyntax: CallSyntax | undefined;
  /** Ends all sessions. */
  close(): Promise<void>;
}

export const RUN_CODE = "run-code";

const DEFAULT_BUDGETS: CodeBudgets = { maxCalls: 100, maxParallel: 8, maxResultBytes: 10_000_000 };

export function createCodeRunner(language: Language, options: CodeRunnerOptions): CodeRunner {
  const { callsTools, callSyntax, title, resources } = language;
  if (callsTools === undefined) throw new TypeError(`Code in ${title} cannot call tools; use another language`);
  const { tools, confirm, maxCalls, maxParallel, maxResultBytes, ...liveOptions } = options;
  const budgets: CodeBudgets = {
    maxCalls: maxCalls ?? DEFAULT_BUDGETS.maxCalls,
    maxParallel: maxParallel ?? DEFAULT_BUDGETS.maxParallel,
    maxResultBytes: maxResultBytes ?? DEFAULT_BUDGETS.maxResultBytes,
  };
  const evaluate: GuestTool = {
    name: RUN_CODE,
    title: "Run code",
    description: callsTools,
    arguments: { code: required() },
    runsCode: true,
  };
  const server = createLiveServer(
    { runtime: language.runtime, title, instructions: "", evaluate, tools: [], ...(resources && { resources }) },
    // Callers have no tools that could use an error that stays open.
    { ...liveOptions, limits: { ...liveOptions.limits, errorHoldMs: 0 } },
    { begin: (context, report) => CodeRun.begin(context, { tools, budgets, confirm, report }) },
  );
  return { handler: server, tool: evaluationTool(evaluate), callSyntax, close: () => server.close() };
}
