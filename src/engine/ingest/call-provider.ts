import type { CallOutcome, ProviderBudget } from '../control/provider-budget.ts';
import { assert, isEngineError, serialiseError, type ErrorCode } from '../errors.ts';
import type { Embedder, EmbedOptions } from '../ports.ts';

type Purpose = EmbedOptions['purpose'];

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
}

/**
 * Asks the servers in order for the vectors of some texts: the next one is for when the one before fails or is left alone. What a text
 * is to blame for is no failure of a server.
 * @throws EngineError as the embedder and the budget of the first server do, whatever the others said; `invalid` as soon as one says so
 */
export function callProvider(
  servers: readonly [ProviderServer, ...ProviderServer[]],
  request: CallRequest,
  onCall: ((call: ProviderCall) => void) | undefined,
): Promise<Float32Array[]> {
  const askFrom = async (place: number): Promise<Float32Array[]> => {
    const hasOther = place + 1 < servers.length;
    try {
      const report = (call: Omit<ProviderCall, 'server'>) => onCall?.({ ...call, server: place });
      return await callServer(servers[place]!, request, { hasOther, report });
    } catch (error) {
      if (!hasOther || isEngineError(error, 'invalid') || request.signal.aborted) throw error;
      try {
        return await askFrom(place + 1);
      } catch (later) {
        throw isEngineError(later, 'invalid') ? later : error;
      }
    }
  };
  return askFrom(0);
}

async function callServer(
  { embedder, budget }: ProviderServer,
  { texts, tokens, purpose, signal }: CallRequest,
  { hasOther, report }: { hasOther: boolean; report: (call: Omit<ProviderCall, 'server'>) => void },
): Promise<Float32Array[]> {
  const permit = await budget?.acquire(tokens, { patient: purpose === 'document', hasOther, signal });
  const startedAt = performance.now();
  let billed = 0;
  const end = (outcome: CallOutcome, code: ProviderCall['outcome'], error: string | null) => {
    permit?.end(outcome);
    const ms = performance.now() - startedAt;
    report({ purpose, texts: texts.length, tokens: billed || tokens, ms, outcome: code, error });
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
  } catch (error) {
    const { code, message } = serialiseError(error);
    end(signal.aborted ? { kind: 'abandoned' } : outcomeOf(error), code, message);
    throw error;
  }
}

/** What a failed call says about its server. A refused text is an answer, too. */
export function outcomeOf(error: unknown): CallOutcome {
  if (isEngineError(error, 'rate_limited')) return { kind: 'limited', retryAfterMs: error.retryAfterMs ?? 1_000 };
  if (isEngineError(error, 'invalid')) return { kind: 'answered' };
  return { kind: 'failed', retryAfterMs: isEngineError(error) ? error.retryAfterMs : undefined };
}
