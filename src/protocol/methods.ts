// The requests that a server handles, by method: what their params are, and what may answer them. Types only.

import type { Context, Request } from "../core/handler.ts";
import type {
  CacheableResult,
  CreateTaskResult,
  DiscoverResult,
  InputRequiredResult,
  MethodName,
  Methods,
} from "./model/index.ts";

/** A request whose params were checked when it was received (params.ts). */
export interface RequestOf<Name extends MethodName> extends Request {
  readonly method: Name;
  readonly params: Methods[Name]["params"];
}

/** The answers that differ from the result of the method. */
interface OtherAnswers {
  /** The connection adds the supported revisions. */
  "server/discover": CacheableResult & Pick<DiscoverResult, "capabilities" | "instructions">;
  "tools/call": Methods["tools/call"]["result"] | InputRequiredResult | CreateTaskResult;
  "prompts/get": Methods["prompts/get"]["result"] | InputRequiredResult;
  "resources/read": Methods["resources/read"]["result"] | InputRequiredResult;
}

export type AnswerOf<Name extends MethodName> = Name extends keyof OtherAnswers
  ? OtherAnswers[Name]
  : Methods[Name]["result"];

export type MethodHandler<Name extends MethodName> = (
  request: RequestOf<Name>,
  context: Context,
) => AnswerOf<Name> | Promise<AnswerOf<Name>>;

/** A handler for each of the methods. */
export type MethodTable<Names extends MethodName> = { readonly [Name in Names]: MethodHandler<Name> };
