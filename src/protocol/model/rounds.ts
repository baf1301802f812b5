// Rounds: an end that needs something of its caller answers with the questions; the caller asks again with
// the answers. Types only; dialogue/rounds turns these into asks in mid-call and back.

import type { Meta } from "../../core/handler.ts";
import type { ElicitParams, ElicitResult } from "./elicitation.ts";
import type { RequestParams } from "./results.ts";
import type { ListRootsResult } from "./roots.ts";
import type { CreateMessageParams, CreateMessageResult } from "./sampling.ts";

export type InputRequest =
  | { readonly method: "elicitation/create"; readonly params: ElicitParams }
  | { readonly method: "sampling/createMessage"; readonly params: CreateMessageParams }
  | { readonly method: "roots/list"; readonly params?: RequestParams };

export type InputResponse = ElicitResult | CreateMessageResult | ListRootsResult;

/** By keys that the end chooses; the answers come under the same keys. */
export type InputRequests = { readonly [key: string]: InputRequest };
export type InputResponses = { readonly [key: string]: InputResponse };

export interface InputRequiredResult {
  readonly resultType: "input_required";
  readonly inputRequests?: InputRequests;
  /** Opaque to the caller, which gives it back as it came. */
  readonly requestState?: string;
  readonly _meta?: Meta;
  readonly [key: string]: unknown;
}

/** Params of the requests that may be answered by `input_required`. */
export interface AnsweredParams extends RequestParams {
  readonly inputResponses?: InputResponses;
  readonly requestState?: string;
}
