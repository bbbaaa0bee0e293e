import type { Clock, Embedder, LanguageModel, Logger, VectorIndex } from '../ports.ts';
import type { Store } from '../store/open-store.ts';
import type { WorkBudget } from '../store/work-budget.ts';
import type { Tracing } from '../tracing.ts';
import type { Memory, MemoryQuery, QueryResult, RetrievalOptions } from '../types.ts';
import type { QueryVector } from './dense.ts';
import type { CompleteQuery } from './options.ts';
import type { StageResults } from './stage-results.ts';
import type { Trace } from './trace-stages.ts';

/** A vector space of a tenant's file: all vectors of one model, and how to embed a query with that model. */
export interface QuerySpace {
  /**
   * Embedder of the space's model; null if the settings do not say how to reach the model, or if queries search by
   * words alone.
   */
  readonly embedder: Embedder | null;
  /** Number, in this file, of the space's model; null if queries search by words alone (`OM_EMBEDDINGS=none`). */
  readonly modelNo: number | null;
  /**
   * Index of the vectors; null if there is none. Read the field again after each `await`, as the file may have been
   * reopened meanwhile.
   */
  readonly index: VectorIndex | null;
  /**
   * Embeds a query in this space. The result is null if the provider failed.
   * @throws after an abort of `signal`: its abort reason, or EngineError `unavailable`
   */
  embedQuery(text: string, signal: AbortSignal | undefined): Promise<Float32Array | null>;
}

/** What retrieval needs of a tenant: its file, its models and its settings. */
export interface RetrieveContext extends QuerySpace {
  /**
   * A read connection to the tenant's file. Read the field again after each `await`, as the file may have been reopened
   * meanwhile.
   */
  readonly store: Store;
  /**
   * Embedder of the tenant's main vector space; null if the settings do not say how to reach its model, or if queries
   * search by words alone.
   */
  readonly embedder: Embedder | null;
  /**
   * Number, in this file, of the main vector space's model; null if queries search by words alone
   * (`OM_EMBEDDINGS=none`).
   */
  readonly modelNo: number | null;
  /**
   * Whether the settings do not say how to reach one of the models whose vectors the file has; false if left out. The
   * space of such a model is not searched, and answers are marked as degraded.
   */
  readonly isModelUnreachable?: boolean;
  /**
   * Index of the main vector space; null if there is none. Read the field again after each `await`, as the file may
   * have been reopened meanwhile.
   */
  readonly index: VectorIndex | null;
  /**
   * Embeds a query in the main vector space. Results are cached and the call has a time limit. The result is null if
   * the provider failed or did not answer in time.
   */
  embedQuery(text: string, signal: AbortSignal | undefined): Promise<Float32Array | null>;
  /**
   * The vector spaces in addition to the main one, if some sectors have embedding models of their own; none if left
   * out. Each is searched separately.
   */
  readonly furtherSpaces?: readonly QuerySpace[];
  /**
   * Whether several models are asked one after the other for the query's vectors; if false or left out, all at once.
   */
  readonly asksOneByOne?: boolean;
  /** The language model that reranks candidates; its calls have a time limit. Null if none is configured. */
  readonly languageModel: LanguageModel | null;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Default retrieval options in order of precedence: the tenant's own first, then those of the process's settings. */
  readonly defaults: readonly RetrievalOptions[];
  /**
   * Runs the reads of one question: in one snapshot as long as nothing was awaited between them, which saves round
   * trips to a database behind a network. If left out, `store.read` runs each on a snapshot of its own.
   */
  readonly read?: Store['read'] | undefined;
  /** Work budget that all queries of this context share; unbounded if left out. */
  readonly budget?: WorkBudget;
  /** Returns a new id for an answer (`recallId`). */
  newId(): string;
  /** Tracing that records each stage as a span; null or left out if the request is not traced. */
  readonly tracing?: Tracing | null;
  /**
   * Callback that `retrieve` calls with the results of all stages and the answer made from them, inside the read of the
   * last stage: it must not write to the store. `runStages` does not call it.
   */
  readonly onRecall?: (recall: StageResults, answer: QueryResult) => void;
  /**
   * Reads memories by `memoryNo`; an unknown number has no entry.
   * @param now time for which salience and strength are computed, Unix ms
   */
  readMemories(store: Store, memoryNos: readonly number[], now: number): ReadonlyMap<number, Memory>;
}

/** A query that is being answered, with everything that its stages need. */
export interface RunningQuery {
  readonly context: RetrieveContext;
  /** The query before defaults are filled in. */
  readonly request: MemoryQuery;
  /** The query with all defaults filled in. */
  readonly query: CompleteQuery;
  /** The query's vectors, one for each model that answered; empty if only words are compared. */
  readonly vectors: readonly QueryVector[];
  /** Weight of vectors against words, 0..1: 1 for vectors alone; 0 if `vectors` is empty. */
  readonly vectorWeight: number;
  readonly trace: Trace;
  /** Time of the query, Unix ms. */
  readonly now: number;
}

/** A vector space whose model can be reached: neither `embedder` nor `modelNo` is null. */
export interface ReachedSpace {
  readonly embedder: Embedder;
  readonly modelNo: number;
  readonly space: QuerySpace;
}

/**
 * Lists the tenant's vector spaces whose model can be reached, the main one first. It is empty if only words can be
 * searched.
 */
export function spacesOf(context: RetrieveContext): ReachedSpace[] {
  return [context, ...(context.furtherSpaces ?? [])].flatMap((space) => {
    const { embedder, modelNo } = space;
    return embedder === null || modelNo === null ? [] : [{ embedder, modelNo, space }];
  });
}
