// The panel of a chosen node: what happened there in all, and what its last calls changed, with links to them.

import type { JSX } from "preact";
import type { ChainNode } from "../../../src/console/types.ts";
import { Diff } from "../kit/diff.tsx";
import { ago, plural } from "../kit/format.ts";
import { InertText } from "../kit/inert-text.tsx";
import { hrefOf } from "../router.ts";
import { now, overview } from "../state.ts";
import { factsOf, titleOf } from "./node.tsx";

export function NodeDetail({ node }: { readonly node: ChainNode }): JSX.Element {
  const { kind, name, last } = node;
  const need = kind === "upstream" ? overview.value?.needs.find(({ server }) => server === name) : undefined;
  const filter = filterOf(node);
  const isActing = kind === "transform" || kind === "middleware";
  return (
    <section class="panel chain-detail" aria-label={titleOf(node)}>
      <div class="row wrap">
        <h2 class="grow">
          <InertText text={titleOf(node)} max={100} />
        </h2>
        {filter === undefined ? null : (
          <a class="link" href={hrefOf("traffic", [], { filter })}>
            Show its calls
          </a>
        )}
      </div>
      <p class="soft">{factsOf(node).join(" · ")}</p>
      {need === undefined ? null : (
        <p>
          <InertText text={need.text} max={600} />
          {need.hint === undefined ? null : (
            <span class="soft">
              <br />
              <InertText text={need.hint} max={600} />
            </span>
          )}
        </p>
      )}
      {last.length === 0 ? (
        <p class="faint">
          {isActing ? "It has changed, answered and refused nothing yet." : "No call has passed here yet."}
        </p>
      ) : (
        <>
          <h3>{isActing ? "Last changes" : "Last calls"}</h3>
          <ul class="chain-last">
            {last.map((change) => (
              <Change key={change.row} change={change} isActing={isActing} />
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function Change(props: { readonly change: ChainNode["last"][number]; readonly isActing: boolean }): JSX.Element {
  const { row, at, call, request, result, note, error } = props.change;
  const isEmpty = request.length + result.length === 0 && note === undefined && error === undefined;
  return (
    <li>
      <div class="row">
        <a class="link mono grow cut" href={hrefOf("traffic", [row])}>
          <InertText text={call} max={80} />
        </a>
        <span class="faint">{ago(at, now.value)}</span>
      </div>
      {note === undefined ? null : <p class="soft">{note}</p>}
      {error === undefined ? null : (
        <p class="bad">
          <InertText text={error} max={300} />
        </p>
      )}
      <Side name="request" changes={request} row={row} />
      <Side name="result" changes={result} row={row} />
      {isEmpty && props.isActing ? (
        <p class="faint">What it did is no longer kept, or too long to be compared.</p>
      ) : null}
    </li>
  );
}

/** So many changes of a call are shown here. The call itself has all. */
const MAX_SHOWN = 4;

function Side(props: {
  readonly name: string;
  readonly changes: ChainNode["last"][number]["request"];
  readonly row: number;
}): JSX.Element | null {
  const { name, changes, row } = props;
  if (changes.length === 0) return null;
  return (
    <div class="chain-side">
      <span class="faint">{name}</span>
      <div>
        <Diff changes={changes.slice(0, MAX_SHOWN)} />
        {changes.length > MAX_SHOWN ? (
          <a class="link" href={hrefOf("traffic", [row])}>
            {plural(changes.length - MAX_SHOWN, "more change")}
          </a>
        ) : null}
      </div>
    </div>
  );
}

/** The filter of Traffic for the calls at a node; undefined if it has no words for them. */
function filterOf({ kind, name, server }: ChainNode): string | undefined {
  const quoted = (text: string): string => (/^[\w.*-]+$/.test(text) ? text : JSON.stringify(text));
  if (kind === "client") return `client:${quoted(name)}`;
  const of = server ?? (kind === "upstream" ? name : undefined);
  return of === undefined ? undefined : `server:${quoted(of)}`;
}
