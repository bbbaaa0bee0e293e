import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { ProviderBudget } from '../control/provider-budget.ts';
import { isEngineError, serialiseError } from '../errors.ts';
import type { Completion, LanguageModel } from '../ports.ts';
import { estimateTokens } from '../text/tokens.ts';
import { traced, type Tracing } from '../tracing.ts';
import { outcomeOf, type ProviderCall } from './call-provider.ts';

type Request = Parameters<LanguageModel['complete']>[0];

/** One call as metrics and the log see it. */
export interface LanguageModelCall extends Pick<ProviderCall, 'ms' | 'outcome' | 'error'> {
  readonly purpose: Request['purpose'];
  /** As billed, else estimated. */
  readonly inputTokens: number;
  readonly outputTokens: number;
}

const CACHED_ANSWERS = 4_096;
const CACHED_BYTES = 8_000_000;
/** In memory and not for long: answers tell of memories, which may be erased. */
const CACHED_FOR_MS = 600_000;

/**
 * A language model that is asked no more than all processes together may, that is left alone while it is down, and that is not asked the
 * same thing twice within ten minutes: it answers at temperature 0. A rerank does not wait for room, since it has an order to go on with.
 */
export function createLimitedLanguageModel(
  model: LanguageModel,
  {
    budget,
    onCall,
    tracing,
  }: {
    readonly budget: ProviderBudget;
    readonly onCall: (call: LanguageModelCall) => void;
    readonly tracing?: Tracing | null | undefined;
  },
): LanguageModel {
  const answers = new LRUCache<string, Completion>({
    max: CACHED_ANSWERS,
    maxSize: CACHED_BYTES,
    sizeCalculation: ({ text }) => 2 * text.length + 200,
    ttl: CACHED_FOR_MS,
  });

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
    // Providers count the longest answer that is allowed.
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
      const key = hashOf(request);
      const known = answers.get(key);
      if (known !== undefined) return known;
      const completion = await ask(request, signal).catch((error: unknown) => {
        // Each request is one call: it is waited for, counted and logged by itself.
        if (isEngineError(error, 'conflict')) return ask(request, signal);
        throw error;
      });
      answers.set(key, completion);
      return completion;
    },
  };
}

function hashOf({ instructions, input, maxTokens }: Request): string {
  return createHash('sha256')
    .update(JSON.stringify([instructions, input, maxTokens]))
    .digest('base64');
}
