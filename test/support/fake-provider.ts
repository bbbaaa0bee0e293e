import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { createHashedEmbedder } from '../../src/engine/adapters/hashed-embedder.ts';
import { estimateTokens } from '../../src/engine/text/tokens.ts';

/**
 * A server that stands for a model provider and misbehaves on request. It speaks the formats of OpenAI, Gemini, Ollama
 * and Bedrock, each at its own path. Its vectors are those of the offline embedder; its chat answers what the test
 * says.
 */
export interface FakeProvider {
  /** Base URL, as `OM_OPENAI_BASE_URL` takes it. */
  readonly url: string;
  /** The URL without a path. */
  readonly origin: string;
  /** All embedding requests so far, in the order of their arrival. */
  readonly calls: readonly FakeCall[];
  /** Number of texts that were to be embedded so far, in all calls together. */
  readonly texts: number;
  /** Answers in this mode from now on, or with `times` only the next calls and then in the mode before. */
  setMode(mode: FakeMode, options?: FakeModeOptions): void;
  /** From now on refuses calls beyond a limit, and says in every reply how many calls are left, as OpenAI does. */
  limit(limit: FakeLimit): void;
  /** Refuses each call of more tokens than these, from now on, whether it says so in its replies or not. */
  limitTokens(limit: { readonly most: number; readonly isTold: boolean }): void;
  /** Answers calls of these models with 503, and all others as before. */
  failModels(models: readonly string[]): void;
  /** Returns the vector that the server sends for a text, by a model. */
  vectorOf(model: string, text: string): Promise<Float32Array>;
  /** Number of calls that were refused because of the limit. */
  readonly refusals: number;
  /** Waits for the next request and returns it. */
  nextCall(): Promise<FakeCall>;
  /** Leaves every call unanswered from now on. Returns a function that ends this and answers the calls. */
  hold(): () => void;
  /** The chat endpoint `/chat/completions`, with calls and modes of its own. */
  readonly chat: FakeChat;
  close(): Promise<void>;
}

/** Greatest number of requests in a window of `windowMs`, which begins with its first request. */
interface FakeLimit {
  readonly requests: number;
  readonly windowMs: number;
}

interface FakeChat {
  readonly calls: readonly FakeChatCall[];
  /** Sets the answer of the chat from now on; until then it answers `[]`. */
  say(answer: string | ((call: FakeChatCall) => string)): void;
  setMode(mode: FakeChatMode, options?: FakeModeOptions): void;
  nextCall(): Promise<FakeChatCall>;
}

export interface FakeChatCall {
  /** The text of the system message; `input` is the text of the user's message. */
  readonly instructions: string;
  readonly input: string;
  readonly body: { readonly [name: string]: unknown };
  readonly headers: http.IncomingHttpHeaders;
  /** Resolves when the connection of this call has ended on either side. */
  readonly ended: Promise<void>;
}

export interface FakeCall {
  readonly texts: readonly string[];
  /** Time at which the request had arrived, as `performance.now()` (ms). */
  readonly at: number;
  /** Path of the request, still percent-encoded. */
  readonly path: string;
  readonly body: { readonly [name: string]: unknown };
  /** The JSON body as it was sent. */
  readonly json: string;
  readonly headers: http.IncomingHttpHeaders;
  /** Resolves when the connection of this call has ended on either side. */
  readonly ended: Promise<void>;
}

export interface FakeModeOptions {
  readonly times?: number;
  /** Headers of the reply, such as `retry-after`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Body of an error reply, in place of the usual one of its format. */
  readonly error?: unknown;
  /** HTTP status for the mode `status`; 500 by default. */
  readonly status?: number;
  /** Time that the mode `slow` waits before it answers (ms); 100 by default. */
  readonly delayMs?: number;
  /** The modes `refuse_text` and `poison` fail a call that has a text containing this marker. */
  readonly marker?: string;
  /** Name of the wrong parameter, which an error reply contains in its field `param`. */
  readonly param?: string;
}

