// A live server with a caller in front of it, as the tests of live sessions use it: evaluations come back as records,
// other tools as their text, and all is closed at the end, whatever happened.

import { connect, type CallOptions, type Client } from "../../src/client/index.ts";
import type { Evaluation, Live } from "../../src/live/index.ts";
import type { CallToolResult } from "../../src/protocol/model/index.ts";

/** What a call may say beside its code. */
export interface Said {
  readonly session?: string;
  /** Seconds. */
  readonly timeout?: number;
  readonly [argument: string]: unknown;
}

export class Stage {
  readonly live: Live;
  readonly client: Client;
  readonly #tool: string;

  private constructor(live: Live, client: Client, tool: string) {
    this.live = live;
    this.client = client;
    this.#tool = tool;
  }

  static async open(live: Live, language: "lisp" | "js"): Promise<Stage> {
    return new Stage(live, await connect(live), `evaluate-${language}`);
  }

  /** Fails where the answer is no evaluation. */
  async evaluate(code: string, said: Said = {}, options?: CallOptions): Promise<Evaluation> {
    const result = await this.answer(code, said, options);
    if (result.structuredContent === undefined) throw new Error(textOf(result));
    return result.structuredContent as Evaluation;
  }

  /** The answer as it came. */
  answer(code: string, said: Said = {}, options?: CallOptions): Promise<CallToolResult> {
    return this.client.callTool(this.#tool, { code, ...said }, options);
  }

  /** An evaluation in JavaScript that has begun: it has printed something. */
  async begun(code: string, session: string, signal?: AbortSignal): Promise<{ readonly ended: Promise<Evaluation> }> {
    return new Promise((resolve, reject) => {
      const onProgress = (): void => resolve({ ended });
      const options = { onProgress, ...(signal && { signal }) };
      const ended = this.evaluate(`console.log("begun"); ${code}`, { session }, options);
      ended.catch(reject);
    });
  }

  async call(tool: string, said: Said = {}): Promise<string> {
    return textOf(await this.client.callTool(tool, said));
  }

  async close(): Promise<void> {
    await this.client.close();
    await this.live.close();
  }
}

export function textOf({ content }: CallToolResult): string {
  return content.map((block) => ("text" in block ? block.text : "")).join("\n");
}
