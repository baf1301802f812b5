// A live server with a client connected to it, for tests: evaluations come back as records, other tools as text.

import { connect, type CallOptions, type Client } from "../../../src/client/index.ts";
import type { Evaluation, Live } from "../../../src/live/index.ts";
import type { CallToolResult } from "../../../src/protocol/model/index.ts";

/** Arguments of a call besides its code. */
export interface CallArguments {
  readonly session?: string;
  /** Seconds. */
  readonly timeout?: number;
  readonly [argument: string]: unknown;
}

/** An evaluation with what its text says. */
export interface EvaluationWithText extends Evaluation {
  readonly text: string;
  readonly values: readonly string[];
  readonly stdout: string;
  readonly notice?: string;
  readonly background?: string;
}

export class LiveFixture {
  readonly live: Live;
  readonly client: Client;
  readonly #tool: string;

  private constructor(live: Live, client: Client, tool: string) {
    this.live = live;
    this.client = client;
    this.#tool = tool;
  }

  static async open(live: Live, language: "lisp" | "js" | "smalltalk"): Promise<LiveFixture> {
    return new LiveFixture(live, await connect(live), `evaluate-${language}`);
  }

  /** Throws if the result is not an evaluation. */
  async evaluate(code: string, args: CallArguments = {}, options?: CallOptions): Promise<EvaluationWithText> {
    return withText(await this.answer(code, args, options));
  }

  /** The result as the client gets it. */
  answer(code: string, args: CallArguments = {}, options?: CallOptions): Promise<CallToolResult> {
    return this.client.callTool(this.#tool, { code, ...args }, options);
  }

  /** Starts an evaluation in JavaScript and resolves when it has printed something. */
  async begun(
    code: string,
    session: string,
    signal?: AbortSignal,
  ): Promise<{ readonly ended: Promise<EvaluationWithText> }> {
    return new Promise((resolve, reject) => {
      const onProgress = (): void => resolve({ ended });
      const options = { onProgress, ...(signal && { signal }) };
      const ended = this.evaluate(`console.log("begun"); ${code}`, { session }, options);
      ended.catch(reject);
    });
  }

  async call(tool: string, args: CallArguments = {}): Promise<string> {
    return textOf(await this.client.callTool(tool, args));
  }

  async close(): Promise<void> {
    await this.client.close();
    await this.live.close();
  }
}

export function textOf({ content }: CallToolResult): string {
  return content.map((block) => ("text" in block ? block.text : "")).join("\n");
}

/** Throws if the result is not an evaluation. */
export function withText(result: CallToolResult): EvaluationWithText {
  const text = textOf(result);
  if (result.structuredContent === undefined) throw new Error(text);
  const [, notice] = /^\[Notice\] (.*(?:\nThe state of session .*)?)/.exec(text) ?? [];
  const [, background] = /^\[background\] (.*)/m.exec(text) ?? [];
  const [, stdout = ""] =
    /^(?:\[Notice\] .*\n(?:The state of session .*\n)?)?(?:\[background\] .*\n)?([^]*?)(?:^|\n)(?:=> |; No values|\[(?:stderr|Warning|ERROR|TIMEOUT|INTERRUPTED|LOST)\] )/.exec(
      text,
    ) ?? [];
  const [, printed] = /(?:^|\n)=> ([^]*)$/.exec(text) ?? [];
  const values = printed === undefined ? [] : printed.split("\n=> ").map((one) => one.replace(/ \[handle \d+\]$/, ""));
  const found = { ...(notice !== undefined && { notice }), ...(background !== undefined && { background }) };
  return { ...(result.structuredContent as Evaluation), text, values, stdout, ...found };
}
