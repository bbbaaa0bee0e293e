import type { Clock, Embedder, LanguageModel, Logger, VectorIndex } from '../ports.ts';
import type { Store } from '../store/open-store.ts';
import type { WorkBudget } from '../store/work-budget.ts';
import type { Tracing } from '../tracing.ts';
import type { Memory, MemoryQuery, QueryResult, RetrievalOptions } from '../types.ts';
import type { QueryVector } from './dense.ts';
import type { CompleteQuery } from './options.ts';
import type { Recall } from './recall.ts';
import type { Trace } from './trace-stages.ts';

/** A vector space of the file: the model that made its vectors, and how to ask that model. */
export interface QuerySpace {
  /** Embedder of the space; null where the settings do not say how to ask its model, or there is no model. */
  readonly embedder: Embedder | null;
  /** Number of the model in the file; null where the file has no vectors. */
  readonly modelNo: number | null;
  /**
   * Index of the vectors; null where there is none. Read this field again after each wait, as the file may be reopened.
   */
  readonly index: VectorIndex | null;
  /** Embeds a query in this space; null when the provider failed. */
  embedQuery(text: string, signal: AbortSignal | undefined): Promise<Float32Array | null>;
}

/** What retrieval needs of a tenant. */
export interface RetrieveContext extends QuerySpace {
  /**
   * A reader's connection. Read this field again after each wait, since the file may have been closed and opened anew
   * meanwhile.
   */
  readonly store: Store;
  /**
   * The embedder of the tenant's main vector space; null where the tenant has no vectors, or their model cannot be
   * asked.
   */
  readonly embedder: Embedder | null;
  /** The number of the main vector space's model in this file; null while the file has no vectors. */
  readonly modelNo: number | null;
  /**
   * True where the settings do not say how to ask the model of one of the file's vector spaces. That space has no
   * embedder, and answers are degraded.
   */
  readonly isModelUnreachable?: boolean;
  /** Index of the main vector space; null where there is none. Read this field again after each wait. */
  readonly index: VectorIndex | null;
  /** Embeds a query. The call is cached and limited in time. The result is null when the provider failed. */
  embedQuery(text: string, signal: AbortSignal | undefined): Promise<Float32Array | null>;
  /**
   * The vector spaces besides the main one, where sectors have models of their own. Each is asked and searched by
   * itself.
   */
  readonly furtherSpaces?: readonly QuerySpace[];
  /** Whether several models are asked for the query's vectors one after the other; at the same time where left out. */
  readonly asksOneByOne?: boolean;
  /** The language model that reranks, limited in time; null where none is configured. */
  readonly languageModel: LanguageModel | null;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Default options in order of precedence: the tenant's own first, then those of the settings. */
  readonly defaults: readonly RetrievalOptions[];
  /** The work that all queries of this context may cause together; without bounds where left out. */
  readonly budget?: WorkBudget;
  /** Makes the id of an answer. */
  newId(): string;
  /** Tracing in which each stage becomes a span; null or left out where nothing is traced. */
  readonly tracing?: Tracing | null;
  /** Called by `retrieve`, not by `recallMemories`, with what the stages found and the answer that was made of it. */
  readonly onRecall?: (recall: Recall, answer: QueryResult) => void;
  /**
   * Reads memories by number; unknown numbers are left out.
   * @param now time for which salience and strength are computed, Unix ms
   */
  readMemories(store: Store, memoryNos: readonly number[], now: number): ReadonlyMap<number, Memory>;
}

/** A query under way: what its stages are given. */
export interface RunningQuery {
  readonly context: RetrieveContext;
  /** The query as it came, without defaults. */
  readonly request: MemoryQuery;
  /** The query with all defaults. */
  readonly query: CompleteQuery;
  /** The query's vectors, one for each model that answered; empty where words alone decide. */
  readonly vectors: readonly QueryVector[];
  /** The weight of vectors against words, 0..1: 1 for vectors only; 0 where `vectors` is empty. */
  readonly vectorWeight: number;
  readonly trace: Trace;
  /** The time of the query, Unix ms. */
  readonly now: number;
}

/** A vector space whose model can be asked: neither its embedder nor its number is null. */
export interface ReachedSpace {
  readonly embedder: Embedder;
  readonly modelNo: number;
  readonly space: QuerySpace;
}

/**
 * Lists the tenant's vector spaces whose model can be asked, the main one first. The list is empty where words alone
 * decide.
 */
export function spacesOf(context: RetrieveContext): ReachedSpace[] {
  return [context, ...(context.furtherSpaces ?? [])].flatMap((space) => {
    const { embedder, modelNo } = space;
    return embedder === null || modelNo === null ? [] : [{ embedder, modelNo, space }];
  });
}
