import { iterateAudit, verifyAudit } from '../../src/engine/store/audit-chain.ts';
import fs from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import pLimit from 'p-limit';
import { expect } from 'vitest';
import { readEvents } from '../../src/engine/store/job-timeline.ts';
import { openStore, type SqliteStore } from '../../src/engine/store/open-store.ts';
import { expectNoOrphans } from './engine-fixture.ts';
import { databaseFile, type ServiceProcess, type ServiceReply } from './running-service.ts';
import { createRandom } from '../../src/engine/random.ts';

/**
 * A client that adds memories while the service is killed or stopped, for a test like Jepsen's `set` checker. It writes
 * a history to disk of the adds that it attempted and of those that were acknowledged. In the end, every acknowledged
 * memory must be stored, every stored memory must have been attempted, and none may be stored twice.
 */
export interface AddClient {
  /** Adds the next `count` memories. Resolves when each of them is acknowledged or given up. */
  add(count: number): Promise<void>;
  readonly acknowledged: number;
  /** Resolves when `count` adds in all are acknowledged, counted from the start. */
  untilAcknowledged(count: number): Promise<void>;
  /** Returns the next reply with this HTTP status. */
  untilAnswered(status: number): Promise<ServiceReply>;
  /** Number of replies by HTTP status. */
  readonly statuses: ReadonlyMap<number, number>;
  /**
   * Number of replies that the service replayed for a repeated idempotency key, since the reply to an earlier attempt
   * was lost.
   */
  readonly replayed: number;
}

export interface AddClientOptions {
  /** Path of the history. A line is on disk before each request and after each acknowledgement. */
  readonly history: string;
  readonly seed: number;
  readonly concurrency: number;
  /** Returns the service to which requests are sent, once it is ready. */
  readonly service: () => Promise<ServiceProcess>;
}

/** Content of one line of a history. */
type Entry =
  | { readonly kind: 'attempted'; readonly content: string }
  | { readonly kind: 'acknowledged'; readonly content: string; readonly id: string };

/**
 * Share of the adds that are not repeated if their reply is lost, so that the client does not know whether they are
 * stored.
 */
const GIVE_UP_SHARE = 1 / 8;
const MAX_ATTEMPTS = 1_000;
const RETRY_MS = 50;

export function createAddClient({ history, seed, concurrency, service }: AddClientOptions): AddClient {
  const file = fs.openSync(history, 'a');
  const limit = pLimit(concurrency);
  const statuses = new Map<number, number>();
  const waiting: { count: number; resolve: () => void }[] = [];
  const answers: { status: number; resolve: (reply: ServiceReply) => void }[] = [];
  let next = 0;
  let acknowledged = 0;
  let replayed = 0;

  const record = (entry: Entry) => {
    fs.writeSync(file, `${JSON.stringify(entry)}\n`);
    fs.fdatasyncSync(file);
  };

  const addOne = async (number: number) => {
    const random = createRandom(seed + number * 7_919);
    const body = makeMemory(number, random);
    const givesUp = random() < GIVE_UP_SHARE;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const target = await service();
      record({ kind: 'attempted', content: body.content });
      const reply = await target
        .request('POST', '/memory/add', { body, headers: { 'idempotency-key': `${seed}-${number}` } })
        .catch(() => undefined);
      if (reply === undefined) {
        if (givesUp) return;
        if (target.obituary !== undefined && target === (await service())) throw new Error(target.obituary);
        continue;
      }
      statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
      for (const { resolve } of answers.filter(({ status }) => status === reply.status)) resolve(reply);
      if (reply.status < 300) {
        // All texts differ, so only a lost Idempotency-Key could make one look like a duplicate.
        expect(reply.body, reply.text).not.toHaveProperty('deduplicated');
        if (reply.headers.get('idempotent-replayed') === 'true') replayed++;
        record({ kind: 'acknowledged', content: body.content, id: reply.body.id });
        acknowledged++;
        for (const { resolve } of waiting.filter(({ count }) => count <= acknowledged)) resolve();
        return;
      }
      expect([503, 507], reply.text).toContain(reply.status);
      await pause(RETRY_MS);
    }
    throw new Error(`add ${number} was not answered in ${MAX_ATTEMPTS} attempts: ${JSON.stringify([...statuses])}`);
  };

  return {
    statuses,
    get replayed() {
      return replayed;
    },
    async add(count) {
      const numbers = Array.from({ length: count }, () => next++);
      await Promise.all(numbers.map((number) => limit(addOne, number)));
    },
    get acknowledged() {
      return acknowledged;
    },
    untilAnswered: (status) => new Promise((resolve) => answers.push({ status, resolve })),
    untilAcknowledged: (count) =>
      new Promise((resolve) => {
        if (count <= acknowledged) resolve();
        else waiting.push({ count, resolve });
      }),
  };
}

