import type { CallOutcome } from '../control/provider-breaker.ts';
import type { ProviderBudget } from '../control/provider-budget.ts';
import { assert, EngineError, isEngineError, serialiseError, type ErrorCode } from '../errors.ts';
import type { Embedder, EmbedOptions } from '../ports.ts';
import { estimateTokens } from '../text/tokens.ts';
import type { SpanOptions, Tracing } from '../tracing.ts';

type Purpose = EmbedOptions['purpose'];

/** A text that any embedder can embed. If a server refuses it, the server is at fault, and not the caller's text. */
export const PROBE_TEXT = 'Are you there?';

/**
 * A server that returns vectors of one model, with the budget of requests and tokens that all processes share for it.
 */
export interface ProviderServer {
  readonly embedder: Embedder;
  /** Undefined for an embedder that computes on this machine, which has no limits. */
  readonly budget?: ProviderBudget | undefined;
}

/** A provider call that has ended, as metrics and the table `embed_logs` record it. */
export interface ProviderCall {
  readonly purpose: Purpose;
  /** Number of texts in the call. */
  readonly texts: number;
  /** Number of tokens billed, if the reply says so; else an estimate. */
  readonly tokens: number;
  /** Duration of the call (ms), without the time that it waited for the budget. */
  readonly ms: number;
  readonly outcome: 'ok' | ErrorCode;
  /** The error message of a failed call; null for an answered one. */
  readonly error: string | null;
  /** Index of the server that was called: 0 for the first, 1 and up for the fallback servers after it. */
  readonly server: number;
}

/** Texts to embed in one call. */
export interface CallRequest {
  readonly texts: readonly string[];
  /** Estimated number of tokens of all texts. */
  readonly tokens: number;
  readonly purpose: Purpose;
  readonly signal: AbortSignal;
  /** W3C trace contexts of the callers that wait for the vectors. */
  readonly traces: readonly string[];
}

/**
 * Calls the servers in order for the vectors of some texts. If a server fails or may not be called now, the next one is
 * called; a text that a server refuses is no failure of it. `onCall` is called for every request that was sent, failed
 * ones and probes with `PROBE_TEXT` included.
 * @returns one vector per text, in the order of the texts
 * @throws EngineError of the first server's embedder or budget, whatever the other servers replied; `invalid` if the
 *   first server refuses the texts (a single text only if the server answers other texts), and for several texts also
 *   if another server refuses them, so that the caller can find the refused text among them
 */
export function callProvider(
  servers: readonly [ProviderServer, ...ProviderServer[]],
  request: CallRequest,
  {
    onCall,
    tracing,
  }: {
    readonly onCall?: ((call: ProviderCall) => void) | undefined;
    readonly tracing?: Tracing | null | undefined;
  },
): Promise<Float32Array[]> {
  const askFrom = async (index: number): Promise<Float32Array[]> => {
    const hasOther = index + 1 < servers.length;
    try {
      const report = (call: Omit<ProviderCall, 'server'>) => onCall?.({ ...call, server: index });
      return await callServer(servers[index]!, request, { hasOther, report, tracing });
    } catch (error) {
      if (!hasOther || isEngineError(error, 'invalid') || request.signal.aborted) throw error;
      try {
        return await askFrom(index + 1);
      } catch (later) {
        // Whether a single text is at fault is decided by the first server, once it answers again.
        throw isEngineError(later, 'invalid') && request.texts.length > 1 ? later : error;
      }
    }
  };
  return askFrom(0);
}

interface CallContext {
  /** Whether another server can be called after this one. */
  readonly hasOther: boolean;
  readonly report: (call: Omit<ProviderCall, 'server'>) => void;
  readonly tracing: Tracing | null | undefined;
}

/**
 * Calls one server. A single text is at fault only if the server refuses it, answers `PROBE_TEXT`, and refuses it
 * again. A server that refuses every text counts as down, for example because its model was removed or a proxy answers
 * in its place.
 */
