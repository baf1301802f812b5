// Prints what a live session prints between evaluations, for example from timers and threads, as soon as it does: it
// subscribes to the resource of that output. The next result has the same output, so what was printed is left out there.

import type { Client } from "../../client/client.ts";
import type { Subscription } from "../../client/subscriptions.ts";
import { lastChars } from "../../core/text.ts";
import { MAX_BACKGROUND_LENGTH, PRINTED } from "../../live/output.ts";

const MARK = "[background] ";

export class BackgroundEcho {
  readonly #client: Client;
  readonly #template: string | undefined;
  readonly #print: (text: string) => void;
  #subscription: Subscription | undefined;
  /** How many characters the session had printed at the last read. */
  #total = 0;
  /** The end of what was printed since the last evaluation. */
  #output = "";

  /** `template`: the URI template of the resource; without one, nothing is printed. */
  constructor(client: Client, template: string | undefined, print: (text: string) => void) {
    this.#client = client;
    this.#template = template;
    this.#print = print;
  }

  /** Follows the output of this session from now on, and of no other. */
  async follow(session: string): Promise<void> {
    await this.close();
    this.#output = "";
    this.#total = 0;
    const uri = this.#template?.replace("{name}", session);
    if (uri === undefined || this.#client.capabilities.resources?.subscribe !== true) return;
    // Without a subscription, the output comes with the next result.
    const opened = this.#client.listen(
      { resourceSubscriptions: [uri] },
      () => void this.#read(uri).catch(() => undefined),
    );
    this.#subscription = await opened.catch(() => undefined);
  }

  async #read(uri: string): Promise<void> {
    const subscription = this.#subscription;
    const { contents } = await this.#client.readResource(uri);
    const [content] = contents;
    if (content === undefined || !("text" in content)) return;
    const { text, _meta: meta } = content;
    const total = Number(meta?.[PRINTED] ?? 0);
    const fresh = Math.min(text.length, total - this.#total);
    if (fresh <= 0 || subscription !== this.#subscription) return;
    this.#total = total;
    const added = text.slice(-fresh);
    this.#output = lastChars(this.#output + added, MAX_BACKGROUND_LENGTH);
    this.#print(added);
  }

  /** The text of an evaluation without the background output that was printed already. */
  withoutShown(text: string): string {
    const output = this.#output;
    this.#output = "";
    const at = text.search(/^\[background\] /m);
    if (at < 0) return text;
    // The result has no newline at the end of a part.
    const rest = `${text.slice(at + MARK.length)}\n`;
    // It begins with the end of what was shown, since an evaluation of another client may have taken the part before.
    let from = 0;
    while (from < output.length && !rest.startsWith(output.slice(from))) from += 1;
    if (from === output.length) return text;
    return text.slice(0, at) + rest.slice(output.length - from, -1).replace(/^\n/, "");
  }

  async close(): Promise<void> {
    const subscription = this.#subscription;
    this.#subscription = undefined;
    await subscription?.close();
  }
}
