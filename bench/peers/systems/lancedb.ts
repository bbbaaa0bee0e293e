/**
 * LanceDB, embedded: an index of words, an index of vectors, `optimize` after the load, and its hybrid query with
 * reciprocal rank fusion. Of its indexes of vectors IVF_RQ is the best here: at 100,000 memories it is built in 4 s and
 * IVF_PQ in 54 s, and questions take no longer. At 10,000 HNSW is built as slowly as IVF_PQ and gains nothing, and with
 * IVF_FLAT or no index questions take longer. Each add is a file and a version of the table, so texts that arrive one
 * by one are gathered, and `optimize` runs after as many changes as its documentation names.
 */
import path from 'node:path';
import { loadPackage, type OpenSystem } from '../system.ts';

const DIMENSIONS = 768;
/**
 * Time for which adds are gathered, ms. Without it questions beside adds take three times as long; with more, adds wait
 * and questions gain nothing.
 */
const GATHER_MS = 50;
/** Number of changes of a table after which the documentation advises to optimize it. */
const CHANGES = 20;

interface Table {
  add(rows: unknown): Promise<unknown>;
  createIndex(column: string, options: { config: unknown }): Promise<void>;
  optimize(options?: object): Promise<unknown>;
  query(): Query;
  close(): void;
}

interface Query {
  nearestTo(vector: Float32Array): Query;
  distanceType(type: 'cosine'): Query;
  fullTextSearch(question: string, options: { columns: readonly string[] }): Query;
  rerank(reranker: unknown): Query;
  select(columns: readonly string[]): Query;
  limit(count: number): Query;
  toArray(): Promise<readonly { readonly content: string }[]>;
}

interface LanceDb {
  connect(folder: string): Promise<{ createTable(name: string, rows: unknown): Promise<Table>; close(): void }>;
  readonly Index: { fts(options: object): unknown; ivfRq(options: object): unknown };
  readonly rerankers: { readonly RRFReranker: { create(): Promise<unknown> } };
}

/** The few members of apache-arrow with which a column of vectors is made without copying numbers one by one. */
interface Arrow {
  readonly Field: new (name: string, type: unknown, nullable: boolean) => unknown;
  readonly Float32: new () => unknown;
  readonly FixedSizeList: new (length: number, field: unknown) => unknown;
  readonly Utf8: new () => unknown;
  readonly Table: new (columns: Readonly<Record<string, unknown>>) => unknown;
  makeData(options: object): unknown;
  makeVector(data: unknown): unknown;
  vectorFromArray(values: readonly string[], type: unknown): unknown;
}

export const open: OpenSystem = async (folder, embedder) => {
  // It would write two warnings a question about columns of later versions.
  process.env.LANCEDB_LOG = 'error';
  const lancedb = await loadPackage<LanceDb>('@lancedb/lancedb');
  const arrow = await loadPackage<Arrow>('apache-arrow');
  const db = await lancedb.connect(path.join(folder, 'lancedb'));
  const reranker = await lancedb.rerankers.RRFReranker.create();
  const number = new arrow.Float32();
  const list = new arrow.FixedSizeList(DIMENSIONS, new arrow.Field('item', number, true));
  const rows = (texts: readonly string[]) => {
    const numbers = new Float32Array(DIMENSIONS * texts.length);
    for (const [at, text] of texts.entries()) numbers.set(embedder.embedOne(text, 'document'), DIMENSIONS * at);
    const child = arrow.makeData({ type: number, length: numbers.length, data: numbers });
    return new arrow.Table({
      content: arrow.vectorFromArray(texts, new arrow.Utf8()),
      vector: arrow.makeVector(arrow.makeData({ type: list, length: texts.length, child })),
    });
  };
  let table: Table | undefined;
  let changes = 0;
  let optimizing: Promise<unknown> | undefined;
  return {
    async load(texts) {
      if (table === undefined) table = await db.createTable('memories', rows(texts));
      else await table.add(rows(texts));
    },
    async finishLoading() {
      const words = { withPosition: false, stem: true, removeStopWords: true, asciiFolding: true };
      await table!.createIndex('content', { config: lancedb.Index.fts(words) });
      await table!.createIndex('vector', { config: lancedb.Index.ivfRq({ distanceType: 'cosine' }) });
      await table!.optimize();
    },
    async ask(question) {
      const hits = await table!
        .query()
        .nearestTo(embedder.embedOne(question, 'query'))
        .distanceType('cosine')
        .fullTextSearch(question, { columns: ['content'] })
        .rerank(reranker)
        .select(['content'])
        .limit(10)
        .toArray();
      return hits.map(({ content }) => content);
    },
    async add(texts) {
      await table!.add(rows(texts));
      // Two at the same time would refuse each other.
      if (++changes < CHANGES || optimizing !== undefined) return;
      changes = 0;
      optimizing = table!.optimize().finally(() => (optimizing = undefined));
    },
    adding: { atOnce: 1, together: Infinity, everyMs: GATHER_MS },
    async close() {
      await optimizing;
      await table!.optimize({ cleanupOlderThan: new Date(), deleteUnverified: true });
      table!.close();
      db.close();
    },
  };
};