async function callServer(server: ProviderServer, request: CallRequest, context: CallContext): Promise<Float32Array[]> {
  try {
    return await callOnce(server, request, context);
  } catch (error) {
    if (request.texts.length > 1 || !isEngineError(error, 'invalid')) throw error;
  }
  await callOnce(
    server,
    { ...request, texts: [PROBE_TEXT], tokens: estimateTokens(PROBE_TEXT), isProbe: true },
    context,
  );
  return callOnce(server, request, context);
}

async function callOnce(
  { embedder, budget }: ProviderServer,
  { texts, tokens, purpose, signal, traces, isProbe = false }: CallRequest & { readonly isProbe?: boolean },
  { hasOther, report, tracing }: CallContext,
): Promise<Float32Array[]> {
  // The embedder loads its client first, so that no loading time lies between the permit and the request.
  await embedder.prepare?.();
  const permit = await budget?.acquire(tokens, { patient: purpose === 'document', hasOther, signal });
  const startedAt = performance.now();
  const span = traces.length === 0 ? undefined : tracing?.start(...describeCall(embedder, texts.length, traces));
  let billed = 0;
  const end = (outcome: CallOutcome, code: ProviderCall['outcome'], error: string | null) => {
    permit?.end(outcome);
    const ms = performance.now() - startedAt;
    report({ purpose, texts: texts.length, tokens: billed || tokens, ms, outcome: code, error });
    if (code !== 'ok') span?.fail(code);
    span?.set({ 'gen_ai.usage.input_tokens': billed || tokens });
    span?.end();
  };
  try {
    const vectors = await embedder.embed(texts, {
      purpose,
      signal,
      onReply({ headers, tokens: counted = 0 }) {
        permit?.heard(headers);
        billed += counted;
      },
    });
    assert(vectors.length === texts.length, 'an embedder returns one vector per text');
    end({ kind: 'answered' }, 'ok', null);
    return vectors;
  } catch (thrown) {
    const error = isProbe && isEngineError(thrown, 'invalid') ? refusesAll(thrown) : thrown;
    const { code, message } = serialiseError(error);
    end(signal.aborted ? { kind: 'abandoned' } : outcomeOfEmbedding(error), code, message);
    throw error;
  }
}

function refusesAll({ message }: EngineError): EngineError {
  return new EngineError('unavailable', `${message}, and any other: check its address and its model`);
}

/**
 * Returns the outcome of a failed embedding call for the budget. A refusal (`invalid`) counts neither for nor against
 * the server, as the text may be at fault; other errors as in `outcomeOf`.
 */
function outcomeOfEmbedding(error: unknown): CallOutcome {
  return isEngineError(error, 'invalid') ? { kind: 'refused' } : outcomeOf(error);
}

function describeCall(
  { provider, model }: Embedder,
  texts: number,
  continues: readonly string[],
): [name: string, options: SpanOptions] {
  const call = {
    'gen_ai.operation.name': 'embeddings',
    'gen_ai.provider.name': provider,
    'gen_ai.request.model': model,
  };
  return [`embeddings ${model}`, { kind: 'client', continues, attributes: { ...call, 'cairn.texts': texts } }];
}

/**
 * Returns the outcome of a call that failed with `error`, for the budget. `rate_limited` is `limited`, for a second if
 * the error names no time. `invalid` (the server declines) and `conflict` (it says which form of the request it
 * accepts) are `answered`. Any other error is `failed`.
 */
export function outcomeOf(error: unknown): CallOutcome {
  if (isEngineError(error, 'rate_limited')) return { kind: 'limited', retryAfterMs: error.retryAfterMs ?? 1_000 };
  if (isEngineError(error, 'invalid') || isEngineError(error, 'conflict')) return { kind: 'answered' };
  return { kind: 'failed', retryAfterMs: isEngineError(error) ? error.retryAfterMs : undefined };
}
