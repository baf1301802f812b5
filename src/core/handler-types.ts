// The types of handlers, middleware and options that the entries `catenary`, `catenary/server`, `catenary/client`,
// `catenary/chain` and `catenary/middleware` export.

export type {
  AskOptions,
  CalledItem,
  Caller,
  Context,
  EnvOf,
  EnvOption,
  Handler,
  LogLevel,
  Meta,
  Middleware,
  Notification,
  Observer,
  OptionsWithEnv,
  Params,
  Request,
  Result,
  Session,
  StepRecorder,
  TaskWish,
} from "./handler.ts";
export type { Optional } from "./values.ts";
