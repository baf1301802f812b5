// Completion: what could stand in an argument of a prompt or in a variable of a resource template.
// Types only; who completes what is the server's matter.

import type { CompleteResultBase, RequestParams } from "./results.ts";

export interface PromptReference {
  readonly type: "ref/prompt";
  readonly name: string;
  readonly title?: string;
}

export interface ResourceTemplateReference {
  readonly type: "ref/resource";
  /** An address or a template of addresses. */
  readonly uri: string;
}

export interface CompleteParams extends RequestParams {
  readonly ref: PromptReference | ResourceTemplateReference;
  readonly argument: { readonly name: string; readonly value: string };
  /** The arguments that are already chosen. */
  readonly context?: { readonly arguments?: { readonly [name: string]: string } };
}

export interface CompleteResult extends CompleteResultBase {
  readonly completion: {
    /** At most 100. */
    readonly values: readonly string[];
    readonly total?: number;
    readonly hasMore?: boolean;
  };
}
