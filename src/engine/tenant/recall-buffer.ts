import type { RecallEffects } from '../commands/reinforce.ts';
import { serialiseError } from '../errors.ts';
import type { Logger } from '../ports.ts';
import type { Writer } from '../writer/writer.ts';
import type { RecallBuffer } from './tenant-options.ts';

/** Time from the first effects that wait to the write of all that wait by then (ms). */
const FLUSH_MS = 200;
/** Most recalls in one write. */
const BATCH = 64;
/** Most recalls of one tenant that wait for the next write; beyond it the oldest are dropped. */
const MAX_HELD = 10_000;

/**
 * Makes a buffer that writes the effects of recalls in batches, after the answers were sent. Under a flood of queries
 * the oldest effects are dropped, and so are those whose write fails, with a warning in the log: they only shift a
 * ranking a little and are nobody's data. `flush` writes what waits, and resolves once it is on disk or dropped.
 */
export function createRecallBuffer(writer: Writer, logger: Logger): RecallBuffer & { flush(): Promise<void> } {
  const owed = new Map<string, RecallEffects[]>();
  let timer: NodeJS.Timeout | undefined;
  let flushing: Promise<void> = Promise.resolve();

  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    const batches = [...owed].flatMap(([path, effects]) =>
      Array.from({ length: Math.ceil(effects.length / BATCH) }, (_, n) => ({
        path,
        recalls: effects.slice(n * BATCH, (n + 1) * BATCH),
      })),
    );
    owed.clear();
    flushing = flushing.then(async () => {
      for (const { path, recalls } of batches) {
        try {
          await writer.write(path, 'applyRecalls', { recalls });
        } catch (error) {
          logger.warn({ code: serialiseError(error).code, recalls: recalls.length }, 'recall_effects_lost');
        }
      }
    });
    return flushing;
  };

  return {
    add(path, effects) {
      const list = owed.get(path) ?? [];
      owed.set(path, list);
      list.push(effects);
      if (list.length > MAX_HELD) list.shift();
      timer ??= setTimeout(() => void flush(), FLUSH_MS);
    },
    flush,
  };
}
