// Requests and notifications by method: what their params are, and what may answer them.

import type { Context, Notification, Request } from "../core/handler.ts";
import type {
  CacheableResult,
  ClientMethods,
  CreateTaskResult,
  DiscoverResult,
  InputRequiredResult,
  MethodName,
  Methods,
  Notifications,
} from "./model/index.ts";

type AllMethods = Methods & ClientMethods;

/** A request whose params were checked when it was received (params.ts). */
export interface RequestOf<Name extends keyof AllMethods> extends Request {
  readonly method: Name;
  readonly params: AllMethods[Name]["params"];
}

/** For a request whose params were checked. */
export function isRequestOf<Name extends keyof AllMethods>(request: Request, method: Name): request is RequestOf<Name> {
  return request.method === method;
}

interface NotificationOf<Name extends keyof Notifications> extends Notification {
  readonly params: NonNullable<Notifications[Name]>;
}

/** For a notification of a server that keeps to the specification; nothing is checked. */
export function isNotificationOf<Name extends keyof Notifications>(
  notification: Notification,
  method: Name,
): notification is NotificationOf<Name> {
  return notification.method === method;
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
