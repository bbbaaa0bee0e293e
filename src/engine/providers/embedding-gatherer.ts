import pLimit from 'p-limit';
import type { ProviderBudget } from '../control/provider-budget.ts';
import { EngineError, isEngineError } from '../errors.ts';
import type { Embedder, EmbedOptions } from '../ports.ts';
import { estimateTokens } from '../text/tokens.ts';
import { tracesOf, type Tracing } from '../tracing.ts';
import { BOUND_LEAST, createBatchBound } from './batch-bound.ts';
import { callProvider, type ProviderCall, type ProviderServer } from './call-provider.ts';

type Purpose = EmbedOptions['purpose'];

export interface GathererOptions {
  /** A call holds at most so many texts and, by estimate, so many tokens; a text over the latter travels alone. */
  readonly maxBatchTexts: number;
  readonly maxBatchTokens: number;
  /** How long the first text of a batch waits for company. */
  readonly lingerMs: number;
  /** Calls in flight, for each purpose. */
  readonly concurrency: number;
  /** What all processes share; none for an embedder that computes. */
  readonly budget?: ProviderBudget | undefined;
  /** Servers of the same model that stand in where the embedder's own fails. */
  readonly fallbacks?: readonly ProviderServer[] | undefined;
  readonly onCall?: ((call: ProviderCall) => void) | undefined;
  readonly tracing?: Tracing | null | undefined;
}

/** Gathers the texts of concurrent callers into few calls. */
export interface EmbeddingGatherer {
  /**
   * Equal texts of one call share one vector: treat it as read-only.
   * @throws EngineError as the embedder does; a text that the provider refuses fails alone, any other failure fails all texts of the
   *         call; `unavailable` when `signal` aborts, which ends a call once nobody waits for it
   */
  embed(text: string, purpose: Purpose, signal?: AbortSignal): Promise<Float32Array>;
  /** In order; fails with the first failure. */
  embedAll(texts: readonly string[], purpose: Purpose, signal?: AbortSignal): Promise<Float32Array[]>;
}

export function createEmbeddingGatherer(embedder: Embedder, options: GathererOptions): EmbeddingGatherer {
  const servers: Servers = [{ embedder, budget: options.budget }, ...(options.fallbacks ?? [])];
  // A lane each: a query neither lingers nor stands behind a bulk import.
  const lanes = {
    document: createLane(servers, 'document', options),
    query: createLane(servers, 'query', { ...options, lingerMs: 0 }),
  };

  async function embedAll(texts: readonly string[], purpose: Purpose, signal?: AbortSignal): Promise<Float32Array[]> {
    if (signal?.aborted) throw abandoned();
    const places = texts.map((text) => lanes[purpose](text));
    // One listener for all texts: adding one takes as long as the signal has listeners.
    const leave = () => places.forEach((place) => place.leave());
    signal?.addEventListener('abort', leave, { once: true });
    try {
      return await Promise.all(places.map((place) => place.embedding));
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

/** What a caller gets for a text: its vector to come, and a way to wait no longer. */
interface Place {
  readonly embedding: Promise<Float32Array>;
  leave(): void;
}

/** A text that somebody waits for. */
interface Entry {
  readonly text: string;
  readonly tokens: number;
  readonly waiters: Set<Waiter>;
  /** W3C trace context of whoever asked for it first. */
  readonly trace: string | null;
  /** The call that carries it, once there is one. */
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

/** The waiting texts of one purpose. They are cut into batches when a call may start, so that batches fill while calls are slow. */
function createLane(servers: Servers, purpose: Purpose, options: GathererOptions) {
  const limit = pLimit(options.concurrency);
  const bound = createBatchBound(options.maxBatchTokens);
  const queue = new Map<string, Entry>();
  let queuedTokens = 0;
  let linger: NodeJS.Timeout | undefined;

  return function join(text: string): Place {
    const entry = queue.get(text) ?? enqueue(text);
    schedule();
    return waitFor(entry);
  };

  function enqueue(text: string): Entry {
    const trace = options.tracing?.active()?.traceparent ?? null;
    const entry: Entry = { text, tokens: estimateTokens(text), waiters: new Set(), trace, call: undefined };
    queue.set(text, entry);
    queuedTokens += entry.tokens;
    return entry;
  }

  function schedule(): void {
    if (queue.size >= options.maxBatchTexts || queuedTokens >= tokensMost()) dispatch();
    else if (queue.size > 0) linger ??= setTimeout(dispatch, options.lingerMs);
  }

  function dispatch(): void {
    clearTimeout(linger);
    linger = undefined;
    // A call that waits for its slot takes what has gathered by then.
    if (limit.pendingCount === 0) void limit(sendBatch);
  }

  async function sendBatch(): Promise<void> {
    const entries = takeBatch();
    schedule();
    await send(entries);
  }

  /** A call that needs most of a minute's tokens would wait for a minute without any. */
  function tokensMost(): number {
    const told = options.budget?.toldTokensPerMinute();
    return told === undefined ? bound.tokens() : Math.min(bound.tokens(), Math.max(BOUND_LEAST, Math.ceil(told / 4)));
  }

  function takeBatch(): Entry[] {
    const batch: Entry[] = [];
    const most = tokensMost();
    let tokens = 0;
    for (const entry of queue.values()) {
      const fits = batch.length < options.maxBatchTexts && tokens + entry.tokens <= most;
      if (batch.length > 0 && !fits) break;
      batch.push(entry);
      tokens += entry.tokens;
      queue.delete(entry.text);
    }
    queuedTokens -= tokens;
    return batch;
  }

  /** Halves a batch that was refused until the refused text stands alone. */
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

function waitFor(entry: Entry): Place {
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
