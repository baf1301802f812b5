// One tool, resource, template or prompt: what it says about itself, a form with the same arguments as JSON beside it, and
// the buttons that call it.

import type { JSX } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { catenaryCommand } from "../../../src/console/command-line.ts";
import type { CatalogueItem } from "../../../src/console/types.ts";
import { Button } from "../kit/button.tsx";
import { CopyButton } from "../kit/copy.tsx";
import { count } from "../kit/format.ts";
import { InertText } from "../kit/inert-text.tsx";
import { Tag } from "../kit/marks.tsx";
import { place } from "../router.ts";
import { info, tokenAdvice, typedLine } from "../state.ts";
import { ask, calls, cancelCall, isRunning, progressText, startCall, type Call } from "./call.ts";
import { catalogue, setHidden } from "./catalogue.ts";
import { focusProblem, Form, Rest, ValuesAsJson, type Suggest, type Values } from "./form.tsx";
import { Result } from "./result.tsx";
import { defaultsOf, fieldsOf, isObject, problemsIn, restOf, type Field } from "./schema.ts";
import { expandTemplate, variablesOf } from "./template.ts";

export function keyOf({ kind, server = "", name }: CatalogueItem): string {
  return `${kind} ${server}/${name}`;
}

/** The schema of what a person fills in. Undefined for a resource, which has nothing. */
function schemaOf({ kind, definition }: CatalogueItem): unknown {
  if (kind === "tools") return definition["inputSchema"];
  if (kind === "resources") return undefined;
  const given = definition["arguments"];
  const all: readonly unknown[] =
    kind === "templates" ? variablesOf(String(definition["uriTemplate"])) : Array.isArray(given) ? given : [];
  const named = all.filter(isObject);
  return {
    type: "object",
    properties: Object.fromEntries(
      named.map(({ name, title, description, minLength }) => [
        String(name),
        { type: "string", title, description, minLength },
      ]),
    ),
    required: named.filter(({ required }) => required === true).map(({ name }) => name),
  };
}

/** The request that the arguments make. */
function requestOf({ kind, name }: CatalogueItem, args: Values): readonly [method: string, params: Values] {
  if (kind === "tools") return ["tools/call", { name, arguments: args }];
  if (kind === "prompts") return ["prompts/get", { name, arguments: args }];
  return ["resources/read", { uri: kind === "templates" ? expandTemplate(name, args) : name }];
}

/** The first of them gets the focus when a link has led here. */
const FIELDS = ".form input, .form select, .form textarea, .arguments textarea";

/** What a person has filled in of each item, kept while other items are shown. */
const filledIn = new Map<string, Values>();

export function Detail({
  item,
  linked,
}: {
  readonly item: CatalogueItem;
  readonly linked: Values | undefined;
}): JSX.Element {
  const key = keyOf(item);
  const fields = useMemo(() => fieldsOf(schemaOf(item)), [item.definition]);
  const [values, setState] = useState<Values>(() => linked ?? filledIn.get(key) ?? defaultsOf(fields ?? []));
  const call = calls.value.get(key);
  const setValues = (next: Values): void => {
    filledIn.set(key, next);
    setState(next);
  };
  const request = requestOf(item, values);
  const inPath = catenaryCommand(...request, info.value?.url ?? location.origin);
  const command = inPath === undefined ? undefined : typedLine(inPath);
  const advice = tokenAdvice();
  const whole = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (place.value.isMove === true) return undefined;
    // The palette gives the focus back first.
    const timer = setTimeout(() => {
      const isTouched = matchMedia("(pointer: coarse)").matches;
      const field = isTouched ? null : whole.current?.querySelector<HTMLElement>(FIELDS);
      (field ?? whole.current?.querySelector<HTMLElement>("h2"))?.focus();
    });
    return () => clearTimeout(timer);
  }, []);
  return (
    <div class="stack detail" ref={whole}>
      <Head item={item} />
      <div class={item.kind === "resources" ? "" : "sides"}>
        <Arguments item={item} fields={fields} values={values} setValues={setValues} call={call} request={request} />
      </div>
      {command === undefined ? null : (
        <div>
          <div class="row command">
            <pre class="grow mono">
              <InertText text={command} max={2000} />
            </pre>
            <CopyButton text={command}>Copy command</CopyButton>
          </div>
          {advice === undefined ? null : <p class="faint">{advice}</p>}
        </div>
      )}
      <Result item={item} call={call} key={key} />
    </div>
  );
}

