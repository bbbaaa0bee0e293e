import type { CallOutcome, ProviderBudget } from '../control/provider-budget.ts';
import { assert, EngineError, isEngineError, serialiseError, type ErrorCode } from '../errors.ts';
import type { Embedder, EmbedOptions } from '../ports.ts';
import { estimateTokens } from '../text/tokens.ts';
import type { SpanOptions, Tracing } from '../tracing.ts';

type Purpose = EmbedOptions['purpose'];

/** A text that any embedder can embed: whether it does tells an outage from a text it cannot. */
export const PROBE_TEXT = 'Are you there?';

/** A server that can be asked for vectors of one space, with what all processes may ask of it. */
export interface ProviderServer {
  readonly embedder: Embedder;
  /** None for an embedder that computes. */
  readonly budget?: ProviderBudget | undefined;
}

/** One call as metrics and `embed_logs` see it. */
export interface ProviderCall {
  readonly purpose: Purpose;
  readonly texts: number;
  /** As billed where the reply says, else estimated. */
  readonly tokens: number;
  readonly ms: number;
  readonly outcome: 'ok' | ErrorCode;
  /** The message of a failed call. */
  readonly error: string | null;
  /** Which server was asked: 0 for the first, then its stand-ins. */
  readonly server: number;
}

export interface CallRequest {
  readonly texts: readonly string[];
  /** Estimated. */
  readonly tokens: number;
  readonly purpose: Purpose;
  readonly signal: AbortSignal;
  /** W3C trace contexts of those who wait for it. */
  readonly traces: readonly string[];
}

/**
 * Asks the servers in order for the vectors of some texts: the next one is for when the one before fails or is left alone. What a text
 * is to blame for is no failure of a server.
 * @throws EngineError as the embedder and the budget of the first server do, whatever the others said; `invalid` where the first server
 *         refuses them, which for one text means that it answers others; of several texts also where one that stands in refuses them, so
 *         that the rest is told from the text that it does not take
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
  const askFrom = async (place: number): Promise<Float32Array[]> => {
    const hasOther = place + 1 < servers.length;
    try {
      const report = (call: Omit<ProviderCall, 'server'>) => onCall?.({ ...call, server: place });
      return await callServer(servers[place]!, request, { hasOther, report, tracing });
    } catch (error) {
      if (!hasOther || isEngineError(error, 'invalid') || request.signal.aborted) throw error;
      try {
        return await askFrom(place + 1);
      } catch (later) {
        // Of one text the last word is the first server's, which has yet to say it.
        throw isEngineError(later, 'invalid') && request.texts.length > 1 ? later : error;
      }
    }
  };
  return askFrom(0);
}

interface CallContext {
  readonly hasOther: boolean;
  readonly report: (call: Omit<ProviderCall, 'server'>) => void;
  readonly tracing: Tracing | null | undefined;
}

/**
 * A text is to blame for its refusal if it is refused, another is answered, and it is refused again. A server that refuses whatever it is
 * asked, since its model is gone or a proxy answers in its place, is as good as down, and what it said until it was mended counts
 * against no text.
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
  // What is loaded before it starts does not stand between its permit and the request.
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

/** Whether a refusal is the text's doing is not known yet. */
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

/** What a failed call says about its server. One that declines, or says how to ask, has answered. */
export function outcomeOf(error: unknown): CallOutcome {
  if (isEngineError(error, 'rate_limited')) return { kind: 'limited', retryAfterMs: error.retryAfterMs ?? 1_000 };
  if (isEngineError(error, 'invalid') || isEngineError(error, 'conflict')) return { kind: 'answered' };
  return { kind: 'failed', retryAfterMs: isEngineError(error) ? error.retryAfterMs : undefined };
}
