import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { createHashedEmbedder } from '../../src/engine/adapters/hashed-embedder.ts';

/** An OpenAI-compatible embeddings server that misbehaves on request. Its vectors are the offline embedder's. */
export interface FakeProvider {
  /** Base URL, as `OM_OPENAI_BASE_URL` takes it. */
  readonly url: string;
  /** Every request so far, in order of arrival. */
  readonly calls: readonly FakeCall[];
  /** Texts asked for so far, over all calls. */
  readonly texts: number;
  /** Answers in this mode from now on, or for the next `times` calls and then as before. */
  setMode(mode: FakeMode, options?: FakeModeOptions): void;
  /** The next request to arrive. */
  nextCall(): Promise<FakeCall>;
  close(): Promise<void>;
}

export interface FakeCall {
  readonly texts: readonly string[];
  readonly body: { readonly [name: string]: unknown };
  readonly headers: http.IncomingHttpHeaders;
  /** Resolves when the connection of this call has ended on either side. */
  readonly ended: Promise<void>;
}

export interface FakeModeOptions {
  readonly times?: number;
  /** Headers of the reply, such as `retry-after`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** HTTP status of the mode `status`; default 500. */
  readonly status?: number;
  /** How long the mode `slow` takes; default 100. */
  readonly delayMs?: number;
  /** What the modes `refuse_text` and `poison` fail a batch for: a text that contains it. */
  readonly marker?: string;
  /** The `param` that an error names. */
  readonly param?: string;
}

export type FakeMode = keyof typeof RESPONDERS;

interface Exchange {
  readonly texts: readonly string[];
  readonly items: readonly Item[];
  readonly reply: http.ServerResponse;
  readonly options: FakeModeOptions;
}

interface Item {
  readonly object: 'embedding';
  readonly index?: number;
  readonly embedding: unknown;
}

