// Shows and lets pass only the tools that declare themselves read-only. A tool is judged by the list that the same caller
// gets: a tool that is in no list of the caller cannot be called, nor can any tool whose list cannot be read.

import { ofTools, strings, type OptionsOf } from "../../core/fields.ts";
import { matchesGlob } from "../../core/text.ts";
import { define, type DefinedMiddleware } from "../define.ts";
import { kindsOf, type Transform } from "../layer.ts";

const OPTIONS = {
  include: ofTools(strings("Names of tools that pass whatever they declare; `*` matches any characters.")),
};

/** Options of `readOnly()`. */
export type ReadOnlyOptions = OptionsOf<typeof OPTIONS>;

/**
 * Hides all tools that do not declare themselves read-only. A call of a hidden one fails as if it did not exist.
 *
 * @example
 * readOnly({ include: ["add_comment"] })
 */
export const readOnly: DefinedMiddleware<[options?: ReadOnlyOptions]> = define({
  name: "read-only",
  summary: "Hides all tools that do not declare themselves read-only.",
  options: OPTIONS,
  transform: createReadOnly,
});

function createReadOnly({ include = [] }: ReadOnlyOptions): Transform {
  const isAllowed = (name: string): boolean => include.some((glob) => matchesGlob(glob, name));
  return {
    kinds: kindsOf(["tools"]),
    needs: (_kind, name) => !isAllowed(name),
    item: (item) => (isAllowed(item.name) || item.facts?.isReadOnly === true ? item : undefined),
  };
}
