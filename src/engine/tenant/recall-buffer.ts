import type { RecallEffects } from '../commands/reinforce.ts';
import { serialiseError } from '../errors.ts';
import type { Logger } from '../ports.ts';
import type { RecallToKeep } from '../store/recalls.ts';
import type { Writer } from '../writer/writer.ts';
import type { RecallBuffer } from './tenant-options.ts';

/**
 * Longest time for which the effects of a recall (what an answered query strengthens) wait, so that several are written
 * together (ms).
 */
const FLUSH_MS = 200;
/**
 * Greatest number of recalls in one write. It also bounds the rows that they change or log together, unless a single
 * recall has more.
 */
const BATCH = 64;
const BATCH_ROWS = 1_000;
/**
 * Greatest number of recalls (answered queries) of a tenant whose effects wait for a write; beyond it the oldest are
 * dropped.
 */
const MAX_HELD = 10_000;
/**
 * Greatest number of recalls (answered queries) of one tenant that wait to be logged, 10 to 100 kB each; beyond it the
 * oldest are not logged.
 */
const MAX_HELD_FOR_LOG = 1_000;

/** The effects and log entries of recalls (answered queries) that wait for the next write to a tenant's file. */
interface Owed {
  readonly effects: RecallEffects[];
  readonly kept: Promise<RecallToKeep>[];
}

/**
 * Makes a buffer that writes the effects of recalls (what answered queries strengthen), and the recall log, in batches,
 * after the answers were sent. Beyond 10,000 effects or 1,000 log entries of a tenant the oldest are dropped silently;
 * if a write fails, its entries are dropped with a warning. Lost effects only shift a ranking a little, and a recall
 * that was not logged is answered as unknown. `flush` writes everything that waits, and resolves once it is on disk or
 * dropped.
 */
export function createRecallBuffer(writer: Writer, logger: Logger): RecallBuffer {
  const owed = new Map<string, Owed>();
  let timer: NodeJS.Timeout | undefined;
  let flushing: Promise<void> = Promise.resolve();

  /** Writes recalls (answered queries) to the log. A recall whose promise rejects is left out. */
  const logRecalls = async (path: string, kept: readonly Promise<RecallToKeep>[]) => {
    const built = await Promise.allSettled(kept);
    const recalls = built.filter((one) => one.status === 'fulfilled').map(({ value }) => value);
    if (recalls.length < kept.length) logger.warn({ recalls: kept.length - recalls.length }, 'recalls_not_logged');
    for (const some of slicesOf(recalls, ({ candidates }) => candidates.length))
      await writer.write(path, 'logRecalls', { recalls: some });
  };

  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    const batches = [...owed].flatMap(([path, { effects, kept }]) =>
      Array.from({ length: Math.ceil(Math.max(effects.length, kept.length) / BATCH) }, (_, n) => ({
        path,
        recalls: effects.slice(n * BATCH, (n + 1) * BATCH),
        kept: kept.slice(n * BATCH, (n + 1) * BATCH),
      })),
    );
    owed.clear();
    const orWarn = async (event: string, recalls: number, write: () => Promise<void>) => {
      if (recalls === 0) return;
      try {
        await write();
      } catch (error) {
        logger.warn({ code: serialiseError(error).code, recalls }, event);
      }
    };
    flushing = flushing.then(async () => {
      for (const { path, recalls, kept } of batches) {
        // The first writes of both share a commit.
        await Promise.all([
          orWarn('recall_effects_lost', recalls.length, () => applyRecalls(writer, path, recalls)),
          orWarn('recalls_not_logged', kept.length, () => logRecalls(path, kept)),
        ]);
      }
    });
    return flushing;
  };

  const owedTo = (path: string): Owed => {
    timer ??= setTimeout(() => void flush(), FLUSH_MS);
    const known = owed.get(path) ?? { effects: [], kept: [] };
    owed.set(path, known);
    return known;
  };
  return {
    add(path, recall) {
      const { effects } = owedTo(path);
      effects.push(recall);
      if (effects.length > MAX_HELD) effects.shift();
    },
    log(path, recall) {
      const { kept } = owedTo(path);
      // Until it is awaited below.
      recall.catch(() => {});
      kept.push(recall);
      if (kept.length > MAX_HELD_FOR_LOG) void kept.shift();
    },
    flush,
  };
}

async function applyRecalls(writer: Writer, path: string, recalls: readonly RecallEffects[]): Promise<void> {
  const rowsOf = ({ memories, waypoints }: RecallEffects) => memories.length + waypoints.length;
  for (const some of slicesOf(recalls, rowsOf)) await writer.write(path, 'applyRecalls', { recalls: some });
}

/**
 * Cuts a list into slices of at most 1,000 rows, or of one item with more, so that other writes can be made in between.
 */
function slicesOf<Item>(items: readonly Item[], rowsOf: (item: Item) => number): readonly Item[][] {
  const slices: Item[][] = [];
  let left = 0;
  for (const item of items) {
    if (slices.length === 0 || rowsOf(item) > left) {
      slices.push([]);
      left = BATCH_ROWS;
    }
    slices.at(-1)!.push(item);
    left -= rowsOf(item);
  }
  return slices;
}
