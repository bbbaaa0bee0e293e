import type { RecallEffects } from '../commands/reinforce.ts';
import pLimit, { type LimitFunction } from 'p-limit';
import { serialiseError } from '../errors.ts';
import type { Logger } from '../ports.ts';
import type { RecallToKeep } from '../store/recalls.ts';
import { takeTurn } from '../turns.ts';
import type { Writer } from '../writer/writer.ts';
import type { RecallBuffer } from './tenant-options.ts';

/**
 * Time from the first recall (answered query) that waits for a write to a file until the write begins, so that several
 * are written together (ms). While another write is under way, they wait longer.
 */
const FLUSH_MS = 200;
/** Greatest number of recalls (answered queries) that one write logs, and whose effects one write stores. */
const BATCH = 64;
/**
 * Greatest number of rows that the effects in one write change together, and that the recalls in one write log; one
 * recall alone may have more. A user or session that a logged recall names counts as a row, since its hash is compared
 * with those that deletes have noted.
 */
const BATCH_ROWS = 1_000;
/** Greatest length of the texts that one write logs, in UTF-16 code units; a single recall may have more. */
const BATCH_LENGTH = 256 * 1024;
/**
 * Greatest number of recalls (answered queries) of a tenant whose effects wait for a write; beyond it the oldest are
 * dropped.
 */
const MAX_HELD = 10_000;
/**
 * Greatest number of rows that the waiting effects of a tenant change, some 200 bytes each; beyond it the oldest are
 * dropped.
 */
const MAX_HELD_ROWS = 200_000;
/**
 * Greatest number of recalls (answered queries) of one tenant that wait to be logged, 10 to 200 kB each; beyond it the
 * oldest are not logged.
 */
const MAX_HELD_FOR_LOG = 1_000;
/**
 * Greatest length of what waits to be logged of all tenants together (UTF-16 code units); beyond it the oldest recalls
 * of the tenant that holds most are not logged.
 */
const MAX_LENGTH = 64 * 1024 * 1024;

/**
 * Greatest number of tenants' files to which this buffer writes at the same time. Files take equal turns at the writer,
 * so that many writes of recalls would delay those for which clients wait.
 */
const MAX_FILES = 8;

/** Something that waits for a write; `no` counts up over everything that the buffer was given. */
interface Waiting<Item> {
  readonly no: number;
  readonly item: Item;
}

/** A recall (answered query) that waits to be logged. */
interface Kept {
  /** The recall, screened; undefined if it cannot be logged, or was dropped before it was built. It never rejects. */
  built: Promise<RecallToKeep | undefined>;
  /** Length of its texts, and of the users and sessions that it names, in UTF-16 code units; 0 until it is built. */
  length: number;
  /** Whether this recall waits no more: it is being written, or was dropped. */
  isGone: boolean;
}

/** The effects and log entries of recalls (answered queries) that wait for a write to a tenant's file, oldest first. */
interface Owed {
  readonly effects: Waiting<RecallEffects>[];
  /** Number of rows that `effects` change. */
  rows: number;
  readonly kept: Waiting<Kept>[];
  /** Sum of the lengths (`Kept.length`) of what is in `kept`. */
  length: number;
  /** Everything in the buffer with a `no` up to this number is to be written now, without waiting for the timer. */
  target: number;
  /** Lowest `no` of what the write under way writes; infinite if none is under way. */
  writing: number;
  /** Resolves when the write under way has ended, or at once if none is. */
  round: Promise<void>;
  isWriting: boolean;
  /** The timer at whose end what waits is written; undefined if none runs. */
  timer: NodeJS.Timeout | undefined;
}

/**
 * Makes a buffer that writes the effects of recalls (what answered queries strengthen), and the recall log, in batches,
 * after the answers were sent. Each tenant's file has its own writes, one after the other; what waits for them stays in
 * the buffer. Beyond 10,000 effects, 200,000 rows of effects or 1,000 log entries of a tenant, or 64 Mi code units of
 * log entries of all, the oldest are dropped silently; if a write fails, its entries are dropped with a warning. Lost
 * effects only shift a ranking a little, and a recall that was not logged is answered as unknown.
 */
export function createRecallBuffer(writer: Writer, logger: Logger): RecallBuffer {
  const owed = new Map<string, Owed>();
  const limit = pLimit(MAX_FILES);
  let lastNo = 0;

  const owedTo = (path: string): Owed => {
    const own = owed.get(path) ?? createOwed();
    owed.set(path, own);
    own.timer ??= setTimeout(() => begin(path, own), FLUSH_MS);
    return own;
  };

  /** Begins to write what is owed to a tenant's file; if a write is under way, it goes on until that is written. */
  function begin(path: string, own: Owed): void {
    clearTimeout(own.timer);
    own.timer = undefined;
    own.target = lastNo;
    if (!own.isWriting) void writeOn(path, own);
  }

  async function writeOn(path: string, own: Owed): Promise<void> {
    own.isWriting = true;
    while (oldestOf(own) <= own.target) {
      own.round = writeSome({ path, writer, logger, limit }, own);
      await own.round;
    }
    own.isWriting = false;
    if (oldestOf(own) === Infinity) {
      clearTimeout(own.timer);
      owed.delete(path);
    }
  }

  /** Drops the oldest log entries of the tenants that hold most, while all together hold too much. */
  function dropBeyondAll(): void {
    const all = [...owed.values()];
    let total = all.reduce((sum, { length }) => sum + length, 0);
    while (total > MAX_LENGTH) {
      const most = all.reduce((one, other) => (other.length > one.length ? other : one));
      total -= removeOldest(most);
    }
  }

  return {
    add(path, recall) {
      const own = owedTo(path);
      own.effects.push({ no: (lastNo += 1), item: recall });
      own.rows += rowsOf(recall);
      while (own.effects.length > MAX_HELD || (own.rows > MAX_HELD_ROWS && own.effects.length > 1))
        removeEffects(own, 1);
    },
    log(path, recall) {
      const own = owedTo(path);
      own.kept.push({ no: (lastNo += 1), item: keptOf(own, recall, dropBeyondAll) });
      if (own.kept.length > MAX_HELD_FOR_LOG) removeOldest(own);
    },
    async flush(path) {
      const upTo = lastNo;
      const flushed = [...owed].filter(([one]) => path === undefined || one === path);
      await Promise.all(
        flushed.map(async ([one, own]) => {
          begin(one, own);
          while (oldestOf(own) <= upTo) await own.round;
        }),
      );
    },
  };
}

