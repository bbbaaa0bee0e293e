/** Stores an evaluation set through the real engine, so that its questions can be asked, and in plain FTS5. */
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import Database from 'better-sqlite3';
import { v7 as uuidv7 } from 'uuid';
import { readConfig } from '../src/engine/config.ts';
import type { Tenant } from '../src/engine/engine.ts';
import type { BatchContext } from '../src/engine/batches/batch-context.ts';
import { runNextQuestions } from '../src/engine/batches/reason.ts';
import { fitToTexts } from '../src/engine/upkeep/fit-to-texts.ts';
import { runBatch } from '../src/engine/batches/run-batch.ts';
import { createMetrics } from '../src/engine/metrics.ts';
import { openEngine } from '../src/engine/open-engine.ts';
import { openParts } from '../src/engine/parts/engine-parts.ts';
import { silentLogger, type Clock } from '../src/engine/ports.ts';
import type { SqliteStore } from '../src/engine/store/open-store.ts';
import { ftsString, indexableText, queryTerms } from '../src/engine/text/index-text.ts';
import type { MemoryQuery, NewMemory, QueryResult } from '../src/engine/types.ts';
import type { EvaluationMemory, EvaluationQuestion, EvaluationSet, EvaluationUser } from './datasets.ts';
import { newMemory } from '../test/support/new-memory.ts';
import { sqliteOf } from '../test/support/sqlite-of.ts';

/** A set in its own file, as a server has it once all jobs have ended, and the same texts in plain FTS5. */
export interface EvaluatedStore extends AsyncDisposable {
  readonly tenant: Tenant;
  readonly memories: number;
  /** The questions with ids in place of keys. */
  readonly questions: readonly EvaluationQuestion[];
  /** Asks as a user of the engine would, but reinforces nothing, so that no question changes the answer to the next. */
  ask(question: Asked, options: AskOptions): Promise<QueryResult>;
  /**
   * Asks the baseline: one FTS5 column with the same segmentation, the query's words joined by OR, plain BM25.
   * Returns ids, best first.
   */
  askPlainText(question: Asked, limit: number): string[];
  idOf(userId: string, key: string): string;
  /** Does all work that the ledger owes. */
  work(): Promise<void>;
}

export type Asked = Pick<EvaluationQuestion, 'userId' | 'query'>;
export type AskOptions = Omit<Partial<MemoryQuery>, 'query' | 'filter' | 'reinforce'> & { readonly k: number };

export interface EvaluatedStoreOptions {
  /** The time of every add and of every question, Unix ms. */
  readonly now: number;
  /** Settings by their names in the environment; the defaults if left out. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Called with the store once all memories are stored and linked and the models of the texts are fitted. */
  readonly prepare?: (store: SqliteStore) => void;
  /** Called with the number of the set's memories that are stored, and of jobs of these that were claimed so far. */
  readonly onProgress?: (stored: number, finished: number) => void;
}

const ADD_SLICE = 500;
const BATCH = 256;

/**
 * Stores a set through the real engine by a fixed clock: it adds the memories, runs the workers' batches, and fits the
 * models of the texts.
 */
export async function openEvaluatedStore(
  set: Pick<EvaluationSet, 'users' | 'questions'>,
  { now, settings = {}, prepare, onProgress }: EvaluatedStoreOptions,
): Promise<EvaluatedStore> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-evaluation-'));
  const file = path.join(folder, 'cairn.sqlite');
  const clock: Clock = { now: () => now };
  const config = readConfig({ ...settings, OM_DB_PATH: file });
  const metrics = createMetrics();
  const engine = await openEngine({ config, clock, metrics, writer: 'inline' });
  const parts = openParts({ config, clock, metrics, role: 'worker', onCall: () => {} });
  const tenant = await engine.tenant('default');
  const plainText = createPlainText();

  const said: readonly Said[] = set.users.flatMap(({ userId, memories }) =>
    memories.map((memory) => ({ userId, memory })),
  );
  const ids = await addAll(tenant, said, { plainText, onProgress });
  const idOf = (userId: string, key: string) => {
    const id = ids.get(nameOf(userId, key));
    if (id === undefined) throw new Error(`no memory ${key} of ${userId}`);
    return id;
  };

  const context = {
    ...{ config, clock, metrics },
    open: () => parts.pool.get(file),
    logger: silentLogger,
    embedder: parts.embedder,
    gatherer: parts.gatherer,
    languageModel: parts.languageModel,
    documentParser: null,
    pageFetcher: null,
    newId: uuidv7,
    owner: `evaluation ${randomUUID()}`,
  };
  for (let finished = 0; ;) {
    const { claimed } = await runBatch(context, BATCH);
    if (claimed === 0) break;
    onProgress?.(said.length, (finished += claimed));
  }
  for (const { userId, memory } of said) {
    if (memory.supersedes === undefined) continue;
    await tenant.supersedeMemory({ oldId: idOf(userId, memory.supersedes), newId: idOf(userId, memory.key) });
  }
  await fitToTexts(context, () => Promise.resolve());
  prepare?.(sqliteOf(parts.pool.get(file).store));

  return {
    tenant,
    memories: new Set(ids.values()).size,
    questions: set.questions.map((question) => ({
      ...question,
      // What a set judges relevant and does not hold (Cranfield has one empty abstract) counts as not found.
      relevant: new Set([...question.relevant].map((key) => ids.get(nameOf(question.userId, key)) ?? `missing ${key}`)),
    })),
    ask: ({ userId, query }, options) =>
      tenant.query({ ...options, query, filter: { userIds: [userId] }, reinforce: false }),
    askPlainText: plainText.search,
    idOf,
    work: () => workOff(context),
    async [Symbol.asyncDispose]() {
      plainText.close();
      await engine.close();
      parts.pool.close();
      fs.rmSync(folder, { recursive: true });
    },
  };
}

