// What a user's module offers to be served: a server, or any other handler. All of them are functions.

/** In the order in which they are looked for. */
const EXPORTS = ["default", "chain", "server"] as const;

type Callable = (...args: never[]) => unknown;

/** What a CommonJS module exports may stand one level down, in its default. */
export function exportedFunction(module: Readonly<Record<string, unknown>>): Callable | undefined {
  return places(module)
    .flatMap((place) => EXPORTS.map((name) => place[name]))
    .find((value) => typeof value === "function") as Callable | undefined;
}

/** The module itself, and what is inside its default. */
export function places(module: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>[] {
  const inner = module["default"];
  return typeof inner === "object" && inner !== null ? [module, inner as Record<string, unknown>] : [module];
}
