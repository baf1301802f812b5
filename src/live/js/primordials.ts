// Built-in functions of JavaScript, saved before the user's code can replace them. This module must be loaded before
// any of that code runs.

/* oxlint-disable typescript/unbound-method -- the methods are uncurried, to be called on any string */

const { bind, call } = Function.prototype;

export const GLOBAL: typeof globalThis = globalThis;
export const NativeError: ErrorConstructor = Error;
export const toText: (value: unknown) => string = String;
export const isArray: (value: unknown) => value is unknown[] = Array.isArray;
export const apply: typeof Reflect.apply = Reflect.apply;

type Uncurried<Rest extends unknown[], Result> = (text: string, ...rest: Rest) => Result;

function uncurryThis<Rest extends unknown[], Result>(
  method: (this: string, ...rest: Rest) => Result,
): Uncurried<Rest, Result> {
  return apply(bind, call, [method]) as Uncurried<Rest, Result>;
}

export const slice: Uncurried<[from: number, to?: number], string> = uncurryThis(String.prototype.slice);
export const split: Uncurried<[by: string], string[]> = uncurryThis(String.prototype.split as (by: string) => string[]);
export const includes: Uncurried<[part: string], boolean> = uncurryThis(String.prototype.includes);
export const startsWith: Uncurried<[part: string], boolean> = uncurryThis(String.prototype.startsWith);
export const indexOf: Uncurried<[part: string], number> = uncurryThis(String.prototype.indexOf);
export const toLowerCase: Uncurried<[], string> = uncurryThis(String.prototype.toLowerCase);