export async function startFakeProvider({ dimensions }: { readonly dimensions: number }): Promise<FakeProvider> {
  const embedder = createHashedEmbedder({ dimensions });
  const calls: FakeCall[] = [];
  const arrivals: ((call: FakeCall) => void)[] = [];
  const modes: { mode: FakeMode; options: FakeModeOptions; left: number }[] = [
    { mode: 'ok', options: {}, left: Infinity },
  ];

  const server = http.createServer((request, reply) => {
    void answer(request, reply).catch((error: unknown) => reply.destroy(error as Error));
  });

  async function answer(request: http.IncomingMessage, reply: http.ServerResponse): Promise<void> {
    const ended = new Promise<void>((resolve) => reply.once('close', resolve));
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = JSON.parse(Buffer.concat(parts).toString()) as { input: string | string[]; encoding_format?: string };
    const texts = [body.input].flat();
    const call: FakeCall = { texts, body: { ...body }, headers: request.headers, ended };
    calls.push(call);
    for (const arrived of arrivals.splice(0)) arrived(call);
    const { mode, options } = takeMode();
    const vectors = await embedder.embed(texts, { purpose: 'document' });
    const items = vectors.map(
      (vector, index) => ({ object: 'embedding', index, embedding: onWire(vector, body) }) as const,
    );
    RESPONDERS[mode]({ texts, items, reply, options });
  }

  function takeMode() {
    const current = modes.at(-1)!;
    if (--current.left <= 0) modes.pop();
    return current;
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    calls,
    get texts() {
      return calls.reduce((sum, call) => sum + call.texts.length, 0);
    },
    setMode(mode, options = {}) {
      if (options.times === undefined) modes.length = 0;
      modes.push({ mode, options, left: options.times ?? Infinity });
    },
    nextCall: () => new Promise((resolve) => arrivals.push(resolve)),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function onWire(vector: Float32Array, { encoding_format: format }: { encoding_format?: string }): unknown {
  return format === 'base64'
    ? Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64')
    : [...vector];
}

const RESPONDERS = {
  ok: ({ items, reply }) => sendItems(reply, items),
  slow: ({ items, reply, options }) => void setTimeout(() => sendItems(reply, items), options.delayMs ?? 100),
  reordered: ({ items, reply }) => sendItems(reply, items.toReversed()),
  /** As servers do that write JSON from protobuf. */
  index_zero_omitted: ({ items, reply }) =>
    sendItems(
      reply,
      items.map((item) => (item.index === 0 ? { ...item, index: undefined } : item)),
    ),

  rate_limited: ({ reply, options }) => sendError(reply, 429, options),
  status: ({ reply, options }) => sendError(reply, options.status ?? 500, options),
  refuse_text: ({ texts, items, reply, options }) =>
    texts.some((text) => text.includes(options.marker ?? 'REFUSED'))
      ? sendError(reply, 400, options)
      : sendItems(reply, items),
  /** Fails every batch that holds the marker: with a status, if one is given, or else with vectors of zeros. */
  poison: ({ texts, items, reply, options }) =>
    texts.some((text) => text.includes(options.marker ?? 'POISON'))
      ? options.status === undefined
        ? sendZeros(reply, items)
        : sendError(reply, options.status, options)
      : sendItems(reply, items),
  /** Says what no server should: the texts and the key, back in the message of the error. */
  echo: ({ texts, reply, options }) =>
    send(
      reply,
      options.status ?? 400,
      json({ error: { message: `${texts.join()} ${reply.req.headers.authorization}` } }),
    ),

  hang: () => {},
  drip: ({ items, reply }) => drip(reply, 200, json({ data: items })),
  drip_error: ({ reply }) => drip(reply, 500, 'an error that takes its time'),
  reset: ({ reply }) => void reply.socket?.resetAndDestroy(),
  cut: ({ items, reply }) => {
    const body = json({ data: items });
    reply.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
    reply.write(body.slice(0, body.length / 2), () => reply.destroy());
  },
  redirect: ({ reply }) => void reply.writeHead(307, { location: '/v1/embeddings' }).end(),
  html: ({ reply }) => send(reply, 200, '<!doctype html><title>Sign in</title>', 'text/html'),
  truncated: ({ items, reply }) => send(reply, 200, json({ data: items }).slice(0, -20)),
  huge: ({ reply }) => {
    reply.writeHead(200, { 'content-type': 'application/json' });
    const block = Buffer.alloc(1 << 16, ' ');
    const more = () => {
      while (!reply.destroyed && reply.write(block));
    };
    reply.on('drain', more);
    more();
  },

  nan: ({ items, reply }) => send(reply, 200, json({ data: items }).replace(/\[-?\d[^,]*,/, '[NaN,')),
  null: ({ items, reply }) => sendItems(reply, items, () => null),
  strings: ({ items, reply }) => sendItems(reply, items, String),
  infinite: ({ items, reply }) => sendItems(reply, items, () => 1e39),
  zeros: ({ items, reply }) => sendZeros(reply, items),
  wrong_dimension: ({ items, reply }) =>
    sendItems(
      reply,
      items.map((item) => ({ ...item, embedding: (item.embedding as number[]).slice(1) })),
    ),
  no_vector: ({ items, reply }) =>
    sendItems(
      reply,
      items.map((item) => ({ ...item, embedding: null })),
    ),
  empty: ({ reply }) => send(reply, 200, ''),
  no_list: ({ reply }) => send(reply, 200, '{"object":"list"}'),
  short: ({ items, reply }) => sendItems(reply, items.slice(1)),
  extra: ({ items, reply }) => sendItems(reply, [...items, { ...items[0]!, index: items.length }]),
  index_repeated: ({ items, reply }) =>
    sendItems(
      reply,
      items.map((item) => ({ ...item, index: 0 })),
    ),
  index_outside: ({ items, reply }) =>
    sendItems(
      reply,
      items.map((item) => ({ ...item, index: item.index! + 1 })),
    ),
} satisfies Record<string, (exchange: Exchange) => void>;

/** @param spoil replaces one number in the last vector */
function sendItems(reply: http.ServerResponse, items: readonly object[], spoil?: (value: number) => unknown): void {
  const data = items.map((item, i) => {
    if (spoil === undefined || i < items.length - 1) return item;
    const embedding = (item as { embedding: number[] }).embedding;
    return { ...item, embedding: embedding.map((value, d) => (d === 7 ? spoil(value) : value)) };
  });
  send(reply, 200, json({ object: 'list', data, model: 'fake', usage: { prompt_tokens: 1, total_tokens: 1 } }));
}

function sendZeros(reply: http.ServerResponse, items: readonly Item[]): void {
  sendItems(
    reply,
    items.map((item) => ({ ...item, embedding: (item.embedding as number[]).map(() => 0) })),
  );
}

function sendError(reply: http.ServerResponse, status: number, { headers, param }: FakeModeOptions): void {
  send(
    reply,
    status,
    json({ error: { message: 'as told', type: 'fake', param: param ?? null } }),
    'application/json',
    headers,
  );
}

function send(
  reply: http.ServerResponse,
  status: number,
  body: string,
  type = 'application/json',
  headers: Readonly<Record<string, string>> = {},
): void {
  reply.writeHead(status, { 'content-type': type, ...headers }).end(body);
}

/** One byte at a time, for as long as somebody listens. */
function drip(reply: http.ServerResponse, status: number, body: string): void {
  reply.writeHead(status, { 'content-type': 'application/json' });
  let sent = 0;
  const timer = setInterval(() => reply.write(body[sent++ % body.length]), 10);
  reply.once('close', () => clearInterval(timer));
}

const json = (value: unknown): string => JSON.stringify(value);