/** Result of comparing the history with what is stored, with the names that Jepsen uses. */
export interface AddReport {
  readonly attempted: number;
  readonly acknowledged: number;
  /** Number of memories that were acknowledged and are stored. */
  readonly ok: number;
  /** Texts of the memories that were acknowledged but are not stored. */
  readonly lost: readonly string[];
  /** Texts of the memories that are stored but were never attempted. */
  readonly unexpected: readonly string[];
  /** Texts of the memories that are stored more than once. */
  readonly duplicated: readonly string[];
  /** Number of memories that are stored although no reply acknowledged them. */
  readonly recovered: number;
}

/** Compares the history with all memories that the service returns. */
export async function checkAdds(service: ServiceProcess, history: string): Promise<AddReport> {
  const attempted = new Set<string>();
  const acknowledged = new Map<string, string>();
  for (const line of fs.readFileSync(history, 'utf8').trim().split('\n')) {
    const entry = JSON.parse(line) as Entry;
    if (entry.kind === 'attempted') attempted.add(entry.content);
    else acknowledged.set(entry.content, entry.id);
  }
  const stored = await readAll(service);
  const storedIds = new Map(stored.map(({ content, id }) => [content, id]));
  const lost = [...acknowledged].filter(([content, id]) => storedIds.get(content) !== id);
  return {
    attempted: attempted.size,
    acknowledged: acknowledged.size,
    ok: acknowledged.size - lost.length,
    lost: lost.map(([content]) => content),
    unexpected: [...storedIds.keys()].filter((content) => !attempted.has(content)),
    duplicated: [...Map.groupBy(stored, ({ content }) => content)]
      .filter(([, copies]) => copies.length > 1)
      .map(([content]) => content),
    recovered: [...storedIds.keys()].filter((content) => attempted.has(content) && !acknowledged.has(content)).length,
  };
}

export function describeReport(report: AddReport): string {
  const { attempted, acknowledged, ok, lost, unexpected, duplicated, recovered } = report;
  return (
    `attempted ${attempted}, acknowledged ${acknowledged}, ok ${ok}, lost ${lost.length}, unexpected ${unexpected.length}, ` +
    `duplicated ${duplicated.length}, recovered ${recovered}`
  );
}

export function expectSound(report: AddReport): void {
  expect(report).toMatchObject({ lost: [], unexpected: [], duplicated: [], ok: report.acknowledged });
}

const PAGE = 1_000;

async function readAll(service: ServiceProcess): Promise<{ id: string; content: string }[]> {
  const all: { id: string; content: string }[] = [];
  for (;;) {
    const reply = await service.request('GET', `/memory/all?l=${PAGE}&u=${all.length}`);
    expect(reply.status, reply.text).toBe(200);
    const { items } = reply.body;
    all.push(...items);
    if (items.length < PAGE) return all;
  }
}

/**
 * Checks that the hash chain of the audit log is whole, and that its records add up to the number of stored memories,
 * since a memory and its record are written in one commit.
 */
function expectAudited(store: SqliteStore): void {
  expect(verifyAudit(store).brokenAt).toBeNull();
  const records = [...iterateAudit(store)].filter(({ action }) => ['memory.add', 'import'].includes(action));
  const added = records.reduce((sum, { detail }) => sum + Number(detail['added'] ?? detail['memories'] ?? 0), 0);
  expect(added).toBe(store.db.prepare('SELECT count(*) FROM memories').pluck().get());
}

/**
 * Reads the database file of a service that has ended, and checks that each memory is ready and has exactly one entry
 * in every table and index about memories.
 * @returns the number of memories
 */
