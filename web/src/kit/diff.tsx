// Diff: values that a step changed, each as its path with what was there before and after.

import type { JSX } from "preact";
import type { ValueChange } from "../../../src/console/types.ts";
import { changedPart } from "./changed-part.ts";
import { InertText } from "./inert-text.tsx";

export function Diff({ changes }: { readonly changes: readonly ValueChange[] }): JSX.Element {
  return (
    <ul class="diff mono">
      {changes.map((change, index) => (
        <li key={index}>
          <span class="json-key">
            <InertText text={change.path} max={300} />
          </span>
          {change.path === "" ? "" : ": "}
          {isSame(change) ? (
            <span class="soft">differs only in a secret, which is hidden here</span>
          ) : (
            <Sides change={change} />
          )}
        </li>
      ))}
    </ul>
  );
}

/** The API hides secrets on both sides. */
function isSame({ before, after }: ValueChange): boolean {
  return before !== undefined && JSON.stringify(before) === JSON.stringify(after);
}

function Sides({ change: { before, after } }: { readonly change: ValueChange }): JSX.Element {
  const parts = typeof before === "string" && typeof after === "string" ? changedPart(before, after) : undefined;
  if (parts === undefined) {
    return (
      <>
        <Side word="removed" value={before} />
        {before !== undefined && after !== undefined ? <span aria-hidden="true"> → </span> : null}
        <Side word="added" value={after} />
      </>
    );
  }
  return (
    <>
      <span class="soft">
        <InertText text={parts.head} />
      </span>
      {parts.removed === "" ? null : <Side word="removed" value={parts.removed} />}
      {parts.added === "" ? null : <Side word="added" value={parts.added} />}
      <span class="soft">
        <InertText text={parts.tail} />
      </span>
    </>
  );
}

function Side(props: { readonly word: "removed" | "added"; readonly value: unknown }): JSX.Element | null {
  if (props.value === undefined) return null;
  const text = typeof props.value === "string" ? props.value : JSON.stringify(props.value);
  const inner = <InertText text={text === "" ? '""' : text} max={400} />;
  return props.word === "removed" ? <del>{inner}</del> : <ins>{inner}</ins>;
}
