// The region Call: what one call was, what was done to it on its way, and what can be done with it now.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { CallDetail, CallRow, OperatorEvent, Question } from "../../../src/console/types.ts";
import { get, postEvents, reasonOf, segment } from "../api.ts";
import { Button } from "../kit/button.tsx";
import { copyText } from "../kit/copy.tsx";
import { ResultContent } from "../kit/content.tsx";
import { Failure } from "../kit/failure.tsx";
import { bytes, clock, duration, whoText } from "../kit/format.ts";
import { InertText } from "../kit/inert-text.tsx";
import { Json } from "../kit/json.tsx";
import { Dot, Empty, Tag, type Tone } from "../kit/marks.tsx";
import { Tabs } from "../kit/tabs.tsx";
import { LateQuestion } from "../late-question.tsx";
import { go, hrefOf, place } from "../router.ts";
import { info, say, tokenAdvice, typedLine } from "../state.ts";
import { Steps } from "./steps.tsx";
import { drawn, rows } from "./store.ts";
import { Wire } from "./wire.tsx";

const TABS = [{ name: "Request" }, { name: "Response" }, { name: "Steps" }, { name: "Wire" }] as const;
type TabName = (typeof TABS)[number]["name"];

/** The tab stays from one call to the next. */
let lastTab: TabName = "Request";

export function Detail(props: { readonly id: number; readonly onClose: () => void }): JSX.Element {
  const { id } = props;
  const { detail, problem } = useDetail(id);
  const [tab, setTab] = useState<TabName>(lastTab);
  const isKnown = detail !== undefined;
  useEffect(() => {
    if (!isKnown || place.value.isMove === true) return undefined;
    // A link has led here, or the palette, which gives the focus back first.
    const timer = setTimeout(() => document.querySelector<HTMLElement>(".call-head")?.focus());
    return () => clearTimeout(timer);
  }, [id, isKnown]);
  const choose = (name: TabName): void => {
    lastTab = name;
    setTab(name);
  };
  return (
    <section class="panel detail" aria-label="Call">
      {detail === undefined ? (
        <>
          <CloseRow onClose={props.onClose} title={`Call ${id}`} />
          {problem === undefined ? null : <Empty title="This call cannot be shown">{problem}</Empty>}
        </>
      ) : (
        <>
          <Head detail={detail} onClose={props.onClose} />
          <Tabs label="Parts of the call" tabs={TABS} chosen={tab} onChoose={choose}>
            <Part detail={detail} tab={tab} />
          </Tabs>
          <Actions detail={detail} />
          {asked.value === undefined ? null : <LateQuestion question={asked.value} />}
        </>
      )}
    </section>
  );
}

/** The detail, read again when its row or what is nested under it has changed. */
function useDetail(id: number): { readonly detail: CallDetail | undefined; readonly problem: string | undefined } {
  const [known, setKnown] = useState<{
    readonly detail?: CallDetail;
    readonly problem?: string;
    readonly id: number;
  }>();
  void drawn.value;
  const entry = rows.get(id);
  const state = `${entry?.row.status} ${entry?.row.endedAt} ${entry?.nested?.map(({ row }) => row.status).join()}`;
  useEffect(() => {
    const stop = new AbortController();
    get<CallDetail>(`calls/${segment(id)}`, {}, stop.signal).then(
      (detail) => setKnown({ id, detail }),
      (error: unknown) => stop.signal.aborted || setKnown({ id, problem: reasonOf(error) }),
    );
    return () => stop.abort();
  }, [id, state]);
  const isCurrent = known?.id === id;
  return { detail: isCurrent ? known.detail : undefined, problem: isCurrent ? known.problem : undefined };
}

function CloseRow(props: { readonly title: string; readonly onClose: () => void }): JSX.Element {
  return (
    <div class="row">
      <h2 class="grow mono call-head" tabIndex={-1}>
        <InertText text={props.title} max={200} />
      </h2>
      <Button small title="Escape" onClick={props.onClose}>
        Close
      </Button>
    </div>
  );
}

const TONES: Readonly<Record<CallRow["status"], Tone>> = {
  running: "accent",
  asked: "warn",
  ok: "ok",
  error: "bad",
  cancelled: "idle",
};

function Head({ detail, onClose }: { readonly detail: CallDetail; readonly onClose: () => void }): JSX.Element {
  const { row, wire } = detail;
  const upstream = wire.find(({ side, revision }) => side === "upstream" && revision !== undefined)?.revision;
  const sizes = [
    row.sent === undefined ? "" : `${bytes(row.sent)} up`,
    row.received === undefined ? "" : `${bytes(row.received)} down`,
  ].filter(Boolean);
  return (
    <>
      <CloseRow title={row.name === undefined ? row.method : `${row.method} ${row.name}`} onClose={onClose} />
      <div class="row wrap facts">
        <span class="row status">
          <Dot tone={TONES[row.status]} shape={row.status === "running" ? "pulse" : "full"} />
          {row.status === "error" ? (row.error ?? "error") : row.status}
        </span>
        <span class="soft">
          <InertText text={whoText(row.client ?? row.principal ?? "a client", row.principal ?? "")} max={80} />{" "}
          {row.revision === undefined ? null : <Tag>{row.revision}</Tag>}
          {row.server === undefined ? null : (
            <>
              {" "}
              → <InertText text={row.server} max={80} /> {upstream === undefined ? null : <Tag>{upstream}</Tag>}
            </>
          )}
        </span>
      </div>
      <div class="soft">
        {clock(row.at)} · {timeText(row)}
        {sizes.length > 0 ? ` · ${sizes.join(", ")}` : ""}
      </div>
      {row.parent === undefined ? null : (
        <a class="link" href={hrefOf("traffic", [row.parent], queryNow())}>
          Part of call {row.parent}
        </a>
      )}
    </>
  );
}