export function expectFinished(folder: string): number {
  return withStore(folder, (store) => {
    expectNoOrphans(store);
    expectAudited(store);
    const count = (sql: string) => store.db.prepare(sql).pluck().get() as number;
    const memories = count('SELECT count(*) FROM memories');
    expect(count(`SELECT count(*) FROM memory_dynamics WHERE state = 'ready'`)).toBe(memories);
    expect(count(`SELECT count(*) FROM jobs WHERE state = 'done' AND step = 'done'`)).toBe(memories);
    expect(count('SELECT count(*) FROM jobs')).toBe(memories);
    // One window, or windows from 0 on and their mean.
    expect(
      count(`SELECT count(*) FROM (
        SELECT 1 FROM memories m LEFT JOIN vectors v ON v.memory = m.seq GROUP BY m.seq
        HAVING NOT (count(v.vector_no) = 1 AND min(window_no) = 0
          OR count(v.vector_no) > 2 AND min(window_no) = -1 AND max(window_no) = count(v.vector_no) - 2))`),
      'memories without their vectors',
    ).toBe(0);
    expect(
      count(`SELECT count(*) FROM (SELECT 1 FROM edges WHERE automatic = 1 GROUP BY src HAVING count(*) > 1)`),
      'memories with more than one automatic waypoint',
    ).toBe(0);
    const byWord = store.db.prepare('SELECT rowid FROM memory_text WHERE memory_text MATCH ?').pluck();
    const words = store.db.prepare('SELECT seq AS memoryNo, content FROM memories').all() as {
      memoryNo: number;
      content: string;
    }[];
    for (const { memoryNo, content } of words) {
      expect(byWord.all(`content : "${referenceOf(content)}"`), content).toEqual([memoryNo]);
    }
    return memories;
  });
}

/** Counts the jobs that were in flight when the service crashed, by the step that the crash interrupted. */
export function countCrashed(folder: string): { beforeEncoded: number; beforeLinked: number } {
  return withStore(folder, (store) => {
    const timelines = store.db.prepare('SELECT timeline FROM jobs').pluck().all() as string[];
    const events = timelines.map((timeline) => readEvents(timeline, 0).map(({ event }) => event));
    const follows = (names: string[], crash: number) => names.slice(crash).find((name) => name !== 'crashed');
    const crashedBefore = (step: string) =>
      events.filter((names) => names.some((name, at) => name === 'crashed' && follows(names, at) === step)).length;
    return { beforeEncoded: crashedBefore('encoded'), beforeLinked: crashedBefore('linked') };
  });
}

export function withStore<T>(folder: string, read: (store: SqliteStore) => T): T {
  const store = openStore(databaseFile(folder), { role: 'worker' });
  try {
    return read(store);
  } finally {
    store.close();
  }
}

const SUBJECTS = [
  'the release',
  'our deployment',
  'the invoice',
  'a customer',
  'the night train',
  'this garden',
  'the meeting',
];
const VERBS = [
  'was moved to',
  'depends on',
  'failed because of',
  'reminded me of',
  'was written about',
  'is waiting for',
];
const OBJECTS = [
  'the second week of March',
  'a broken cable',
  'the old harbour',
  'version four',
  'a signed contract',
  'the rain',
];
/** Share of the memories whose text is long enough for several embedding windows. */
const LONG_SHARE = 1 / 50;

/** Makes a memory that resembles many others, but has one word that no other has: its reference, such as `r000012`. */
function makeMemory(number: number, random: () => number) {
  const sentence = () => `Remember that ${pick(SUBJECTS, random)} ${pick(VERBS, random)} ${pick(OBJECTS, random)}.`;
  const sentences = Array.from({ length: random() < LONG_SHARE ? 90 : 2 }, sentence).join(' ');
  return {
    content: `${sentences} Reference r${String(number).padStart(6, '0')}`,
    user_id: `user-${number % 4}`,
    session_id: `session-${number % 50}`,
  };
}

function referenceOf(content: string): string {
  return content.slice(content.lastIndexOf(' ') + 1);
}

function pick<T>(values: readonly T[], random: () => number): T {
  return values[Math.floor(random() * values.length)] as T;
}

/** Returns the seed of a random test: CAIRN_SEED, which repeats an earlier run, or else a random number. */
export function chooseSeed(): number {
  const given = process.env.CAIRN_SEED;
  return given === undefined ? Math.floor(Math.random() * 1_000_000_000) : Number(given);
}
