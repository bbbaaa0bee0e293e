import pLimit from 'p-limit';
import type { ProviderBudget } from '../control/provider-budget.ts';
import { EngineError, isEngineError } from '../errors.ts';
import type { Embedder, EmbedOptions } from '../ports.ts';
import { estimateTokens } from '../text/tokens.ts';
import { tracesOf, type Tracing } from '../tracing.ts';
import { type BatchBound, MIN_BOUND, createBatchBound } from './batch-bound.ts';
import { callProvider, type ProviderCall, type ProviderServer } from './call-provider.ts';

type Purpose = EmbedOptions['purpose'];

export interface GathererOptions {
  /** Most texts of one call. */
  readonly maxBatchTexts: number;
  /** Most tokens of one call, by estimate; a text with more is sent alone. */
  readonly maxBatchTokens: number;
  /** Longest time that the first text of a batch of documents waits for others (ms); queries are sent at once. */
  readonly lingerMs: number;
  /** Most calls under way at a time, for each purpose (documents, queries). */
  readonly concurrency: number;
  /** The provider's budget, shared by all processes; undefined for an embedder that computes by itself. */
  readonly budget?: ProviderBudget | undefined;
  /** Servers of the same model that are asked, in order, if the embedder's own server fails; none by default. */
  readonly fallbacks?: readonly ProviderServer[] | undefined;
  readonly onCall?: ((call: ProviderCall) => void) | undefined;
  readonly tracing?: Tracing | null | undefined;
}

/** Gathers the texts of concurrent callers into few calls. */
export interface EmbeddingGatherer {
  /**
   * Embeds one text. Callers that wait for equal texts get the same vector: treat it as read-only.
   * @throws EngineError as the embedder and the budget do; a text that the provider refuses fails alone, any other
   *         failure fails all texts of the call; `unavailable` when `signal` aborts. The provider's call is aborted
   *         once nobody waits for any of its texts.
   */
  embed(text: string, purpose: Purpose, signal?: AbortSignal): Promise<Float32Array>;
  /** Embeds several texts and returns their vectors in order. Throws the first failure of any text, as `embed` does. */
  embedAll(texts: readonly string[], purpose: Purpose, signal?: AbortSignal): Promise<Float32Array[]>;
}

/** Creates a gatherer with one lane for documents and one for queries. */
export function createEmbeddingGatherer(embedder: Embedder, options: GathererOptions): EmbeddingGatherer {
  const servers: Servers = [{ embedder, budget: options.budget }, ...(options.fallbacks ?? [])];
  // Each purpose has its own lane, so that a query neither lingers nor waits behind a bulk import.
  const lanes = {
    document: createLane(servers, 'document', options),
    query: createLane(servers, 'query', { ...options, lingerMs: 0 }),
  };

  async function embedAll(texts: readonly string[], purpose: Purpose, signal?: AbortSignal): Promise<Float32Array[]> {
    if (signal?.aborted) throw abandoned();
    const pending = texts.map((text) => lanes[purpose](text));
    // One listener serves all texts: adding one takes time in proportion to the listeners that the signal has.
    const leave = () => pending.forEach((embedding) => embedding.leave());
    signal?.addEventListener('abort', leave, { once: true });
    try {
      return await Promise.all(pending.map(({ embedding }) => embedding));
    } finally {
      signal?.removeEventListener('abort', leave);
    }
  }
  return {
    embed: async (text, purpose, signal) => (await embedAll([text], purpose, signal))[0]!,
    embedAll,
  };
}

type Servers = readonly [ProviderServer, ...ProviderServer[]];

/** The result of a text that a caller waits for. */
interface PendingEmbedding {
  readonly embedding: Promise<Float32Array>;
  /** Stops waiting: `embedding` rejects, and the call is aborted once nobody waits for it. */
  leave(): void;
}

/** A text that at least one caller waits for. */
interface Entry {
  readonly text: string;
  readonly tokens: number;
  readonly waiters: Set<Waiter>;
  /** W3C trace context of the first caller; null if the caller is not traced. */
  readonly trace: string | null;
  /** The call that carries the text, once there is one. */
  call: Call | undefined;
}

interface Waiter {
  resolve(vector: Float32Array): void;
  reject(error: unknown): void;
}

interface Call {
  readonly entries: readonly Entry[];
  readonly controller: AbortController;
}

/**
 * Creates the queue of one purpose, which collects texts and sends them in batches. A batch is cut when its call may
 * start, so that batches fill while calls are slow.
 * @returns a function that adds a text to the queue and gives the vector that the caller waits for
 */
