// Content: the blocks of a result: text, images, audio, resources, structured content. Everything is inert: text is plain
// text, an image is shown only from the data in the block, and a link of a server leads to nowhere but the page Tools.

import { Fragment, type JSX } from "preact";
import { useState } from "preact/hooks";
import { hrefOfResource } from "../tools/catalogue.ts";
import { CopyButton } from "./copy.tsx";
import { bytes, plural } from "./format.ts";
import { InertText } from "./inert-text.tsx";
import { Json } from "./json.tsx";
import { Tag } from "./marks.tsx";

type Fields = Readonly<Record<string, unknown>>;

/** What a browser draws from data. SVG is not among them only where it could run: in an image it cannot. */
const IMAGE = /^image\/(?:png|jpeg|gif|webp|avif|bmp|svg\+xml)$/;
const AUDIO = /^audio\/[\w.+-]+$/;
const BASE64 = /^[A-Za-z0-9+/\s]+={0,2}\s*$/;

/** The content of a result of a tool: its blocks, and its structured content if that says more than they do. */
export function ResultContent({ result }: { readonly result: Fields }): JSX.Element {
  const { content, structuredContent } = result;
  const blocks = Array.isArray(content) ? (content as readonly unknown[]) : [];
  return (
    <div class="stack">
      <Some of={blocks} what="block">
        {(block) => <Content block={block} />}
      </Some>
      {structuredContent === undefined || repeats(blocks, structuredContent) ? null : (
        <Json value={structuredContent} />
      )}
    </div>
  );
}

/** As many are drawn at once as a person may look through. */
const PAGE = 200;

/** The first of many, how many more there are, and a button that shows some of those. */
export function Some(props: {
  readonly of: readonly unknown[];
  /** What one of them is called. */
  readonly what: string;
  readonly children: (one: unknown) => JSX.Element;
}): JSX.Element {
  const { of, what, children } = props;
  const [shown, setShown] = useState(PAGE);
  const more = of.length - shown;
  return (
    <>
      {of.slice(0, shown).map((one, at) => (
        <Fragment key={at}>{children(one)}</Fragment>
      ))}
      {more > 0 ? (
        <button type="button" class="link" onClick={() => setShown(shown * 4)}>
          {plural(more, `more ${what}`)}
        </button>
      ) : null}
    </>
  );
}

/** One block of content. */
export function Content({ block }: { readonly block: unknown }): JSX.Element {
  if (!isFields(block)) return <Json value={block} />;
  const { type, text, data, mimeType } = block;
  if (type === "text" && typeof text === "string") return <Text text={text} />;
  if (type === "image" && typeof data === "string") return <Image data={data} mimeType={mimeType} />;
  if (type === "audio" && typeof data === "string") return <Audio data={data} mimeType={mimeType} />;
  if (type === "resource" && isFields(block["resource"])) return <Resource resource={block["resource"]} />;
  if (type === "resource_link") return <Link link={block} />;
  return <Json value={block} />;
}

/** The contents of a resource: text, or data in base64. */
export function Resource({ resource }: { readonly resource: Fields }): JSX.Element {
  const { uri, text, blob, mimeType } = resource;
  return (
    <div class="stack block">
      <div class="row soft">
        <span class="grow mono">
          <InertText text={String(uri)} max={500} />
        </span>
        {typeof mimeType === "string" ? <Tag>{mimeType}</Tag> : null}
      </div>
      {typeof text === "string" ? <Text text={text} /> : null}
      {typeof blob === "string" ? <Blob data={blob} mimeType={mimeType} /> : null}
    </div>
  );
}

function Text({ text }: { readonly text: string }): JSX.Element {
  const value = parsed(text);
  if (value !== undefined) return <Json value={value} />;
  return (
    <pre class="text">
      <InertText text={text} />
    </pre>
  );
}

function Blob({ data, mimeType }: { readonly data: string; readonly mimeType: unknown }): JSX.Element {
  const type = String(mimeType);
  if (IMAGE.test(type)) return <Image data={data} mimeType={type} />;
  if (AUDIO.test(type)) return <Audio data={data} mimeType={type} />;
  return (
    <div class="row">
      <span class="soft grow">{bytes(Math.floor(data.length * 0.75))} of data</span>
      <CopyButton text={data}>Copy as base64</CopyButton>
    </div>
  );
}

function Image({ data, mimeType }: { readonly data: string; readonly mimeType: unknown }): JSX.Element {
  const type = String(mimeType);
  if (!IMAGE.test(type)) return <NotShown what="An image of a type that is not shown" type={type} />;
  if (!BASE64.test(data)) return <NotShown what="An image whose data is damaged" type={type} />;
  return <img class="image" src={`data:${type};base64,${data}`} alt="From the result" />;
}

function Audio({ data, mimeType }: { readonly data: string; readonly mimeType: unknown }): JSX.Element {
  const type = String(mimeType);
  if (!AUDIO.test(type)) return <NotShown what="Sound of a type that is not played" type={type} />;
  if (!BASE64.test(data)) return <NotShown what="Sound whose data is damaged" type={type} />;
  return <audio controls src={`data:${type};base64,${data}`} aria-label="From the result" />;
}

function NotShown({ what, type }: { readonly what: string; readonly type: string }): JSX.Element {
  return (
    <p class="soft">
      {what}: <InertText text={type} max={60} />
    </p>
  );
}

function Link({ link }: { readonly link: Fields }): JSX.Element {
  const { uri, name, description } = link;
  const text = <InertText text={typeof name === "string" ? name : "Resource"} max={200} />;
  const href = hrefOfResource(String(uri));
  return (
    <div class="block">
      {href === undefined ? (
        <b>{text}</b>
      ) : (
        <a class="link" href={href}>
          {text}
        </a>
      )}{" "}
      <span class="mono soft">
        <InertText text={String(uri)} max={500} />
      </span>
      {typeof description === "string" ? (
        <p class="soft">
          <InertText text={description} />
        </p>
      ) : null}
    </div>
  );
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value of a text that is a JSON object or array. */
function parsed(text: string): unknown {
  if (!/^\s*[[{]/.test(text) || text.length > 2_000_000) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether one of the blocks is the structured content as text, as servers write it for older clients. */
function repeats(blocks: readonly unknown[], structured: unknown): boolean {
  const wanted = JSON.stringify(structured);
  return blocks.some((block) => {
    if (!isFields(block) || typeof block["text"] !== "string") return false;
    const value = parsed(block["text"]);
    return value !== undefined && JSON.stringify(value) === wanted;
  });
}
