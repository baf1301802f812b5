// The variables of a URI template as a type, read from the template's text by the compiler, so that a handler
// knows its variables by name. It follows the rules of protocol/uri-template.ts: `{a}` and `{+a}` are always
// there, the others may be left out, and `*` makes a list. Types only.

import type { TemplateMatch } from "../protocol/uri-template.ts";
import type { Flat } from "./schema.ts";

export type TemplateVariables<Text extends string> = string extends Text ? TemplateMatch : Flat<Parts<Text>>;

type Parts<Text extends string> = Text extends `${string}{${infer Body}}${infer Rest}`
  ? Expression<Body> & Parts<Rest>
  : unknown;

type Expression<Body extends string> = Body extends `+${infer Specs}`
  ? Variables<Specs>
  : Body extends `${"#" | "." | "/" | ";" | "?" | "&"}${infer Specs}`
    ? Partial<Variables<Specs>>
    : Variables<Body>;

type Variables<Specs extends string> = Specs extends `${infer First},${infer Rest}`
  ? Variable<First> & Variables<Rest>
  : Variable<Specs>;

type Variable<Spec extends string> = Spec extends `${infer Name}*`
  ? { [Key in Name]: string[] }
  : Spec extends `${infer Name}:${string}`
    ? { [Key in Name]: string }
    : { [Key in Spec]: string };
