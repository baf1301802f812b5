// What a session has: its definitions, which can be put into the textbox, its checkpoints, and its libraries.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../kit/button.tsx";
import { bytes, minute } from "../kit/format.ts";
import { InertText } from "../kit/inert-text.tsx";
import { AskRestore } from "./ask.tsx";
import { can, code, detail } from "./store.ts";

export function Definitions(): JSX.Element | null {
  const known = detail.value;
  if (known === undefined) return null;
  const { definitions, libraries } = known;
  return (
    <section aria-label="Definitions">
      <h2>Definitions</h2>
      {definitions === undefined ? (
        <p class="faint">The session says them when it is idle.</p>
      ) : typeof definitions === "string" ? (
        <pre class="soft">
          <InertText text={definitions} max={3000} />
        </pre>
      ) : definitions.length === 0 ? (
        <p class="faint">Nothing was defined so far.</p>
      ) : (
        <ul class="definitions">
          {definitions.map(({ name, type, at }) => (
            <li key={`${type} ${name}`}>
              <button type="button" class="fold" title="Put it into the textbox" onClick={() => insert(name)}>
                <InertText text={name} max={100} />
              </button>
              <span class="faint">
                {type === undefined ? "" : `${type}, `}
                {minute(at)}
              </span>
            </li>
          ))}
        </ul>
      )}
      {libraries.length === 0 ? null : <p class="soft">Loaded: {libraries.join(", ")}</p>}
    </section>
  );
}

function insert(name: string): void {
  code.value += name;
  document.getElementById("evaluate")?.focus();
}

export function Checkpoints(): JSX.Element | null {
  const known = detail.value;
  const [asked, setAsked] = useState<string>();
  if (known === undefined || !can("restore") || known.checkpoints.length === 0) return null;
  return (
    <section aria-label="Checkpoints">
      <h2>Checkpoints</h2>
      <ul class="definitions">
        {known.checkpoints.map(({ name, at, bytes: size }) => (
          <li key={name}>
            <span class="mono cut">{name}</span>
            <span class="faint">
              {minute(at)} · {bytes(size)}
            </span>
            <Button small label={`Restore ${name}`} onClick={() => setAsked(name)}>
              Restore
            </Button>
          </li>
        ))}
      </ul>
      {asked === undefined ? null : <AskRestore name={asked} onClose={() => setAsked(undefined)} />}
    </section>
  );
}