async function workOff(context: BatchContext): Promise<void> {
  for (let claimed = 1; claimed > 0;) {
    claimed = (await runNextQuestions(context, { alone: false })).claimed;
    claimed += (await runBatch(context, BATCH)).claimed;
  }
}

interface Said {
  readonly userId: string;
  readonly memory: EvaluationMemory;
}

/** Adds what was said to the engine and to the plain index. Returns the id of each memory by its `nameOf`. */
async function addAll(
  tenant: Tenant,
  said: readonly Said[],
  {
    plainText,
    onProgress,
  }: {
    readonly plainText: PlainText;
    readonly onProgress: EvaluatedStoreOptions['onProgress'] | undefined;
  },
): Promise<ReadonlyMap<string, string>> {
  const ids = new Map<string, string>();
  for (let first = 0; first < said.length; first += ADD_SLICE) {
    const slice = said.slice(first, first + ADD_SLICE);
    const { outcomes } = await tenant.addMemories(slice.map(({ userId, memory }) => memoryOf(userId, memory)));
    for (const [place, outcome] of outcomes.entries()) {
      const { userId, memory } = slice[place]!;
      if (outcome.kind === 'rejected') throw new Error(`${memory.key} was refused: ${outcome.error.message}`);
      ids.set(nameOf(userId, memory.key), outcome.id);
      if (outcome.kind === 'accepted') plainText.add(outcome.id, userId, memory.content);
    }
    onProgress?.(first + slice.length, 0);
  }
  return ids;
}

function nameOf(userId: string, key: string): string {
  return JSON.stringify([userId, key]);
}

function memoryOf(userId: string, { key: _key, supersedes: _supersedes, ...memory }: EvaluationMemory): NewMemory {
  return newMemory({ ...memory, userId, eventTime: memory.eventTime ?? null });
}

type PlainText = ReturnType<typeof createPlainText>;

function createPlainText() {
  const database = new Database(':memory:');
  database.exec(`CREATE VIRTUAL TABLE plain_text USING fts5
    (content, user UNINDEXED, id UNINDEXED, tokenize = 'porter unicode61 remove_diacritics 2')`);
  const insert = database.prepare('INSERT INTO plain_text (content, user, id) VALUES (?, ?, ?)');
  const select = database
    .prepare('SELECT id FROM plain_text WHERE plain_text MATCH ? AND user = ? ORDER BY bm25(plain_text), rowid LIMIT ?')
    .pluck();
  return {
    add: (id: string, userId: string, content: string) => void insert.run(indexableText(content), userId, id),
    search({ userId, query }: Asked, limit: number) {
      const match = queryTerms(query).words.map(ftsString).join(' OR ');
      return match === '' ? [] : (select.all(match, userId, limit) as string[]);
    },
    close: () => void database.close(),
  };
}

/** Adds mixtures of a set's own sentences under the same users until the set holds `size` memories. */
export function padUsers(users: readonly EvaluationUser[], size: number, random: () => number): EvaluationUser[] {
  const originals = users.flatMap(({ userId, memories }) => memories.map(({ content }) => ({ userId, content })));
  const filler = new Map<string, EvaluationMemory[]>(users.map(({ userId }) => [userId, []]));
  for (let made = originals.length; made < size; made += 1) {
    const original = originals[made % originals.length]!;
    const other = originals[Math.floor(random() * originals.length)]!;
    filler.get(original.userId)!.push({
      key: `filler ${made}`,
      sessionId: `filler-${Math.floor(made / 20)}`,
      content: `${firstPart(original.content, 0.6)} ${firstPart(other.content, 0.5)}`,
    });
  }
  return users.map(({ userId, memories }) => ({ userId, memories: [...memories, ...filler.get(userId)!] }));
}

function firstPart(text: string, share: number): string {
  const [words, separator] = text.includes(' ') ? [text.split(' '), ' '] : [[...text], ''];
  return words.slice(0, Math.ceil(words.length * share)).join(separator);
}