function Head({ item }: { readonly item: CatalogueItem }): JSX.Element {
  const { name, title, server, definition, hidden, ownName, tokens, kind } = item;
  const description = definition["description"];
  const { isEstimated = true } = catalogue.value ?? {};
  const tags = annotationTags(item);
  return (
    <header>
      <div class="row wrap">
        <h2 class="item-name mono" tabIndex={-1}>
          <InertText text={name} max={500} />
        </h2>
        {server === undefined ? null : <Tag>{server}</Tag>}
        {tags.map((tag) => (
          <Tag key={tag}>{tag}</Tag>
        ))}
        <span class="grow" />
        <div class="row tight">
          {kind === "tools" && server !== undefined && hidden !== "chain" ? (
            <Button small onClick={() => setHidden(hidden === undefined, server, ownName ?? name)}>
              {hidden === undefined ? "Hide from clients" : "Show to clients"}
            </Button>
          ) : null}
          {server !== undefined && hidden === undefined ? (
            <Button
              small
              onClick={() => setHidden(true, server)}
              title="Its server ends, and clients lose all that it has"
            >
              Hide server
            </Button>
          ) : null}
        </div>
      </div>
      <p class="soft about-item">
        {title === undefined || title === name ? null : (
          <>
            <b>
              <InertText text={title} max={300} />
            </b>{" "}
          </>
        )}
        {typeof description === "string" && description !== "" ? (
          <InertText text={description} max={1500} />
        ) : (
          "It has no description."
        )}
      </p>
      <p class="faint">
        {isEstimated ? "about " : ""}
        {count(tokens)} tokens
        {ownName === undefined ? null : (
          <>
            {" · at its server "}
            <span class="mono">
              <InertText text={ownName} max={300} />
            </span>
          </>
        )}
        {hidden === "chain" ? " · a transform or a middleware of the config hides it from clients" : ""}
        {hidden === "disabled" ? " · hidden from clients, so it cannot be called" : ""}
      </p>
    </header>
  );
}

/** What a server says about a tool or a resource; nobody has checked it. */
function annotationTags({ definition, kind }: CatalogueItem): readonly string[] {
  const { annotations, mimeType, size } = definition;
  const hints = isObject(annotations) ? annotations : {};
  if (kind === "tools") {
    const isReadOnly = hints["readOnlyHint"] === true;
    const tags = [
      isReadOnly ? "reads" : hints["readOnlyHint"] === false ? "writes" : undefined,
      !isReadOnly && hints["destructiveHint"] === true ? "destructive" : undefined,
      hints["idempotentHint"] === true ? "idempotent" : undefined,
      hints["openWorldHint"] === true ? "open world" : undefined,
    ];
    return tags.filter((tag) => tag !== undefined);
  }
  return [
    kind === "templates" ? "template" : "",
    typeof mimeType === "string" ? mimeType.slice(0, 60) : "",
    typeof size === "number" ? `${count(size)} bytes` : "",
  ].filter(Boolean);
}

interface ArgumentsProps {
  readonly item: CatalogueItem;
  readonly fields: readonly Field[] | undefined;
  readonly values: Values;
  readonly setValues: (values: Values) => void;
  readonly call: Call | undefined;
  readonly request: readonly [method: string, params: Values];
}

