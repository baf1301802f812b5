// Json: a value as a tree that folds. Strings are inert, long ones are cut, and what is large or deep is drawn when a
// person opens it. `onPick` makes every path a button, for pages that do something with one.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { plural } from "./format.ts";
import { InertText } from "./inert-text.tsx";

export interface JsonProps {
  readonly value: unknown;
  /** How many levels are open at first. */
  readonly open?: number;
  /** What stands before it. */
  readonly name?: string;
}

/** How many entries of an array or object are drawn at once. */
const PAGE = 100;
/** What has no more characters than this as JSON stands on one line. */
const SHORT = 60;
const MAX_STRING = 1000;

export function Json(props: JsonProps): JSX.Element {
  return (
    <div class="json mono">
      <Value value={props.value} open={props.open ?? 3} {...(props.name === undefined ? {} : { name: props.name })} />
    </div>
  );
}

type Entries = readonly (readonly [string | undefined, unknown])[];

function Value(props: { readonly value: unknown; readonly open: number; readonly name?: string }): JSX.Element {
  const { value, name } = props;
  const isTree = typeof value === "object" && value !== null;
  if (!isTree || isShort(value)) {
    return (
      <div class="json-line">
        <Name name={name} />
        <Inline value={value} />
      </div>
    );
  }
  return <Tree {...props} value={value} />;
}

function Tree(props: { readonly value: object; readonly open: number; readonly name?: string }): JSX.Element {
  const [isOpen, setIsOpen] = useState(props.open > 0);
  const [shown, setShown] = useState(PAGE);
  const { value, name } = props;
  const isList = Array.isArray(value);
  const size = isList ? value.length : Object.keys(value).length;
  const [before, after] = isList ? ["[", "]"] : ["{", "}"];
  const entries: Entries = !isOpen
    ? []
    : isList
      ? value.slice(0, shown).map((one: unknown) => [undefined, one])
      : Object.entries(value).slice(0, shown);
  return (
    <div class="json-tree">
      <button type="button" class="json-fold" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
        <span class="json-arrow" aria-hidden="true">
          {isOpen ? "▾" : "▸"}
        </span>
        <Name name={name} />
        {before}
        {isOpen ? null : (
          <span class="faint">
            {" "}
            {isList ? plural(size, "item") : plural(size, "field")} {after}
          </span>
        )}
      </button>
      {isOpen ? (
        <>
          <div class="json-inner">
            {entries.map(([key, one], index) => (
              <Value
                key={key ?? index}
                value={one}
                open={props.open - 1}
                {...(key === undefined ? {} : { name: key })}
              />
            ))}
            {size > shown ? (
              <button type="button" class="link" onClick={() => setShown(shown * 4)}>
                {plural(size - shown, "more entry", "more entries")}
              </button>
            ) : null}
          </div>
          <div class="json-line">{after}</div>
        </>
      ) : null}
    </div>
  );
}

function Name({ name }: { readonly name: string | undefined }): JSX.Element | null {
  if (name === undefined) return null;
  return (
    <>
      <span class="json-key">
        <InertText text={name} max={200} />
      </span>
      <span class="faint">: </span>
    </>
  );
}

/** A value on one line. Strings with several lines keep them. */
function Inline({ value }: { readonly value: unknown }): JSX.Element {
  if (typeof value === "string") {
    return (
      <span class="json-string">
        "<InertText text={value} max={MAX_STRING} />"
      </span>
    );
  }
  if (typeof value !== "object" || value === null) return <span class="json-word">{String(value)}</span>;
  if (Array.isArray(value)) {
    return (
      <>
        [
        {value.map((one: unknown, index) => (
          <span key={index}>
            {index > 0 ? ", " : ""}
            <Inline value={one} />
          </span>
        ))}
        ]
      </>
    );
  }
  const entries = Object.entries(value);
  if (entries.length === 0) return <>{"{}"}</>;
  return (
    <>
      {"{ "}
      {entries.map(([name, one], index) => (
        <span key={name}>
          {index > 0 ? ", " : ""}
          <Name name={name} />
          <Inline value={one} />
        </span>
      ))}
      {" }"}
    </>
  );
}

/** Whether a tree fits on one line. Looks at no more than that. */
function isShort(value: object): boolean {
  let left = SHORT;
  const take = (one: unknown, depth: number): void => {
    if (left < 0) return;
    if (typeof one === "string") left -= one.includes("\n") ? SHORT : one.length + 2;
    else if (typeof one !== "object" || one === null) left -= String(one).length;
    else if (depth > 2) left = -1;
    else {
      for (const name in one) {
        left -= Array.isArray(one) ? 2 : name.length + 4;
        take((one as Readonly<Record<string, unknown>>)[name], depth + 1);
        if (left < 0) return;
      }
    }
  };
  take(value, 0);
  return left >= 0;
}
