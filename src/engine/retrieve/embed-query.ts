import type { QueryVector } from './dense.ts';
import type { CompleteQuery } from './options.ts';
import { type ReachedSpace, type RetrieveContext, spacesOf } from './retrieve-context.ts';
import type { Trace } from './trace-stages.ts';

/**
 * Default weight of vectors against words if neither the query nor an embedder gives one: 0, so that only words are
 * compared.
 */
const WORDS_ONLY = 0;

/** The query's vectors, and their weight against its words. */
interface EmbeddedQuery {
  /** One vector for each model that answered; empty if no model answered or none was asked. */
  readonly vectors: readonly QueryVector[];
  /** Weight of vectors against words, 0..1; 0 if `vectors` is empty. */
  readonly vectorWeight: number;
  /** Whether vectors were wanted, but a model could not be reached or its provider failed. */
  readonly degraded: boolean;
}

/**
 * Asks every usable embedding model of the tenant for the query's vector, and meanwhile loads the vector index of each
 * model. A model that fails is left out and sets `degraded`. No model is asked if the weight of vectors is 0.
 * @throws after an abort of `signal`: its abort reason, or EngineError `unavailable`
 */
export async function embedQuery(
  context: RetrieveContext,
  query: CompleteQuery,
  trace: Trace,
  signal: AbortSignal | undefined,
): Promise<EmbeddedQuery> {
  const spaces = spacesOf(context);
  const vectorWeight = query.vectorWeight ?? spaces[0]?.embedder.vectorWeight ?? WORDS_ONLY;
  const isUnreachable = context.isModelUnreachable === true && query.vectorWeight !== 0;
  if (spaces.length === 0 || vectorWeight === 0)
    return { vectors: [], vectorWeight: WORDS_ONLY, degraded: isUnreachable };
  const ask = async ({ embedder, modelNo, space }: ReachedSpace): Promise<QueryVector | null> => {
    const model = `${embedder.provider} ${embedder.model}, ${embedder.dimensions} dimensions`;
    const [embedding] = await Promise.all([
      trace.awaited('embed', 1, () => space.embedQuery(query.query, signal), model),
      space.index?.load(),
    ]);
    return embedding && { embedding, modelNo, dimensions: embedder.dimensions, encoding: embedder.encoding };
  };
  const answers: (QueryVector | null)[] = [];
  if (context.asksOneByOne) for (const space of spaces) answers.push(await ask(space));
  else answers.push(...(await Promise.all(spaces.map(ask))));
  signal?.throwIfAborted();
  const vectors = answers.filter((vector) => vector !== null);
  return {
    vectors,
    vectorWeight: vectors.length === 0 ? WORDS_ONLY : vectorWeight,
    degraded: isUnreachable || vectors.length < spaces.length,
  };
}
