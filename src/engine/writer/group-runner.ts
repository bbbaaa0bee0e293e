import { v7 as uuidv7 } from 'uuid';
import type { Config } from '../config.ts';
import { serialiseError } from '../errors.ts';
import type { Clock } from '../ports.ts';
import { busyTotals } from '../store/open-store.ts';
import type { TenantPool } from '../tenant-file/tenant-pool.ts';
import { commitGroup } from './group-commit.ts';
import type { WriteContext } from '../commands/write-context.ts';
import { failGroup, type GroupReply, type WriteGroup } from './writer.ts';

/**
 * Creates a function that commits groups on the connections of one thread. The function never throws: if a group fails
 * as a whole, each of its replies holds the error.
 */
export function createGroupRunner({ pool, config, clock }: { pool: TenantPool; config: Config; clock: Clock }) {
  const backlogs = new Map<string, WriteContext['backlog']>();
  const backlogOf = (path: string) => {
    // Nothing is known before the first count, and an upper bound of infinity forces one.
    let backlog = backlogs.get(path);
    if (backlog === undefined) backlogs.set(path, (backlog = { atMost: Infinity }));
    return backlog;
  };
  return (group: WriteGroup): GroupReply => {
    const started = performance.now();
    try {
      const { store, indexes } = pool.get(group.path);
      const context = { store, indexes, config, now: clock.now(), newId: uuidv7, backlog: backlogOf(group.path) };
      const replies = commitGroup(context, group.requests).map((result) =>
        result.ok ? result : { ok: false as const, error: serialiseError(result.error) },
      );
      return { replies, commitMs: performance.now() - started, busy: busyTotals() };
    } catch (error) {
      return { replies: failGroup(group, error), commitMs: performance.now() - started, busy: busyTotals() };
    }
  };
}
