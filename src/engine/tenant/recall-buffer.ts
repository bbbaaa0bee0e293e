import type { RecallEffects } from '../commands/reinforce.ts';
import { serialiseError } from '../errors.ts';
import type { Logger } from '../ports.ts';
import type { RecallToKeep } from '../store/recalls.ts';
import type { Writer } from '../writer/writer.ts';
import type { RecallBuffer } from './tenant-options.ts';

/** Time from the first effects that wait to the write of all that wait by then (ms). */
const FLUSH_MS = 200;
/** Most recalls in one write. */
const BATCH = 64;
/** Most recalls of one tenant whose effects wait for the next write; beyond it the oldest are dropped. */
const MAX_HELD = 10_000;
/** Most recalls of one tenant that wait for the log, 10 to 100 kB each; beyond it the oldest are not logged. */
const MAX_HELD_FOR_LOG = 1_000;

/** What waits for the next write to a tenant's file. */
interface Owed {
  readonly effects: RecallEffects[];
  readonly kept: Promise<RecallToKeep>[];
}

/**
 * Makes a buffer that writes the effects of recalls, and the recall log, in batches, after the answers were sent. Under
 * a flood of queries the oldest are dropped, and so are those whose write fails, with a warning in the log: effects
 * only shift a ranking a little, and a recall that was not logged is answered as unknown. `flush` writes what waits,
 * and resolves once it is on disk or dropped.
 */
export function createRecallBuffer(writer: Writer, logger: Logger): RecallBuffer {
  const owed = new Map<string, Owed>();
  let timer: NodeJS.Timeout | undefined;
  let flushing: Promise<void> = Promise.resolve();

  /** Writes those of the recalls that could be built. */
  const logRecalls = async (path: string, kept: readonly Promise<RecallToKeep>[]) => {
    const built = await Promise.allSettled(kept);
    const recalls = built.filter((one) => one.status === 'fulfilled').map(({ value }) => value);
    if (recalls.length < kept.length) logger.warn({ recalls: kept.length - recalls.length }, 'recalls_not_logged');
    if (recalls.length > 0) await writer.write(path, 'logRecalls', { recalls });
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
        // Both writes share a commit.
        await Promise.all([
          orWarn('recall_effects_lost', recalls.length, () => writer.write(path, 'applyRecalls', { recalls })),
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
