import type { Tenant } from '../engine.ts';
import { takeTurn } from '../turns.ts';
import type { Json, LogChange } from '../types.ts';
import { quotaOf } from './quota-of.ts';
import { ERASE_SLICE } from '../commands/erase.ts';
import type { TenantOptions } from './tenant-options.ts';
import { guardOf } from './tenant-privacy.ts';

type LogMethods = Pick<Tenant, 'changeLog' | 'readLog' | 'popLog' | 'clearLog'>;

/** Makes the methods by which a tenant keeps session logs. */
export function createSessionLogMethods(options: TenantOptions): LogMethods {
  const { path, readers, writer } = options;
  const guard = guardOf(options);
  const screened = async (items: readonly Json[]) => {
    if (!guard.isOn()) return items;
    const kept: Json[] = [];
    for (const item of items) kept.push((await guard.fields({ value: item })).fields.value);
    return kept;
  };
  /**
   * Screens the items of a change for secrets and personal data. The items that the change expects in the log are
   * screened as well, since they are compared with stored items, which were screened when they were added.
   */
  const screenedChange = async (change: LogChange): Promise<LogChange> => {
    const { items, replaces } = change;
    return {
      ...change,
      items: await screened(items),
      replaces:
        replaces !== undefined && 'expected' in replaces ? { expected: await screened(replaces.expected) } : replaces,
    };
  };
  return {
    async changeLog(place, change) {
      const screened = await screenedChange(change);
      await takeTurn();
      return writer.write(path, 'changeLog', { place, change: screened, quota: quotaOf(options) });
    },
    readLog: (place, page) => readers.read(path, 'readLog', { place, page }),
    popLog: (place, { ifTotal } = {}) => writer.write(path, 'popLog', { place, ifTotal }),
    async clearLog(place) {
      const items = await writer.write(path, 'clearLog', { place });
      if (items > 0) await eraseLogItems(options);
      return items;
    },
  };
}

/**
 * Erases the items of all cleared and erased logs, which can no longer be read, in commits of at most `ERASE_SLICE`
 * each.
 * @returns the number of items
 */
export async function eraseLogItems({ path, writer }: Pick<TenantOptions, 'path' | 'writer'>): Promise<number> {
  for (let items = 0; ;) {
    const slice = await writer.write(path, 'eraseLogItems', { limit: ERASE_SLICE });
    items += slice.items;
    if (slice.isDone) return items;
  }
}
