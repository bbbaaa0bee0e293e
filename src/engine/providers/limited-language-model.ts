import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { ProviderBudget } from '../control/provider-budget.ts';
import { isEngineError, serialiseError } from '../errors.ts';
import type { Completion, LanguageModel } from '../ports.ts';
import { estimateTokens } from '../text/tokens.ts';
import { traced, type Tracing } from '../tracing.ts';
import { outcomeOf, type ProviderCall } from './call-provider.ts';

type Request = Parameters<LanguageModel['complete']>[0];

/** A call of a language model that has ended, as metrics and the log record it. */
export interface LanguageModelCall extends Pick<ProviderCall, 'ms' | 'outcome' | 'error'> {
  readonly purpose: Request['purpose'];
  /**
   * Number of tokens of the prompt, as the model's reply states it; an estimate for a failed call, and for a server
   * that does not count.
   */
  readonly inputTokens: number;
  /** Number of tokens of the answer, as the model's reply states it, else an estimate; 0 for a failed call. */
  readonly outputTokens: number;
}

/** Greatest number of bytes of all cached answers together. */
const CACHED_BYTES = 8_000_000;
/**
 * Lifetime of a cached answer (ms). It is short, and the cache is in memory only, because answers speak of memories,
 * which may be erased.
 */
const CACHED_FOR_MS = 600_000;

/**
 * Wraps a language model in a budget (limits of calls and tokens) that all processes share, and in a cache: a request
 * that equals one of the same tenant which was answered within the last ten minutes costs no call, because answers are
 * given at temperature 0. The cache never serves an answer to another tenant, which would see by the time of its
 * request that somebody made the same one; a request without `tenant` is not cached. A rerank does not wait until the
 * budget allows a call, since the query can keep the order that it has. `onCall` is called for every request that was
 * sent, not for answers from the cache.
 * @returns a model that throws what the wrapped one and the budget throw, and does not call `onReply`; a request that
 *   fails with `conflict` is sent once more
 */
export function createLimitedLanguageModel(
  model: LanguageModel,
  {
    budget,
    maxCached,
    onCall,
    tracing,
  }: {
    readonly budget: ProviderBudget;
    /** Greatest number of answers that are cached (`OM_LLM_CACHE`); 0 caches none. */
    readonly maxCached: number;
    readonly onCall: (call: LanguageModelCall) => void;
    readonly tracing?: Tracing | null | undefined;
  },
): LanguageModel {
  const answers = createAnswerCache(maxCached);

  const call = {
    kind: 'client',
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': model.provider,
      'gen_ai.request.model': model.model,
    },
  } as const;

  async function ask(request: Request, signal: AbortSignal | undefined): Promise<Completion> {
    const { purpose } = request;
    const estimated = estimateTokens(request.instructions) + estimateTokens(request.input);
    // Providers count the longest answer that the request allows, not the answer itself.
    const tokens = estimated + request.maxTokens;
    await model.prepare?.();
    const permit = await budget.acquire(tokens, { patient: purpose !== 'rerank', signal });
    const startedAt = performance.now();
    const ms = () => performance.now() - startedAt;
    try {
      const completion = await traced(tracing, `chat ${model.model}`, call, () =>
        model.complete(request, signal, ({ headers }) => permit.heard(headers)),
      );
      permit.end({ kind: 'answered' });
      const { inputTokens, outputTokens } = completion;
      onCall({ purpose, inputTokens, outputTokens, ms: ms(), outcome: 'ok', error: null });
      return completion;
    } catch (error) {
      const { code, message } = serialiseError(error);
      permit.end(signal?.aborted ? { kind: 'abandoned' } : outcomeOf(error));
      onCall({ purpose, inputTokens: estimated, outputTokens: 0, ms: ms(), outcome: code, error: message });
      throw error;
    }
  }

  return {
    ...model,
    async complete(request, signal) {
      const isCached = maxCached > 0 && request.tenant !== undefined;
      const key = isCached ? hashOf(request) : '';
      const known = answers.get(key);
      if (known !== undefined) return known;
      const completion = await ask(request, signal).catch((error: unknown) => {
        // `conflict` asks for the request again. That is a call of its own: it waits, is counted and is logged by
        // itself.
        if (isEngineError(error, 'conflict')) return ask(request, signal);
        throw error;
      });
      if (isCached) answers.set(key, completion);
      return completion;
    },
  };
}

function createAnswerCache(most: number): LRUCache<string, Completion> {
  return new LRUCache({
    max: Math.max(1, most),
    maxSize: CACHED_BYTES,
    sizeCalculation: ({ text }) => 2 * text.length + 200,
    ttl: CACHED_FOR_MS,
  });
}

function hashOf({ tenant, instructions, input, maxTokens }: Request): string {
  return createHash('sha256')
    .update(JSON.stringify([tenant, instructions, input, maxTokens]))
    .digest('base64');
}
