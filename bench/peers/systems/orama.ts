/**
 * Orama in its hybrid mode, with stemming and stop words as the other systems have them. It keeps everything in memory
 * and nothing on disk. Its default similarity of 0.8 would find hardly any vector of a short question.
 */
import { STOP_WORDS } from '../../../src/engine/text/stop-words.ts';
import { loadPackage, type OpenSystem } from '../system.ts';

const SIMILARITY = 0.2;
const BATCH = 500;

interface Memory {
  readonly content: string;
  readonly embedding: readonly number[];
}

interface Orama {
  create(options: object): unknown;
  insert(db: unknown, memory: Memory): unknown;
  insertMultiple(db: unknown, memories: readonly Memory[], batch: number): unknown;
  search(db: unknown, query: object): { readonly hits: readonly { readonly document: Memory }[] };
}

export const open: OpenSystem = async (_folder, embedder) => {
  const { create, insert, insertMultiple, search } = await loadPackage<Orama>('@orama/orama');
  const db = create({
    schema: { content: 'string', embedding: 'vector[768]' },
    components: { tokenizer: { language: 'english', stemming: true, stopWords: [...STOP_WORDS] } },
  });
  const memory = (content: string): Memory => ({
    content,
    embedding: Array.from(embedder.embedOne(content, 'document')),
  });
  return {
    async load(texts) {
      await insertMultiple(db, texts.map(memory), BATCH);
    },
    finishLoading: async () => {},
    async ask(question) {
      const { hits } = search(db, {
        mode: 'hybrid',
        term: question,
        vector: { value: embedder.embedOne(question, 'query'), property: 'embedding' },
        similarity: SIMILARITY,
        limit: 10,
      });
      return hits.map(({ document }) => document.content);
    },
    async add(texts) {
      for (const text of texts) await insert(db, memory(text));
    },
    adding: { atOnce: 1, together: BATCH, everyMs: 0 },
    close: async () => {},
  };
};