function Arguments(props: ArgumentsProps): JSX.Element {
  const { item, fields, values, setValues, call, request } = props;
  const [isTried, setIsTried] = useState(false);
  const [jsonProblem, setJsonProblem] = useState<string | undefined>(undefined);
  const key = keyOf(item);
  const problems = fields === undefined ? {} : problemsIn(fields, values);
  const hasProblems = Object.keys(problems).length > 0;
  const running = isRunning(call);
  const suggest = useSuggest(item, values);
  const start = (): void => void startCall(key, ...request);
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    if (hasProblems || jsonProblem !== undefined) {
      setIsTried(true);
      focusProblem(event.currentTarget as HTMLFormElement);
    } else start();
  };
  const hasFields = fields !== undefined && fields.length > 0;
  const rest = useMemo(() => (fields === undefined ? 0 : restOf(schemaOf(item), fields)), [item.definition]);
  const hasArguments = item.kind !== "resources";
  const json = (
    <ValuesAsJson
      id={`${key}-json`}
      label={item.kind === "templates" ? "Variables as JSON" : "Arguments as JSON"}
      rows={hasFields ? 8 : 5}
      values={values}
      onProblem={setJsonProblem}
      onChange={setValues}
    />
  );
  return (
    <form class={hasFields ? "arguments two" : "arguments"} noValidate onSubmit={onSubmit}>
      <div class="stack">
        {hasFields ? (
          <>
            <Rest fields={fields} rest={rest} />
            <Form
              fields={fields}
              values={values}
              onChange={setValues}
              problems={isTried ? problems : {}}
              suggest={suggest}
            />
          </>
        ) : hasArguments ? (
          <p class="soft">{fields === undefined ? "It takes any arguments, as JSON." : "It takes no arguments."}</p>
        ) : null}
        {item.kind === "templates" ? (
          <p class="mono soft">
            <InertText text={String(request[1]["uri"])} max={500} />
          </p>
        ) : null}
        <div class="row wrap">
          <Button kind="go" submit disabled={running || item.hidden !== undefined}>
            Call
          </Button>
          <Button disabled={!running} onClick={() => cancelCall(key)}>
            Cancel
          </Button>
          {isTried && hasProblems && !running ? (
            <button type="button" class="link" onClick={start}>
              call anyway
            </button>
          ) : null}
          <ProgressBar call={call} />
        </div>
      </div>
      {hasFields || (hasArguments && fields === undefined) ? json : null}
    </form>
  );
}

function ProgressBar({ call }: { readonly call: Call | undefined }): JSX.Element | null {
  if (call === undefined || !isRunning(call)) return null;
  const { progress } = call;
  const amount =
    progress?.total === undefined || progress.total <= 0 ? {} : { max: progress.total, value: progress.progress };
  return (
    <>
      <progress class="grow" aria-label="Progress" {...amount} />
      <span class="soft" aria-live="polite">
        {progress === undefined ? "running" : <InertText text={progressText(progress)} max={200} />}
      </span>
    </>
  );
}

/** Servers that have said that they complete nothing, so that they are asked once. */
const silent = new Set<string>();

/** Proposals of the server for arguments of prompts and variables of templates. */
function useSuggest(item: CatalogueItem, values: Values): Suggest | undefined {
  const { kind, name, hidden } = item;
  const key = keyOf(item);
  const suggest = useCallback<Suggest>(
    async (argument, text) => {
      if (silent.has(key)) return [];
      const ref = kind === "prompts" ? { type: "ref/prompt", name } : { type: "ref/resource", uri: name };
      const { [argument]: _own, ...others } = values;
      const context = Object.fromEntries(Object.entries(others).map(([one, value]) => [one, String(value)]));
      const result = await ask("completion/complete", {
        ref,
        argument: { name: argument, value: text },
        ...(Object.keys(context).length > 0 && { context: { arguments: context } }),
      });
      if (result === undefined) silent.add(key);
      const completion = isObject(result?.["completion"]) ? result["completion"]["values"] : undefined;
      return Array.isArray(completion) ? completion.filter((one) => typeof one === "string").slice(0, 100) : [];
    },
    [key, JSON.stringify(values)],
  );
  return (kind === "prompts" || kind === "templates") && hidden === undefined ? suggest : undefined;
}
