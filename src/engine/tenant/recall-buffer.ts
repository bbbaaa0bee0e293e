import type { RecallEffects } from '../commands/reinforce.ts';
import { serialiseError } from '../errors.ts';
import type { Logger } from '../ports.ts';
import type { Writer } from '../writer/writer.ts';
import type { RecallBuffer } from './tenant-options.ts';

const FLUSH_MS = 200;
const BATCH = 64;
const HELD_MOST = 10_000;

/**
 * Writes what recalls owe in batches, some time after the answer went out. Under a flood of queries the oldest effects are dropped:
 * they are a nudge to a ranking, not somebody's data.
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
      if (list.length > HELD_MOST) list.shift();
      timer ??= setTimeout(() => void flush(), FLUSH_MS);
    },
    flush,
  };
}
