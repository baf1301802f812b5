// InertText: a text of a server or a tool, made harmless. Nothing in it is markup. Escape sequences of terminals are left
// out, and characters that are not visible or change the direction are shown by their code points, so that what a person
// reads is what is there. A long text is cut, with a button that shows more.

import { Fragment, type JSX } from "preact";
import { useState } from "preact/hooks";
import { inertParts } from "./inert.ts";

const MAX = 4000;

export function InertText(props: { readonly text: string; readonly max?: number }): JSX.Element {
  const [shown, setShown] = useState(props.max ?? MAX);
  const { text } = props;
  const parts = inertParts(text.length > shown ? text.slice(0, shown) : text);
  const rest = text.length - shown;
  return (
    <bdi>
      {parts.map((part, index) =>
        part.isMark ? (
          <span key={index} class="mark" title="A character that would not be seen">
            {part.text}
          </span>
        ) : (
          <Fragment key={index}>{part.text}</Fragment>
        ),
      )}
      {rest > 0 ? (
        <>
          …{" "}
          <button type="button" class="link" onClick={() => setShown(shown * 10)}>
            {rest.toLocaleString("en")} more characters
          </button>
        </>
      ) : null}
    </bdi>
  );
}
