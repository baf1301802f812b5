// What came of a call: the result by its kind, its structured content, what the server said meanwhile, and the definition
// of what was called.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { CatalogueItem } from "../../../src/console/types.ts";
import { Content, Resource, ResultContent, Some } from "../kit/content.tsx";
import { Failure } from "../kit/failure.tsx";
import { clock, duration } from "../kit/format.ts";
import { InertText } from "../kit/inert-text.tsx";
import { Json } from "../kit/json.tsx";
import { Dot, Empty, Tag } from "../kit/marks.tsx";
import { Tabs } from "../kit/tabs.tsx";
import { hrefOf } from "../router.ts";
import { isRunning, progressText, type Call } from "./call.ts";
import { isObject } from "./schema.ts";

const NAMES = ["Result", "Structured", "Messages", "Definition"] as const;
type Name = (typeof NAMES)[number];

export function Result({ item, call }: { readonly item: CatalogueItem; readonly call: Call | undefined }): JSX.Element {
  const [chosen, setChosen] = useState<Name>("Result");
  const messages = call?.messages.length ?? 0;
  useEffect(() => {
    // What says nothing of the call gives way to its result.
    if (isRunning(call) && chosen !== "Messages") setChosen("Result");
  }, [call?.startedAt]);
  return (
    <section aria-label="Result" class="panel result">
      <Tabs
        label="Result"
        tabs={NAMES.map((name) => (name === "Messages" && messages > 0 ? { name, count: messages } : { name }))}
        chosen={chosen}
        onChoose={setChosen}
      >
        <Panel name={chosen} item={item} call={call} />
      </Tabs>
    </section>
  );
}

function Panel(props: {
  readonly name: Name;
  readonly item: CatalogueItem;
  readonly call: Call | undefined;
}): JSX.Element {
  const { name, item, call } = props;
  switch (name) {
    case "Result":
      return <Outcome item={item} call={call} />;
    case "Structured": {
      const structured = call?.result?.["structuredContent"];
      if (structured !== undefined) return <Json value={structured} open={6} />;
      return (
        <Empty title="No structured content">
          {item.definition["outputSchema"] === undefined
            ? "The definition has no output schema."
            : "The definition has an output schema; call it to see what it returns."}
        </Empty>
      );
    }
    case "Messages":
      return <Messages call={call} />;
    case "Definition":
      return <Json value={item.definition} open={6} />;
  }
}

function Outcome({ item, call }: { readonly item: CatalogueItem; readonly call: Call | undefined }): JSX.Element {
  if (call === undefined) {
    const verb = item.kind === "tools" ? "called" : item.kind === "prompts" ? "got" : "read";
    return <Empty title={`Not ${verb} yet`}>What it returns is shown here.</Empty>;
  }
  if (isRunning(call)) {
    return (
      <p class="row soft">
        <Dot tone="accent" shape="pulse" /> Running since {clock(call.startedAt)}
        {call.progress === undefined ? null : (
          <span>
            <InertText text={progressText(call.progress)} max={300} />
          </span>
        )}
      </p>
    );
  }
  return (
    <div class="stack">
      <Summary call={call} />
      {call.error === undefined ? null : <Failure error={call.error} />}
      {call.result === undefined ? null : <Body result={call.result} />}
    </div>
  );
}

function Summary({ call }: { readonly call: Call }): JSX.Element {
  const isFailed = call.error !== undefined || call.result?.["isError"] === true;
  return (
    <div class="row wrap soft">
      <span class="row tight">
        <Dot tone={isFailed ? "bad" : "ok"} shape={isFailed ? "bar" : "full"} />
        {call.error?.kind === "cancelled" ? "cancelled" : isFailed ? "failed" : "ok"}
      </span>
      <span>{duration(call.ms ?? 0)}</span>
      {call.row === undefined ? null : (
        <a class="link" href={hrefOf("traffic", [call.row])}>
          Show the call
        </a>
      )}
    </div>
  );
}

function Body({ result }: { readonly result: Readonly<Record<string, unknown>> }): JSX.Element {
  const { content, contents, messages, structuredContent } = result;
  if (Array.isArray(contents)) {
    return (
      <div class="stack">
        <Some of={contents} what="part">
          {(resource) => (isObject(resource) ? <Resource resource={resource} /> : <Json value={resource} />)}
        </Some>
        {contents.length === 0 ? <p class="soft">The resource has no contents.</p> : null}
      </div>
    );
  }
  if (Array.isArray(messages)) {
    return (
      <div class="stack">
        {typeof result["description"] === "string" ? (
          <p class="soft">
            <InertText text={result["description"]} />
          </p>
        ) : null}
        <Some of={messages} what="message">
          {(message) => <PromptMessage message={message} />}
        </Some>
      </div>
    );
  }
  if (Array.isArray(content) || structuredContent !== undefined) {
    return (
      <>
        <ResultContent result={result} />
        {Array.isArray(content) && content.length === 0 && structuredContent === undefined ? (
          <p class="soft">The result has no content.</p>
        ) : null}
      </>
    );
  }
  return <Json value={result} open={4} />;
}

function PromptMessage({ message }: { readonly message: unknown }): JSX.Element {
  if (!isObject(message)) return <Json value={message} />;
  return (
    <div class={message["role"] === "assistant" ? "bubble" : "bubble me"}>
      <p class="faint">
        <InertText text={String(message["role"])} max={40} />
      </p>
      <Content block={message["content"]} />
    </div>
  );
}

const KINDS = { progress: "progress", log: "log", question: "asks", answered: "answer" } as const;

function Messages({ call }: { readonly call: Call | undefined }): JSX.Element {
  if (call === undefined || call.messages.length === 0) {
    return <Empty title="No messages">Progress, log messages and questions during a call are shown here.</Empty>;
  }
  return (
    <ul class="messages">
      {call.messages.map(({ at, kind, text, data }, index) => (
        <li key={index} class="row">
          <span class="faint mono">{clock(at)}</span>
          <Tag {...(kind === "question" ? { tone: "warn" as const } : {})}>{KINDS[kind]}</Tag>
          <span class="grow">
            <InertText text={text} max={1000} />
            {data === undefined ? null : typeof data === "string" ? (
              <pre>
                <InertText text={data} max={2000} />
              </pre>
            ) : (
              <Json value={data} open={1} />
            )}
          </span>
        </li>
      ))}
    </ul>
  );
}
