// The review of definitions that `pin` holds: what a server has changed, line by line with all characters visible, and
// the approval. Only what is shown is approved: a definition that changes meanwhile stays held.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import "./review-pin.css";
import type { HeldDefinition, PinReview } from "../../../src/console/types.ts";
import { get, post, reasonOf, segment } from "../api.ts";
import { Button } from "../kit/button.tsx";
import { Dialog } from "../kit/dialog.tsx";
import { Diff } from "../kit/diff.tsx";
import { plural } from "../kit/format.ts";
import { InertText } from "../kit/inert-text.tsx";
import { inertString } from "../kit/inert.ts";
import { Tag } from "../kit/marks.tsx";
import { say } from "../state.ts";

export function ReviewPin(props: { readonly server: string; readonly onClose: () => void }): JSX.Element {
  const { server, onClose } = props;
  const [items, setItems] = useState<readonly HeldDefinition[]>();
  const [problem, setProblem] = useState<string>();
  const read = (): Promise<void> =>
    get<PinReview>(`pins/${segment(server)}`).then(
      (review) => setItems(review.items),
      (error: unknown) => setProblem(reasonOf(error)),
    );
  useEffect(() => void read(), [server]);
  const approve = async (chosen: readonly HeldDefinition[]): Promise<void> => {
    setProblem(undefined);
    try {
      const left = await post<PinReview>("approve", {
        server,
        items: chosen.map(({ name }) => name),
        digests: chosen.map(({ digest }) => digest),
      });
      say(`Approved ${plural(chosen.length, "definition")} of ${inertString(server)}`);
      setItems(left.items);
      if (left.items.length === 0) onClose();
    } catch (error) {
      setProblem(reasonOf(error));
      await read();
    }
  };
  return (
    <Dialog label={`Changed definitions of ${inertString(server)}`} heading class="review-pin" onClose={onClose}>
      {problem === undefined ? null : (
        <p class="bad" role="alert">
          <InertText text={problem} />
        </p>
      )}
      {items === undefined ? (
        problem === undefined ? (
          <p class="faint">Reading…</p>
        ) : null
      ) : items.length === 0 ? (
        <p class="soft">Nothing is held back any more.</p>
      ) : (
        <>
          <p class="soft">
            Clients neither see nor call these until you approve them. Read what is new in them as an instruction to
            your model would be read.
          </p>
          <ul class="review-items">
            {items.map((item) => (
              <Item key={`${item.kind} ${item.name}`} item={item} onApprove={() => approve([item])} />
            ))}
          </ul>
        </>
      )}
      <div class="row review-actions">
        <span class="grow" />
        <Button onClick={onClose}>Close</Button>
        {items !== undefined && items.length > 1 ? (
          <Button kind="go" onClick={() => approve(items)}>
            Approve all {items.length}
          </Button>
        ) : null}
      </div>
    </Dialog>
  );
}

function Item(props: { readonly item: HeldDefinition; readonly onApprove: () => Promise<void> }): JSX.Element {
  const { kind, name, state, lines, changes } = props.item;
  return (
    <li>
      <div class="row">
        <b class="mono grow">
          <InertText text={name} max={200} />
        </b>
        <span class="soft">{kind}</span>
        <Tag tone={state === "new" ? "accent" : "warn"}>{state}</Tag>
        <Button kind="go" small label={`Approve ${inertString(name)}`} onClick={props.onApprove}>
          Approve
        </Button>
      </div>
      {lines === undefined ? (
        changes.length === 0 ? (
          <p class="faint">The definition is too long to be shown.</p>
        ) : (
          <Diff changes={changes} />
        )
      ) : (
        lines.map(({ field, lines: ofField }) => (
          <div key={field} class="review-field">
            <span class="faint">
              <InertText text={field} max={100} />
            </span>
            <pre tabIndex={0} aria-label={`Changes of ${inertString(field)}`}>
              {ofField.map((line, at) => (
                <Line key={at} line={line} />
              ))}
            </pre>
          </div>
        ))
      )}
    </li>
  );
}

function Line({ line }: { readonly line: string }): JSX.Element {
  const text = (
    <>
      <InertText text={line} max={2000} />
      {"\n"}
    </>
  );
  if (line.startsWith("+ ")) return <ins>{text}</ins>;
  return line.startsWith("- ") ? <del>{text}</del> : <span class="soft">{text}</span>;
}
