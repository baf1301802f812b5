// What the handlers of tools and resources may return, for the compiler. Almost any value may be data, so the types
// accept everything but what result-builder.ts and resources.ts would refuse: content blocks and contents that are wrong.

import type { Meta } from "../core/handler.ts";
import type { ContentBlock, ResourceContents, ResourceLink } from "../protocol/model/index.ts";
import type { InputRequired } from "./input-required.ts";
import type { SchemaInput } from "./schema.ts";

/** A content block of a result. A resource link without a name gets its URI as the name. */
export type ReturnedBlock = ContentBlock | (Omit<ResourceLink, "name"> & { readonly name?: string });

/** A whole result, for a tool that returns more than a value. */
export interface ToolAnswer {
  readonly content: readonly ReturnedBlock[];
  /** Any JSON value that matches the tool's output schema. */
  readonly structuredContent?: unknown;
  readonly isError?: boolean | undefined;
  readonly _meta?: Meta | undefined;
}

/** Any value. Unlike `unknown`, the compiler keeps the other members of a union with it, and suggests them. */
type AnyValue = {} | null | undefined | void;

declare const NEVER: unique symbol;

/**
 * No value has this type. It makes the compiler infer the `type` of blocks in a bare array as a literal, while it does
 * not know yet whether the tool has an `output`.
 */
type BlockContext = ReturnedBlock & { readonly [NEVER]: never };

/** What the handler of a tool may return; see also `CheckedHandler`. */
export type ToolReturn<Output> =
  | ToolAnswer
  | InputRequired
  | readonly [BlockContext, ...BlockContext[]]
  | (undefined extends Output ? readonly ReturnedBlock[] | AnyValue : SchemaInput<Output>);

/** Whole contents, for a resource that returns more than a value. */
export interface ResourceAnswer {
  readonly contents: readonly ResourceContents[];
  readonly _meta?: Meta | undefined;
}

/** What the handler of a resource may return; see also `CheckedReader`. */
export type ResourceReturn = ResourceAnswer | InputRequired | AnyValue;

/** Makes it a compile error that the handler of a tool without `output` returns wrong content blocks. */
export type CheckedHandler<Run, Output> = undefined extends Output
  ? Replaced<Run, WrongResult<Returned<Run>>, ToolAnswer>
  : unknown;

/** Makes it a compile error that the handler of a resource returns wrong contents. */
export type CheckedReader<Read> = Replaced<Read, WrongContents<Returned<Read>>, ResourceAnswer>;

type Returned<Run> = Run extends (...args: never) => infer Value ? Awaited<Value> : never;

/** A function that returns `Right` instead of `Wrong`, if there is anything wrong. */
type Replaced<Run, Wrong, Right> = [Wrong] extends [never]
  ? unknown
  : (...args: never) => Exclude<Returned<Run>, Wrong> | Right | Promise<Exclude<Returned<Run>, Wrong> | Right>;

/** The members of the type `Value` that are whole results or arrays of blocks with a wrong block. */
type WrongResult<Value> = Value extends { readonly content: infer Content }
  ? [WrongContent<Content, Value>] extends [never]
    ? never
    : Value
  : Value extends readonly (infer Item)[]
    ? [MeantAsBlock<Item>] extends [never]
      ? never
      : [WrongBlock<Item>] extends [never]
        ? never
        : Value
    : never;

/** The items of a bare array that show that it is content and not data: they have the type of a block, or nearly. */
type MeantAsBlock<Item> = Item extends { readonly type: infer Type extends string }
  ? string extends Type
    ? never
    : Type extends BlockType
      ? Item
      : Item extends SendableFields
        ? IsMisspelt<Type> extends true
          ? Item
          : never
        : never
  : never;

type BlockType = SendableBlock["type"];
type SendableFields = SendableBlock extends infer Block ? (Block extends unknown ? Omit<Block, "type"> : never) : never;

/** Whether the type is that of a block in capitals, or with a character too few or too many. */
type IsMisspelt<Type extends string> =
  Lowercase<Type> extends BlockType | Shorter<BlockType>
    ? true
    : [Shorter<Type> & BlockType] extends [never]
      ? false
      : true;
type Shorter<Text extends string, Before extends string = ""> = Text extends `${infer First}${infer Rest}`
  ? `${Before}${Rest}` | Shorter<Rest, `${Before}${First}`>
  : never;

/** `content` that is not an array is data, if the object has other fields than a result. */
type WrongContent<Content, Whole> = Content extends readonly (infer Block)[]
  ? WrongBlock<Block>
  : IsVague<Content> extends true
    ? never
    : keyof Whole extends "content" | "structuredContent" | "isError" | "_meta"
      ? Content
      : never;

/** A block whose `type` is any string may be right. */
type WrongBlock<Block> = Block extends { readonly type: infer Type }
  ? string extends Type
    ? never
    : Block extends SendableBlock
      ? never
      : Block
  : IsVague<Block> extends true
    ? never
    : Block;

/** Whether a type says too little to call its values wrong: `unknown`, `object`, a record. */
type IsVague<Of> = object extends Of ? true : string extends keyof Of ? true : false;

type SendableBlock =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image" | "audio"; readonly data: string; readonly mimeType: string }
  | { readonly type: "resource"; readonly resource: SendableContents }
  | { readonly type: "resource_link"; readonly uri: string };

type SendableContents =
  | { readonly uri: string; readonly text: string }
  | { readonly uri: string; readonly blob: string };

/** An object with `contents` is data, unless it has no other fields and each item has a URI. */
type WrongContents<Value> = Value extends { readonly contents: readonly (infer Item)[] }
  ? keyof Value extends "contents" | "_meta"
    ? [Item] extends [{ readonly uri: string }]
      ? [Item] extends [SendableContents]
        ? never
        : Value
      : never
    : never
  : never;