function createLane(servers: Servers, purpose: Purpose, options: GathererOptions) {
  const limit = pLimit(options.concurrency);
  const bound = createBatchBound(options.maxBatchTokens);
  const queue = createTextQueue(options, maxTokens);
  const send = createBatchSender(servers, purpose, options, bound);
  let linger: NodeJS.Timeout | undefined;

  return function join(text: string): PendingEmbedding {
    const entry = queue.findOrAdd(text);
    schedule();
    return waitFor(entry);
  };

  function schedule(): void {
    if (queue.isFull()) dispatch();
    else if (!queue.isEmpty()) linger ??= setTimeout(dispatch, options.lingerMs);
  }

  function dispatch(): void {
    clearTimeout(linger);
    linger = undefined;
    // A call that waits for its slot takes the texts that are there by then.
    if (limit.pendingCount === 0) void limit(sendBatch);
  }

  async function sendBatch(): Promise<void> {
    const entries = queue.takeBatch();
    schedule();
    await send(entries);
  }

  /**
   * Returns the most tokens of a batch: the bound, and at most a quarter of the tokens a minute that the provider told
   * of, but not less than `MIN_BOUND`. A call that took most of a minute's tokens would leave none to other calls.
   */
  function maxTokens(): number {
    const told = options.budget?.toldTokensPerMinute();
    return told === undefined ? bound.tokens() : Math.min(bound.tokens(), Math.max(MIN_BOUND, Math.ceil(told / 4)));
  }
}

/** The texts that wait for a call, each once, in the order in which they came. */
interface TextQueue {
  findOrAdd(text: string): Entry;
  isEmpty(): boolean;
  /** True if the waiting texts are enough to fill a batch. */
  isFull(): boolean;
  /** Takes the oldest texts that fit into one batch out of the queue: at least one; none if the queue is empty. */
  takeBatch(): Entry[];
}

function createTextQueue(options: GathererOptions, maxTokens: () => number): TextQueue {
  const entries = new Map<string, Entry>();
  let queuedTokens = 0;

  function add(text: string): Entry {
    const trace = options.tracing?.active()?.traceparent ?? null;
    const entry: Entry = { text, tokens: estimateTokens(text), waiters: new Set(), trace, call: undefined };
    entries.set(text, entry);
    queuedTokens += entry.tokens;
    return entry;
  }

  return {
    findOrAdd: (text) => entries.get(text) ?? add(text),
    isEmpty: () => entries.size === 0,
    isFull: () => entries.size >= options.maxBatchTexts || queuedTokens >= maxTokens(),
    takeBatch() {
      const batch: Entry[] = [];
      const max = maxTokens();
      let tokens = 0;
      for (const entry of entries.values()) {
        const fits = batch.length < options.maxBatchTexts && tokens + entry.tokens <= max;
        if (batch.length > 0 && !fits) break;
        batch.push(entry);
        tokens += entry.tokens;
        entries.delete(entry.text);
      }
      queuedTokens -= tokens;
      return batch;
    },
  };
}

/**
 * Returns a function that sends a batch and answers everybody who waits for its texts. It never rejects, and leaves out
 * texts that nobody waits for any more.
 */
function createBatchSender(servers: Servers, purpose: Purpose, options: GathererOptions, bound: BatchBound) {
  return send;

  /** Halves a batch that was refused until the refused text is alone. */
  async function send(batch: readonly Entry[]): Promise<void> {
    const entries = batch.filter((entry) => entry.waiters.size > 0);
    if (entries.length === 0) return;
    try {
      const vectors = await embedEntries(entries);
      entries.forEach((entry, i) => entry.waiters.forEach((waiter) => waiter.resolve(vectors[i]!)));
    } catch (error) {
      if (isEngineError(error, 'invalid') && entries.length > 1) {
        const middle = entries.length >> 1;
        await send(entries.slice(0, middle));
        await send(entries.slice(middle));
      } else {
        for (const entry of entries) entry.waiters.forEach((waiter) => waiter.reject(error));
      }
    }
  }

  async function embedEntries(entries: readonly Entry[]): Promise<Float32Array[]> {
    const call: Call = { entries, controller: new AbortController() };
    for (const entry of entries) entry.call = call;
    const request = {
      texts: entries.map((entry) => entry.text),
      tokens: entries.reduce((sum, entry) => sum + entry.tokens, 0),
      purpose,
      signal: call.controller.signal,
      traces: options.tracing ? tracesOf(entries) : [],
    };
    const vectors = await callProvider(servers, request, { onCall, tracing: options.tracing });
    bound.noteAnswer(request.tokens);
    return vectors;
  }

  function onCall(call: ProviderCall): void {
    if (call.outcome === 'rate_limited' && call.texts > 1) bound.noteLimited(call.tokens, call.ms);
    options.onCall?.(call);
  }
}

function waitFor(entry: Entry): PendingEmbedding {
  const { promise, resolve, reject } = Promise.withResolvers<Float32Array>();
  const waiter: Waiter = { resolve, reject };
  entry.waiters.add(waiter);
  return {
    embedding: promise,
    leave() {
      entry.waiters.delete(waiter);
      reject(abandoned());
      if (entry.call?.entries.every(({ waiters }) => waiters.size === 0)) entry.call.controller.abort();
    },
  };
}

function abandoned(): EngineError {
  return new EngineError('unavailable', 'the embedding was given up by its caller');
}
