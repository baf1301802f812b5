// The types of the tools of one server, so that a client can be typed by it: `connect<typeof server>(...)`, or with the
// declarations that `catenary types` writes. Types only; they are here because server/ makes them and client/ reads them.

import type { CallToolResult } from "../protocol/model/index.ts";

/** The types of one tool: its arguments and its structured content. */
export interface ToolType {
  /** Its arguments. */
  readonly input: object;
  /** Its structured content. */
  readonly output: unknown;
}

/** The types of the tools of a server by name. Without any declaration: any name, any arguments. */
export interface ToolTypes {
  readonly [name: string]: { readonly input: { readonly [name: string]: unknown }; readonly output: unknown };
}

/** The tools of `typeof server`, of declarations by `catenary types`, or of an unknown server. */
export type ToolsOf<Of> = unknown extends Of
  ? ToolTypes
  : "~tools" extends keyof Of
    ? // A server whose tools were registered in statements of their own: its type knows none of them.
      [keyof NonNullable<Of["~tools"]>] extends [never]
      ? ToolTypes
      : NonNullable<Of["~tools"]>
    : Of;

/** The names of the tools. */
export type ToolName<Tools> = keyof Tools & string;

type InputOf<Tool> = Tool extends { readonly input: infer Input } ? Input : never;
type OutputOf<Tool> = Tool extends { readonly output: infer Output } ? Output : unknown;

/** What follows the name in a call: the arguments, which may be missing if none is required, and options. */
export type ToolCall<Tool, Options> =
  Partial<InputOf<Tool>> extends InputOf<Tool>
    ? [args?: InputOf<Tool>, options?: Options]
    : [args: InputOf<Tool>, options?: Options];

/** The result of a call, with the type of its structured content if that is known. */
export type ToolResult<Tool> =
  unknown extends OutputOf<Tool> ? CallToolResult : CallToolResult & { readonly structuredContent?: OutputOf<Tool> };
