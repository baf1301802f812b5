// Which ends a gateway had to do without when it made a list: the gateway says it in the list's `_meta`, where no person
// looks. Here it is found again, for the person as a remark and for programs as it came.

import { UNAVAILABLE, type Unavailable } from "../../chain/router/failures.ts";
import { isObject } from "../../core/objects.ts";
import { firstLine } from "./end-report.ts";
import { oneLine } from "../terminal/harmless.ts";

/** A list, as far as it says this. */
interface Listed {
  readonly _meta?: { readonly [key: string]: unknown };
}

/** Each end once. */
export function missingUpstreams(...lists: readonly Listed[]): Unavailable[] {
  const said = lists.flatMap(({ _meta }) => {
    const value: unknown = isObject(_meta) ? _meta[UNAVAILABLE] : undefined;
    return Array.isArray(value) ? value.filter(isMissing) : [];
  });
  return [...new Map(said.map((one) => [one.end, one])).values()];
}

/** A stranger may write anything there. */
function isMissing(one: unknown): one is Unavailable {
  return isObject(one) && typeof one["end"] === "string" && typeof one["message"] === "string";
}

export function remarkOn(missing: readonly Unavailable[], note: (text: string) => void): void {
  for (const { end, message } of missing) note(`What ${oneLine(end)} has is missing: ${firstLine(message)}`);
}

/** For --json: beside what there is. */
export function metaOf(missing: readonly Unavailable[]): Listed {
  return missing.length === 0 ? {} : { _meta: { [UNAVAILABLE]: missing } };
}