function createOwed(): Owed {
  return {
    effects: [],
    rows: 0,
    kept: [],
    length: 0,
    target: 0,
    writing: Infinity,
    round: Promise.resolve(),
    isWriting: false,
    timer: undefined,
  };
}

/**
 * Length of what is stored of a user or session that a recall names, beyond its name: quotation marks and a comma.
 */
const NAME_LENGTH = 3;

/** Lists the users and sessions that a recall names. Each is stored, and compared with those that deletes named. */
const namesOf = ({ asked }: RecallToKeep) => [...(asked.userIds ?? []), ...(asked.sessionIds ?? [])];

/** Makes a log entry of a recall, which counts the length of its texts once it is built, and then calls `counted`. */
function keptOf(own: Owed, recall: Promise<RecallToKeep>, counted: () => void): Kept {
  const kept: Kept = { built: Promise.resolve(undefined), length: 0, isGone: false };
  const count = (built: RecallToKeep) => {
    if (kept.isGone) return undefined;
    const names = namesOf(built).reduce((sum, name) => sum + name.length + NAME_LENGTH, 0);
    kept.length = built.candidates.reduce((sum, { data }) => sum + data.length, built.head.length + names);
    own.length += kept.length;
    counted();
    return built;
  };
  kept.built = recall.then(count, () => undefined);
  return kept;
}

/** Returns the lowest `no` of what waits or is being written; infinite if nothing is owed. */
function oldestOf({ effects, kept, writing }: Owed): number {
  return Math.min(effects[0]?.no ?? Infinity, kept[0]?.no ?? Infinity, writing);
}

/** Removes the oldest log entry from those that wait. @returns the length of its texts */
function removeOldest(own: Owed): number {
  const { item } = own.kept.shift()!;
  item.isGone = true;
  own.length -= item.length;
  return item.length;
}

interface Target {
  readonly path: string;
  readonly writer: Writer;
  readonly limit: LimitFunction;
  readonly logger: Logger;
}

/** Writes the oldest of what is owed to a tenant's file now. It never throws. */
async function writeSome({ path, writer, logger, limit }: Target, own: Owed): Promise<void> {
  const orWarn = async (event: string, recalls: number, write: () => Promise<unknown>) => {
    if (recalls === 0) return;
    try {
      await write();
    } catch (error) {
      logger.warn({ code: serialiseError(error).code, recalls }, event);
    }
  };
  await takeTurn();
  own.writing = oldestOf(own);
  const recalls = takeEffects(own);
  const { kept, failed } = await takeKept(own);
  if (failed > 0) logger.warn({ recalls: failed }, 'recalls_not_logged');
  // Both share a commit.
  await limit(() =>
    Promise.all([
      orWarn('recall_effects_lost', recalls.length, () => writer.write(path, 'applyRecalls', { recalls })),
      orWarn('recalls_not_logged', kept.length, () => writer.write(path, 'logRecalls', { recalls: kept })),
    ]),
  );
  own.writing = Infinity;
}

/** Number of rows that the effects of a recall change. */
const rowsOf = ({ memories, waypoints }: RecallEffects) => memories.length + waypoints.length;

/** Removes the oldest `count` effects from those that wait, and returns them. */
function removeEffects(own: Owed, count: number): RecallEffects[] {
  const removed = own.effects.splice(0, count).map(({ item }) => item);
  for (const effects of removed) own.rows -= rowsOf(effects);
  return removed;
}

/** Takes the oldest effects that one write may have. */
function takeEffects(own: Owed): RecallEffects[] {
  const { effects, target } = own;
  let [n, rows] = [0, 0];
  for (const { no, item } of effects.slice(0, BATCH)) {
    rows += rowsOf(item);
    if (no > target || (n > 0 && rows > BATCH_ROWS)) break;
    n += 1;
  }
  return removeEffects(own, n);
}

/** Takes the oldest recalls that one write may log. `failed` counts those that could not be built. */
async function takeKept(own: Owed): Promise<{ readonly kept: readonly RecallToKeep[]; readonly failed: number }> {
  const kept: RecallToKeep[] = [];
  let [rows, length, failed] = [0, 0, 0];
  while (kept.length < BATCH && (own.kept[0]?.no ?? Infinity) <= own.target) {
    const { item } = own.kept[0]!;
    const recall = await item.built;
    if (item.isGone) continue;
    rows += recall === undefined ? 0 : recall.candidates.length + namesOf(recall).length;
    length += item.length;
    if (kept.length > 0 && (rows > BATCH_ROWS || length > BATCH_LENGTH)) break;
    removeOldest(own);
    if (recall === undefined) failed += 1;
    else kept.push(recall);
  }
  return { kept, failed };
}