export type FakeMode = keyof typeof RESPONDERS;
export type FakeChatMode = keyof typeof CHAT_RESPONDERS;

interface Exchange {
  readonly wire: Wire;
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

export interface FakeProviderOptions {
  readonly dimensions: number;
  /** Further models by name, each with its dimensions (a multiple of 256). Vectors of different models differ. */
  readonly models?: Readonly<Record<string, number>>;
}

export async function startFakeProvider({ dimensions, models = {} }: FakeProviderOptions): Promise<FakeProvider> {
  const embedder = createHashedEmbedder({ dimensions });
  const further = new Map(
    Object.entries(models).map(([model, size], place) => {
      const plain = createHashedEmbedder({ dimensions: size });
      return [
        model,
        { embed: async (texts: readonly string[]) => (await plain.embed(texts, DOCUMENT)).map(turnedBy(place + 1)) },
      ];
    }),
  );
  let failing: readonly string[] = [];
  let tokenLimit = { most: Infinity, isTold: false };
  let overTokens = 0;
  const calls: FakeCall[] = [];
  const arrivals: ((call: FakeCall) => void)[] = [];
  const modes = createModes<FakeMode>('ok');
  const limiter = createLimiter();
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
    const body = JSON.parse(json) as Body;
    const path = request.url ?? '';
    const wire = WIRES.find((one) => one.path.test(path));
    if (wire === undefined) return send(reply, 404, 'no such path');
    const texts = wire.textsOf(body);
    const call: FakeCall = { texts, at: performance.now(), path, body, json, headers: request.headers, ended };
    calls.push(call);
    for (const arrived of arrivals.splice(0)) arrived(call);
    await held;
    if (tokenLimit.isTold) {
      reply.setHeader('x-ratelimit-limit-tokens', tokenLimit.most);
      reply.setHeader('x-ratelimit-remaining-tokens', tokenLimit.most);
      reply.setHeader('x-ratelimit-reset-tokens', '10ms');
    }
    if (texts.reduce((sum, text) => sum + estimateTokens(text), 0) > tokenLimit.most) {
      overTokens++;
      return sendError(reply, 429, { headers: { 'retry-after-ms': '100' } });
    }
    if (!limiter.admit(reply)) return sendError(reply, 429, {});
    if (failing.includes(String(body.model))) return sendError(reply, 503, {});
    const { mode, options } = modes.take();
    // A model that makes vectors of several sizes is asked for one.
    const sized = body.dimensions === 512 ? createHashedEmbedder({ dimensions: body.dimensions }) : embedder;
    const vectors = await (further.get(String(body.model)) ?? sized).embed(texts, DOCUMENT);
    const items = vectors.map(
      (vector, index) => ({ object: 'embedding', index, embedding: onWire(vector, body) }) as const,
    );
    RESPONDERS[mode]({ wire, texts, items, reply, options });
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
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: `${origin}/v1`,
    origin,
    calls,
    get texts() {
      return calls.reduce((sum, call) => sum + call.texts.length, 0);
    },
    setMode: modes.set,
    failModels: (failed) => void (failing = failed),
    vectorOf: async (model, text) => (await (further.get(model) ?? embedder).embed([text], DOCUMENT))[0]!,
    limit: limiter.set,
    limitTokens: (limit) => void (tokenLimit = limit),
    get refusals() {
      return limiter.refusals() + overTokens;
    },
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

const DOCUMENT = { purpose: 'document' } as const;

/**
 * Rotates the components of vectors, so that two models have different vectors, but lengths and angles stay the same.
 */
function turnedBy(places: number): (vector: Float32Array) => Float32Array {
  return (vector) => vector.map((_, place) => vector[(place + places) % vector.length]!);
}

interface ChatBody {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
}

interface Modes<Mode> {
  set(mode: Mode, options?: FakeModeOptions): void;
  /** Returns the mode of the next call, and counts the call. */
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

/** Counts calls in fixed time windows, and writes the number of calls left in the window into each reply's headers. */
function createLimiter() {
  let limit: FakeLimit | undefined;
  let window = { until: 0, left: 0 };
  let refused = 0;
  return {
    set: (next: FakeLimit) => void (limit = next),
    refusals: () => refused,
    admit(reply: http.ServerResponse): boolean {
      if (limit === undefined) return true;
      const now = performance.now();
      if (now >= window.until) window = { until: now + limit.windowMs, left: limit.requests };
      const isAdmitted = window.left > 0;
      if (isAdmitted) window.left--;
      else refused++;
      reply.setHeader('x-ratelimit-limit-requests', limit.requests);
      reply.setHeader('x-ratelimit-remaining-requests', window.left);
      reply.setHeader('x-ratelimit-reset-requests', `${Math.ceil(window.until - now)}ms`);
      return isAdmitted;
    },
  };
}

interface Body {
  readonly [name: string]: unknown;
}

/** The format in which one provider receives texts and sends vectors and errors. */
interface Wire {
  readonly path: RegExp;
  textsOf(body: Body): readonly string[];
  replyOf(items: readonly object[]): object;
  errorOf(status: number, param: string | null): object;
  /** Additional headers of an error reply. */
  headersOf?(status: number): Readonly<Record<string, string>>;
}

const embeddingOf = (item: object): unknown => (item as Item).embedding;

const WIRES: readonly Wire[] = [
  {
    path: /\/embeddings$/,
    textsOf: ({ input }) => [input as string | string[]].flat(),
    replyOf: (data) => ({ object: 'list', data, model: 'fake', usage: { prompt_tokens: 1, total_tokens: 1 } }),
    errorOf: (_, param) => ({ error: { message: 'as told', type: 'fake', param } }),
  },
  {
    path: /^\/v1beta\/models\/[^/]+:batchEmbedContents$/,
    textsOf: ({ requests }) =>
      (requests as { content: { parts: { text: string }[] } }[]).map(({ content }) => content.parts[0]!.text),
    replyOf: (items) => ({
      embeddings: items.map((item) => ({ values: embeddingOf(item) })),
      usageMetadata: { promptTokenCount: 7 },
    }),
    errorOf: (code) => ({
      error: { code, message: 'as told', status: code === 400 ? 'INVALID_ARGUMENT' : 'UNAVAILABLE' },
    }),
  },
  {
    path: /^\/api\/embed$/,
    textsOf: ({ input }) => input as string[],
    replyOf: (items) => ({ model: 'fake', embeddings: items.map(embeddingOf), prompt_eval_count: 7 }),
    errorOf: (status) => ({ error: status === 400 ? 'the input length exceeds the context length' : 'as told' }),
  },
  {
    path: /^\/model\/[^/]+\/invoke$/,
    textsOf: ({ inputText }) => [inputText as string],
    replyOf: ([item]) => ({
      embedding: embeddingOf(item ?? {}),
      embeddingsByType: { float: embeddingOf(item ?? {}) },
      inputTextTokenCount: 7,
    }),
    errorOf: () => ({ message: 'as told' }),
    headersOf: (status) => ({
      'x-amzn-errortype': `${status === 400 ? 'ValidationException' : 'InternalServerException'}:http://internal.amazon.com/`,
    }),
  },
];

function onWire(vector: Float32Array, { encoding_format: format }: Body): unknown {
  return format === 'base64'
    ? Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64')
    : [...vector];
}

const RESPONDERS = {
  ok: (exchange) => sendItems(exchange),
  slow: (exchange) => void setTimeout(() => sendItems(exchange), exchange.options.delayMs ?? 100),
  reordered: (exchange) => sendItems(exchange, exchange.items.toReversed()),
  /** Leaves out the index 0, as servers do that write JSON from protobuf. */
  index_zero_omitted: (exchange) =>
    sendItems(
      exchange,
      exchange.items.map((item) => (item.index === 0 ? { ...item, index: undefined } : item)),
    ),

  rate_limited: (exchange) => sendErrorOf(exchange, 429),
  status: (exchange) => sendErrorOf(exchange, exchange.options.status ?? 500),
  refuse_text: (exchange) =>
    exchange.texts.some((text) => text.includes(exchange.options.marker ?? 'REFUSED'))
      ? sendErrorOf(exchange, 400)
      : sendItems(exchange),
  /** Fails every batch that contains the marker: with `status` if it is given, or else with vectors of zeros. */
  poison: (exchange) =>
    exchange.texts.some((text) => text.includes(exchange.options.marker ?? 'POISON'))
      ? exchange.options.status === undefined
        ? sendZeros(exchange)
        : sendErrorOf(exchange, exchange.options.status)
      : sendItems(exchange),
  /** Repeats texts and request headers (with the key) in the message of the error, as no server should. */
  echo: ({ texts, reply, options }) => {
    const message = `${texts.join()} ${json(reply.req.headers)}`;
    send(reply, options.status ?? 400, json({ message, error: { message } }));
  },
  /** Repeats them as a proxy does: in an HTML page, its status line and its headers. */
  echo_page: ({ texts, reply, options }) => sendEchoPage(reply, texts, options),
  /** Repeats them in a reply 200, in place of the vectors. */
  echo_answer: ({ texts, reply }) =>
    send(reply, 200, json({ data: texts, embeddings: texts, embedding: texts, error: json(reply.req.headers) })),

  hang: () => {},
  drip: ({ wire, items, reply }) => drip(reply, 200, json(wire.replyOf(items))),
  drip_error: ({ reply }) => drip(reply, 500, 'an error that takes its time'),
  reset: ({ reply }) => void reply.socket?.resetAndDestroy(),
  cut: ({ wire, items, reply }) => {
    const body = json(wire.replyOf(items));
    reply.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
    reply.write(body.slice(0, body.length / 2), () => reply.destroy());
  },
  redirect: ({ reply }) => void reply.writeHead(307, { location: reply.req.url }).end(),
  html: ({ reply }) => send(reply, 200, '<!doctype html><title>Sign in</title>', 'text/html'),
  truncated: ({ wire, items, reply }) => send(reply, 200, json(wire.replyOf(items)).slice(0, -20)),
  huge: ({ reply }) => sendForever(reply),

  nan: ({ wire, items, reply }) => send(reply, 200, json(wire.replyOf(items)).replace(/\[-?\d[^,]*,/, '[NaN,')),
  null: (exchange) => sendItems(exchange, exchange.items, () => null),
  strings: (exchange) => sendItems(exchange, exchange.items, String),
  infinite: (exchange) => sendItems(exchange, exchange.items, () => 1e39),
  zeros: (exchange) => sendZeros(exchange),
  /** Sends vectors that are not of length 1, as Gemini does with shortened vectors. */
  unnormalised: (exchange) =>
    sendItems(
      exchange,
      exchange.items.map((item) => ({ ...item, embedding: (item.embedding as number[]).map((value) => value * 3) })),
    ),
  wrong_dimension: (exchange) =>
    sendItems(
      exchange,
      exchange.items.map((item) => ({ ...item, embedding: (item.embedding as number[]).slice(1) })),
    ),
  no_vector: (exchange) =>
    sendItems(
      exchange,
      exchange.items.map((item) => ({ ...item, embedding: null })),
    ),
  empty: ({ reply }) => send(reply, 200, ''),
  no_list: ({ reply }) => send(reply, 200, '{"object":"list"}'),
  short: (exchange) => sendItems(exchange, exchange.items.slice(1)),
  extra: (exchange) => {
    const { items } = exchange;
    sendItems(exchange, [...items, { ...items[0]!, index: items.length }]);
  },
  index_repeated: (exchange) =>
    sendItems(
      exchange,
      exchange.items.map((item) => ({ ...item, index: 0 })),
    ),
  index_outside: (exchange) =>
    sendItems(
      exchange,
      exchange.items.map((item) => ({ ...item, index: item.index! + 1 })),
    ),
} satisfies Record<string, (exchange: Exchange) => void>;

const CHAT_RESPONDERS = {
  ok: ({ reply, answer }) => sendCompletion(reply, { content: answer }),
  slow: ({ reply, answer, options }) =>
    void setTimeout(() => sendCompletion(reply, { content: answer }), options.delayMs ?? 100),
  /** Leaves out the token counts, as some servers do. */
  uncounted: ({ reply, answer }) => send(reply, 200, json({ choices: [{ message: { content: answer } }] })),

  rate_limited: ({ reply, options }) => sendError(reply, 429, options),
  status: ({ reply, options }) => sendError(reply, options.status ?? 500, options),
  /** Fails every prompt that contains the marker. */
  poison: ({ call, reply, answer, options }) =>
    call.input.includes(options.marker ?? 'POISON')
      ? sendError(reply, options.status ?? 500, options)
      : sendCompletion(reply, { content: answer }),
  /** Refuses the parameter `temperature`, as reasoning models do. */
  no_temperature: ({ reply, answer, call }) =>
    'temperature' in call.body
      ? sendError(reply, 400, { param: 'temperature' })
      : sendCompletion(reply, { content: answer }),
  /** Repeats the prompt and the key in the message of the error, as no server should. */
  echo: ({ call, reply, options }) =>
    send(
      reply,
      options.status ?? 400,
      json({ error: { message: `${call.instructions} ${call.input} ${call.headers.authorization}` } }),
    ),
  /** Repeats the prompt as a proxy does: in an HTML page, its status line and its headers. */
  echo_page: ({ call, reply, options }) => sendEchoPage(reply, [call.instructions, call.input], options),
  /** Repeats the prompt in the answer, in which a JSON list was expected. */
  echo_answer: ({ call, reply }) => sendCompletion(reply, { content: `[{"${call.input}": ` }),

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

/** Sends items as a reply of the provider's format. @param spoil replaces one number in the last vector */
function sendItems(
  { wire, reply, options, items }: Exchange,
  sent: readonly object[] = items,
  spoil?: (value: number) => unknown,
): void {
  const spoiled = sent.map((item, i) => {
    if (spoil === undefined || i < sent.length - 1) return item;
    const embedding = (item as { embedding: number[] }).embedding;
    return { ...item, embedding: embedding.map((value, d) => (d === 7 ? spoil(value) : value)) };
  });
  send(reply, 200, json(wire.replyOf(spoiled)), 'application/json', options.headers);
}

function sendZeros(exchange: Exchange): void {
  sendItems(
    exchange,
    exchange.items.map((item) => ({ ...item, embedding: (item.embedding as number[]).map(() => 0) })),
  );
}

function sendErrorOf({ wire, reply, options }: Exchange, status: number): void {
  const error = options.error ?? wire.errorOf(status, options.param ?? null);
  const headers = { ...wire.headersOf?.(status), ...options.headers };
  send(reply, status, json(error), 'application/json', headers);
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

function sendEchoPage(reply: http.ServerResponse, texts: readonly string[], { status = 502 }: FakeModeOptions): void {
  const page = `<!doctype html><pre>${texts.join()} ${json(reply.req.headers)}</pre>`;
  const line = page.replaceAll(/[^ -~]/g, ' ').slice(0, 4_000);
  const names = ['retry-after', 'x-ratelimit-reset-requests', 'x-amzn-errortype', 'www-authenticate'];
  reply
    .writeHead(status, line, { 'content-type': 'text/html', ...Object.fromEntries(names.map((name) => [name, line])) })
    .end(page);
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

/** Sends a body one byte at a time, again and again, until the client closes the connection. */
function drip(reply: http.ServerResponse, status: number, body: string): void {
  reply.writeHead(status, { 'content-type': 'application/json' });
  let sent = 0;
  const timer = setInterval(() => reply.write(body[sent++ % body.length]), 10);
  reply.once('close', () => clearInterval(timer));
}

const json = (value: unknown): string => JSON.stringify(value);
