import { AsyncLocalStorage } from 'node:async_hooks';
import pLimit from 'p-limit';
import type { ProviderBudget } from '../control/provider-budget.ts';
import { EngineError, isEngineError } from '../errors.ts';
import type { Embedder, EmbedOptions } from '../ports.ts';
import { estimateTokens } from '../text/tokens.ts';
import { tracesOf, type Tracing } from '../tracing.ts';
import { type BatchBound, MIN_BOUND, createBatchBound } from './batch-bound.ts';
import { callProvider, type ProviderCall, type ProviderServer } from './call-provider.ts';

type Purpose = EmbedOptions['purpose'];

/** Limits by which a gatherer makes provider calls, and what it reports to. */
export interface GathererOptions {
  /** Greatest number of texts of one call. */
  readonly maxBatchTexts: number;
  /** Greatest estimated number of tokens of one call; a text with more is sent alone. */
  readonly maxBatchTokens: number;
  /**
   * Longest time for which the first text of a batch of documents waits for further texts (ms); queries are sent
   * without waiting.
   */
  readonly lingerMs: number;
  /** Greatest number of calls that run at the same time, for each purpose (documents, queries). */
  readonly concurrency: number;
  /** The provider's budget, which all processes share; undefined for an embedder that computes on this machine. */
  readonly budget?: ProviderBudget | undefined;
  /** Servers of the same model that are called, in order, if the embedder's own server fails; none by default. */
  readonly fallbacks?: readonly ProviderServer[] | undefined;
  /**
   * Called with every provider call that has ended, in the asynchronous context of the caller whose text was the first
   * in it.
   */
  readonly onCall?: ((call: ProviderCall) => void) | undefined;
  readonly tracing?: Tracing | null | undefined;
}

/** Combines the texts of concurrent callers into few provider calls. */
export interface EmbeddingGatherer {
  /**
   * Embeds one text. Equal texts that wait for the same call get the same vector: treat it as read-only.
   * @throws EngineError of the embedder or the budget; a text that the provider refuses fails alone, any other failure
   *   fails all texts of the call; `unavailable` when `signal` aborts. The provider's call is aborted once no caller
   *   waits for any of its texts.
   */
  embed(text: string, purpose: Purpose, signal?: AbortSignal): Promise<Float32Array>;
  /**
   * Embeds several texts and returns their vectors in order. If one text fails, this throws its error, which `embed`
   * describes, at once; the other texts may have been paid for.
   */
  embedAll(texts: readonly string[], purpose: Purpose, signal?: AbortSignal): Promise<Float32Array[]>;
}

/** Creates a gatherer with a queue for documents and one for queries. */
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

/** The pending vector of a text, as one caller waits for it. */
interface PendingEmbedding {
  readonly embedding: Promise<Float32Array>;
  /**
   * Stops waiting: `embedding` rejects with `unavailable`. The call is aborted once no caller waits for any of its
   * texts.
   */
  leave(): void;
}

/** A text that at least one caller waits for. */
interface Entry {
  readonly text: string;
  readonly tokens: number;
  readonly waiters: Set<Waiter>;
  /** W3C trace context of the first caller that waits for the text; null if that caller is not traced. */
  readonly trace: string | null;
  /** Runs a function in the asynchronous context of the first caller that waits for the text. */
  readonly inContext: <T>(work: () => T) => T;
  /** The call that carries the text; undefined while the text is queued. */
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
 * Creates the queue of one purpose, which collects texts and sends them in batches. A batch is formed only when its
 * call may start, so that batches fill while calls are slow.
 * @returns a function that adds a text to the queue and returns the pending vector for the caller
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
    // A call that already waits for its slot takes along whatever texts have come by then.
    if (limit.pendingCount === 0) void limit(sendBatch);
  }

  async function sendBatch(): Promise<void> {
    const entries = queue.takeBatch();
    schedule();
    await send(entries);
  }

  /**
   * Returns the greatest number of tokens of a batch: the adaptive bound, or a quarter of the tokens a minute that the
   * provider stated if that is less, but then at least 512. A call that took most of a minute's tokens would leave none
   * to other calls for a minute.
   */
  function maxTokens(): number {
    const stated = options.budget?.statedTokensPerMinute();
    return stated === undefined ? bound.tokens() : Math.min(bound.tokens(), Math.max(MIN_BOUND, Math.ceil(stated / 4)));
  }
}

/** The texts that wait to be embedded by a provider call, each once, in the order of arrival. */
interface TextQueue {
  findOrAdd(text: string): Entry;
  isEmpty(): boolean;
  /** Whether the waiting texts are enough to fill a batch. */
  isFull(): boolean;
  /**
   * Removes the oldest texts that fit into one batch from the queue: at least one, even if it is too large; none if the
   * queue is empty.
   */
  takeBatch(): Entry[];
}

function createTextQueue(options: GathererOptions, maxTokens: () => number): TextQueue {
  const entries = new Map<string, Entry>();
  let queuedTokens = 0;

  function add(text: string): Entry {
    const trace = options.tracing?.active()?.traceparent ?? null;
    const inContext = AsyncLocalStorage.snapshot();
    const tokens = estimateTokens(text);
    const entry: Entry = { text, tokens, waiters: new Set(), trace, inContext, call: undefined };
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
 * Returns a function that sends a batch and resolves or rejects for every caller that waits for its texts. It never
 * rejects itself, and leaves out texts that no caller waits for any more.
 */
function createBatchSender(servers: Servers, purpose: Purpose, options: GathererOptions, bound: BatchBound) {
  return send;

  /**
   * Sends a batch. If the provider refuses it, it is halved until the refused text is alone, and only that text fails.
   */
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
    // A timer or the end of another call may have started this one, in the context of a caller with no text in it.
    const vectors = await entries[0]!.inContext(() =>
      callProvider(servers, request, { onCall, tracing: options.tracing }),
    );
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
