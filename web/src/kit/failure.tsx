// The error of a call: its kind, its code, what it says, and its data.

import type { JSX } from "preact";
import type { CallDetail } from "../../../src/console/types.ts";
import { InertText } from "./inert-text.tsx";
import { Json } from "./json.tsx";
import { Tag } from "./marks.tsx";

export function Failure({ error }: { readonly error: NonNullable<CallDetail["error"]> }): JSX.Element {
  return (
    <div class="stack">
      <div class="row wrap">
        {error.kind === undefined ? null : <Tag tone="bad">{error.kind}</Tag>}
        {error.code === undefined ? null : <Tag>{error.code}</Tag>}
      </div>
      <pre>
        <InertText text={error.message} />
      </pre>
      {error.data === undefined ? null : <Json value={error.data} />}
    </div>
  );
}
