// Steps of a call: what each transform and middleware changed, and how long it took itself.

import type { JSX } from "preact";
import type { CallDetail, StepView } from "../../../src/console/types.ts";
import { Diff } from "../kit/diff.tsx";
import { duration } from "../kit/format.ts";
import { InertText } from "../kit/inert-text.tsx";
import { Empty } from "../kit/marks.tsx";

export function Steps({ detail }: { readonly detail: CallDetail }): JSX.Element {
  if (detail.steps.length === 0) {
    return <Empty title="No steps">Nothing was done to this call on its way, or it has not ended.</Empty>;
  }
  return (
    <ul class="steps">
      {detail.steps.map((step, index) => (
        <Step key={index} step={step} depth={0} />
      ))}
    </ul>
  );
}

function Step({ step, depth }: { readonly step: StepView; readonly depth: number }): JSX.Element {
  const { name, kind, request, result, note, error, ms, ownMs } = step;
  const isQuiet = request.length === 0 && result.length === 0 && note === undefined && error === undefined;
  return (
    <>
      <li class={isQuiet ? "step is-quiet" : "step"}>
        <span class="step-name" style={{ paddingLeft: `${Math.min(depth, 8) * 6}px` }}>
          <b title={kind}>
            <InertText text={name} max={60} />
          </b>
        </span>
        <div class="step-what">
          {note === undefined ? null : (
            <div>
              <InertText text={note} max={300} />
            </div>
          )}
          {request.length > 0 ? <Diff changes={request} /> : null}
          {result.length > 0 ? (
            <>
              <span class="faint">in the result</span>
              <Diff changes={result} />
            </>
          ) : null}
          {error === undefined ? null : (
            <span class="bad">
              <InertText text={error} max={300} />
            </span>
          )}
          {isQuiet ? <span class="faint">{kind === "upstream" ? "answered" : "passed on as it was"}</span> : null}
        </div>
        <span class="num faint">{ownMs === undefined && ms === undefined ? "…" : duration(ownMs ?? ms ?? 0)}</span>
      </li>
      {step.steps.map((inner, index) => (
        <Step key={index} step={inner} depth={depth + 1} />
      ))}
    </>
  );
}