function timeText(row: CallRow): string {
  const { ms, waitMs, status } = row;
  const work =
    ms === undefined ? (status === "running" ? "it runs" : "it waits for its client") : `${duration(ms)} of work`;
  if (waitMs === undefined || waitMs === 0) return work;
  const asked = row.kind === "question" ? [row] : (rows.get(row.id)?.nested ?? []).map((entry) => entry.row);
  const isPerson = asked.some(({ method }) => method.startsWith("elicitation/"));
  return `${work}, ${duration(waitMs)} waiting for ${isPerson ? "a person" : "the client"}`;
}

/** The filter of now, for links that keep it. */
export function queryNow(): Record<string, string> {
  const filter = new URLSearchParams(location.hash.split("?")[1] ?? "").get("filter");
  return filter === null ? {} : { filter };
}

function Part({ detail, tab }: { readonly detail: CallDetail; readonly tab: TabName }): JSX.Element {
  switch (tab) {
    case "Request":
      return <Request detail={detail} />;
    case "Response":
      return <Response detail={detail} />;
    case "Steps":
      return detail.dropped.includes("steps") && detail.steps.length === 0 ? (
        <Dropped what="steps" />
      ) : (
        <Steps detail={detail} />
      );
    case "Wire":
      return detail.dropped.includes("wire") && detail.wire.length === 0 ? (
        <Dropped what="messages" />
      ) : (
        <Wire detail={detail} />
      );
  }
}

/** `isLong`: what else there was of the call is still there. */
function Dropped({ what, isLong = false }: { readonly what: string; readonly isLong?: boolean }): JSX.Element {
  const kept = info.value?.keptBytes;
  if (isLong) return <Empty title={`The ${what} of this call is too long`}>It is not kept, or not shown here.</Empty>;
  return (
    <Empty title={`The ${what} of this call are no longer kept`}>
      {kept === undefined
        ? "The gateway keeps those of the last calls, within a budget."
        : `The gateway keeps ${bytes(kept)} of them: those of the last calls.`}
    </Empty>
  );
}

function Request({ detail: { request, dropped } }: { readonly detail: CallDetail }): JSX.Element {
  const isLong = !dropped.includes("steps");
  if (request === undefined) return <Dropped what={isLong ? "request" : "request and result"} isLong={isLong} />;
  return (
    <>
      {dropped.includes("request") ? <p class="soft">Parts are too long to be kept.</p> : null}
      <Json value={request.params} open={4} />
    </>
  );
}

function Response({ detail }: { readonly detail: CallDetail }): JSX.Element {
  const { result, error, row, dropped } = detail;
  if (error !== undefined) return <Failure error={error} />;
  if (result === undefined) {
    if (row.status === "running") return <Empty title="No result yet">It runs since {clock(row.at)}.</Empty>;
    if (!dropped.includes("result")) return <Empty title="There is no result" />;
    return <Dropped what="result" isLong={!dropped.includes("steps")} />;
  }
  const hasContent =
    typeof result === "object" && result !== null && Array.isArray((result as { content?: unknown }).content);
  if (!hasContent) return <Json value={result} open={4} />;
  return (
    <div class="stack">
      <ResultContent result={result as Readonly<Record<string, unknown>>} />
      <div class="as-json">
        <Json value={result} open={0} name="as JSON" />
      </div>
    </div>
  );
}

function Actions({ detail }: { readonly detail: CallDetail }): JSX.Element | null {
  const { row, request, commands } = detail;
  const canRepeat = row.kind !== "question" && row.kind !== "poll" && request !== undefined;
  const params = (request?.params ?? {}) as { readonly arguments?: unknown; readonly name?: unknown };
  return (
    <div class="row wrap actions">
      <Button small kind="go" disabled={!canRepeat} onClick={() => callAgain(row)}>
        Call again
      </Button>
      {row.method === "tools/call" && row.name !== undefined && canRepeat ? (
        <Button small onClick={() => edit(row, params.arguments)}>
          Edit and call
        </Button>
      ) : null}
      <Button
        small
        disabled={commands === undefined}
        title={tokenAdvice()}
        onClick={() => copyText(typedLine(commands?.catenary ?? ""))}
      >
        Copy command
      </Button>
      <Button
        small
        disabled={commands === undefined}
        title={tokenAdvice(true)}
        onClick={() => copyText(commands?.curl ?? "")}
      >
        Copy as curl
      </Button>
    </div>
  );
}

/** What the server asks during a call that is made again. */
const asked = signal<Question | undefined>(undefined);

/** Makes the call again as the operator, and shows the new one as soon as it has a row. */
async function callAgain(row: CallRow): Promise<void> {
  try {
    await postEvents("call", { row: row.id }, (_name, data) => {
      const event = data as OperatorEvent;
      if (event.type === "row") go(hrefOf("traffic", [event.row], queryNow()));
      if (event.type === "ended")
        say(event.error === undefined ? "Called again." : event.error.message, event.error !== undefined);
      if (event.type === "question") asked.value = event.question;
      if (event.type === "answered" || event.type === "ended") asked.value = undefined;
    });
  } catch (error) {
    say(reasonOf(error), true);
  }
}

function edit({ server, name = "" }: CallRow, args: unknown): void {
  go(hrefOf("tools", server === undefined ? [name] : [server, name], { arguments: JSON.stringify(args ?? {}) }));
}
