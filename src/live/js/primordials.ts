// What the main thread of a guest needs of JavaScript itself, as it was before the user's code could put something else
// in its place. It is loaded before any of that runs. Only what is asked for between two evaluations stands here: this
// is no second standard library.

/* oxlint-disable typescript/unbound-method -- they are freed of what they belong to, to be called on any text */

const { bind, call } = Function.prototype;

export const GLOBAL: typeof globalThis = globalThis;
export const AnyError: ErrorConstructor = Error;
export const toText: (value: unknown) => string = String;
export const isArray: (value: unknown) => value is unknown[] = Array.isArray;
export const apply: typeof Reflect.apply = Reflect.apply;

type Freed<Rest extends unknown[], Result> = (text: string, ...rest: Rest) => Result;

function freed<Rest extends unknown[], Result>(method: (this: string, ...rest: Rest) => Result): Freed<Rest, Result> {
  return apply(bind, call, [method]) as Freed<Rest, Result>;
}

export const slice: Freed<[from: number, to?: number], string> = freed(String.prototype.slice);
export const split: Freed<[by: string], string[]> = freed(String.prototype.split as (by: string) => string[]);
export const includes: Freed<[part: string], boolean> = freed(String.prototype.includes);
export const startsWith: Freed<[part: string], boolean> = freed(String.prototype.startsWith);
export const indexOf: Freed<[part: string], number> = freed(String.prototype.indexOf);
export const toLowerCase: Freed<[], string> = freed(String.prototype.toLowerCase);
