import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { createHashedEmbedder } from '../../src/engine/adapters/hashed-embedder.ts';

/** An OpenAI-compatible server that misbehaves on request. Its vectors are the offline embedder's, its chat says what it is told. */
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
  /** Leaves every call unanswered until what this returns is called. */
  hold(): () => void;
  /** `/chat/completions`, with calls and modes of its own. */
  readonly chat: FakeChat;
  close(): Promise<void>;
}

export interface FakeChat {
  readonly calls: readonly FakeChatCall[];
  /** What it says from now on; an empty array as JSON until then. */
  say(answer: string | ((call: FakeChatCall) => string)): void;
  setMode(mode: FakeChatMode, options?: FakeModeOptions): void;
  nextCall(): Promise<FakeChatCall>;
}

export interface FakeChatCall {
  /** The system's message and the user's. */
  readonly instructions: string;
  readonly input: string;
  readonly body: { readonly [name: string]: unknown };
  readonly headers: http.IncomingHttpHeaders;
  /** Resolves when the connection of this call has ended on either side. */
  readonly ended: Promise<void>;
}

export interface FakeCall {
  readonly texts: readonly string[];
  /** When it had arrived, by the monotonic clock of this process (ms). */
  readonly at: number;
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
export type FakeChatMode = keyof typeof CHAT_RESPONDERS;

interface Exchange {
  readonly texts: readonly string[];
  readonly items: readonly Item[];
  readonly reply: http.ServerResponse;
  readonly options: FakeModeOptions;
}

interface ChatExchange {
  readonly call: FakeChatCall;
  readonly answer: string;
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
  const modes = createModes<FakeMode>('ok');
  let held = Promise.resolve();
  const chats: FakeChatCall[] = [];
  const chatArrivals: ((call: FakeChatCall) => void)[] = [];
  const chatModes = createModes<FakeChatMode>('ok');
  let answerTo: (call: FakeChatCall) => string = () => '[]';

  const server = http.createServer((request, reply) => {
    void answer(request, reply).catch((error: unknown) => reply.destroy(error as Error));
  });

  async function answer(request: http.IncomingMessage, reply: http.ServerResponse): Promise<void> {
    const ended = new Promise<void>((resolve) => reply.once('close', resolve));
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const json = Buffer.concat(parts).toString();
    if (request.url?.endsWith('/chat/completions')) return chat(JSON.parse(json) as ChatBody, request, reply, ended);
    const body = JSON.parse(json) as { input: string | string[]; encoding_format?: string };
    const texts = [body.input].flat();
    const call: FakeCall = { texts, at: performance.now(), body: { ...body }, headers: request.headers, ended };
    calls.push(call);
    for (const arrived of arrivals.splice(0)) arrived(call);
    await held;
    const { mode, options } = modes.take();
    const vectors = await embedder.embed(texts, { purpose: 'document' });
    const items = vectors.map(
      (vector, index) => ({ object: 'embedding', index, embedding: onWire(vector, body) }) as const,
    );
    RESPONDERS[mode]({ texts, items, reply, options });
  }

