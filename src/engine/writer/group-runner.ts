import { v7 as uuidv7 } from 'uuid';
import type { Config } from '../config.ts';
import { serialiseError } from '../errors.ts';
import type { Clock } from '../ports.ts';
import { busyTotals } from '../store/open-store.ts';
import type { TenantPool } from '../tenant-file/tenant-pool.ts';
import { commitGroup } from './group-commit.ts';
import type { WriteContext } from '../commands/write-context.ts';
import { failGroup, type GroupReply, type WriteGroup, type WriteReply } from './writer.ts';

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
      return replyTo(group, replies, started);
    } catch (error) {
      return replyTo(group, failGroup(group, error), started);
    }
  };
}

function replyTo({ requests }: WriteGroup, replies: readonly WriteReply[], startedAt: number): GroupReply {
  const commit = { ms: performance.now() - startedAt, requests: requests.length, isRepeated: false };
  return { replies, commit, busy: busyTotals() };
}

/**
 * Commits the groups of several rounds, all groups of one file in one transaction.
 * @param commit commits one group, as `createGroupRunner` makes it
 * @returns the replies of each round, in the order of its groups
 */
export function commitTogether(
  rounds: readonly (readonly WriteGroup[])[],
  commit: (group: WriteGroup) => GroupReply,
): GroupReply[][] {
  const replies = new Map<WriteGroup, GroupReply>();
  for (const [path, groups] of Map.groupBy(rounds.flat(), (group) => group.path)) {
    const whole = commit({ path, requests: groups.flatMap(({ requests }) => requests) });
    let at = 0;
    for (const group of groups) {
      const own = whole.replies.slice(at, at + group.requests.length);
      replies.set(group, { ...whole, replies: own, commit: { ...whole.commit, isRepeated: at > 0 } });
      at += group.requests.length;
    }
  }
  return rounds.map((groups) => groups.map((group) => replies.get(group)!));
}