  function chat(body: ChatBody, request: http.IncomingMessage, reply: http.ServerResponse, ended: Promise<void>): void {
    const contentOf = (role: string) => body.messages.find((message) => message.role === role)?.content ?? '';
    const call: FakeChatCall = {
      instructions: contentOf('system'),
      input: contentOf('user'),
      body: { ...body },
      headers: request.headers,
      ended,
    };
    chats.push(call);
    for (const arrived of chatArrivals.splice(0)) arrived(call);
    const { mode, options } = chatModes.take();
    CHAT_RESPONDERS[mode]({ call, answer: answerTo(call), reply, options });
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    calls,
    get texts() {
      return calls.reduce((sum, call) => sum + call.texts.length, 0);
    },
    setMode: modes.set,
    nextCall: () => new Promise((resolve) => arrivals.push(resolve)),
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = promise;
      return resolve;
    },
    chat: {
      calls: chats,
      say: (answer) => void (answerTo = typeof answer === 'string' ? () => answer : answer),
      setMode: chatModes.set,
      nextCall: () => new Promise((resolve) => chatArrivals.push(resolve)),
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface ChatBody {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
}

interface Modes<Mode> {
  set(mode: Mode, options?: FakeModeOptions): void;
  /** The mode of the next call. */
  take(): { readonly mode: Mode; readonly options: FakeModeOptions };
}

function createModes<Mode>(first: Mode): Modes<Mode> {
  const modes: { mode: Mode; options: FakeModeOptions; left: number }[] = [
    { mode: first, options: {}, left: Infinity },
  ];
  return {
    set(mode, options = {}) {
      if (options.times === undefined) modes.length = 0;
      modes.push({ mode, options, left: options.times ?? Infinity });
    },
    take() {
      const current = modes.at(-1)!;
      if (--current.left <= 0) modes.pop();
      return current;
    },
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
  huge: ({ reply }) => sendForever(reply),

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

const CHAT_RESPONDERS = {
  ok: ({ reply, answer }) => sendCompletion(reply, { content: answer }),
  slow: ({ reply, answer, options }) =>
    void setTimeout(() => sendCompletion(reply, { content: answer }), options.delayMs ?? 100),
  /** As servers do that keep no count. */
  uncounted: ({ reply, answer }) => send(reply, 200, json({ choices: [{ message: { content: answer } }] })),

  rate_limited: ({ reply, options }) => sendError(reply, 429, options),
  status: ({ reply, options }) => sendError(reply, options.status ?? 500, options),
  /** As models that reason do. */
  no_temperature: ({ reply, answer, call }) =>
    'temperature' in call.body
      ? sendError(reply, 400, { param: 'temperature' })
      : sendCompletion(reply, { content: answer }),
  /** Says what no server should: the prompt and the key, back in the message of the error. */
  echo: ({ call, reply, options }) =>
    send(
      reply,
      options.status ?? 400,
      json({ error: { message: `${call.instructions} ${call.input} ${call.headers.authorization}` } }),
    ),

  hang: () => {},
  drip: ({ reply, answer }) => drip(reply, 200, answer),
  huge: ({ reply }) => sendForever(reply),
  reset: ({ reply }) => void reply.socket?.resetAndDestroy(),
  redirect: ({ reply }) => void reply.writeHead(307, { location: '/v1/chat/completions' }).end(),
  html: ({ reply }) => send(reply, 200, '<!doctype html><title>Sign in</title>', 'text/html'),
  truncated: ({ reply, answer }) => send(reply, 200, completionOf({ content: answer }).slice(0, -20)),
  empty: ({ reply }) => send(reply, 200, ''),
  no_choice: ({ reply }) => send(reply, 200, json({ choices: [] })),
  no_text: ({ reply }) => sendCompletion(reply, { content: null }),
  blank: ({ reply }) => sendCompletion(reply, { content: ' ' }),
  refusal: ({ reply }) => sendCompletion(reply, { content: null, refusal: 'I will not do that.' }),
  filtered: ({ reply, answer }) => sendCompletion(reply, { content: answer }, 'content_filter'),
  cut_short: ({ reply, answer }) => sendCompletion(reply, { content: answer.slice(0, -1) }, 'length'),
} satisfies Record<string, (exchange: ChatExchange) => void>;

function sendCompletion(reply: http.ServerResponse, message: object, finishReason = 'stop'): void {
  send(reply, 200, completionOf(message, finishReason));
}

function completionOf(message: object, finishReason = 'stop'): string {
  return json({
    object: 'chat.completion',
    model: 'fake',
    choices: [{ index: 0, finish_reason: finishReason, message: { role: 'assistant', ...message } }],
    usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
  });
}

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

function sendForever(reply: http.ServerResponse): void {
  reply.writeHead(200, { 'content-type': 'application/json' });
  const block = Buffer.alloc(1 << 16, ' ');
  const more = () => {
    while (!reply.destroyed && reply.write(block));
  };
  reply.on('drain', more);
  more();
}

/** One byte at a time, for as long as somebody listens. */
function drip(reply: http.ServerResponse, status: number, body: string): void {
  reply.writeHead(status, { 'content-type': 'application/json' });
  let sent = 0;
  const timer = setInterval(() => reply.write(body[sent++ % body.length]), 10);
  reply.once('close', () => clearInterval(timer));
}

const json = (value: unknown): string => JSON.stringify(value);
