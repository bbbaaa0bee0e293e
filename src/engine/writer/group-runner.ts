import { v7 as uuidv7 } from 'uuid';
import type { Config } from '../config.ts';
import { serialiseError } from '../errors.ts';
import type { Clock } from '../ports.ts';
import type { OpenTenant } from '../tenant-file/open-tenant.ts';
import type { TenantPool } from '../tenant-file/tenant-pool.ts';
import { commitGroup } from './group-commit.ts';
import type { WriteContext } from '../commands/write-context.ts';
import { failGroup, type CommitFigures, type WriteGroup, type WriteReply } from './writer.ts';

/**
 * Result of one commit: the replies of the requests that it contained, and its duration and size. The requests are the
 * first ones of a group, at least one.
 */
export interface Committed {
  readonly replies: readonly WriteReply[];
  readonly figures: CommitFigures;
  /** Position of the tenant after the commit (`Store.position`); 0 for a file, and if the commit failed. */
  readonly position: number;
}

/**
 * Commits requests of a group in order: at least one, and no further one after `isOver` returns true or a limit of
 * `commitGroup` is reached. The caller runs the others in further commits.
 */
export type GroupRunner = (group: WriteGroup, isOver?: () => boolean) => Committed;

/**
 * Creates a function that commits groups on the connections of one thread. The created function never throws: if a
 * commit fails as a whole, each reply holds the error.
 */
export function createGroupRunner({
  pool,
  config,
  clock,
}: {
  pool: TenantPool;
  config: Config;
  clock: Clock;
}): GroupRunner {
  // What is known of a file is forgotten with it, once it is closed: the next one at its path may be another tenant's.
  const backlogs = new WeakMap<OpenTenant, WriteContext['backlog']>();
  const backlogOf = (tenant: OpenTenant) => {
    // Nothing is known before the first count, and an upper bound of infinity forces one.
    let backlog = backlogs.get(tenant);
    if (backlog === undefined) backlogs.set(tenant, (backlog = { atMost: Infinity }));
    return backlog;
  };
  return (group, isOver) => {
    const startedAt = performance.now();
    let replies: readonly WriteReply[];
    let position = 0;
    try {
      const tenant = pool.get(group.path);
      const context = {
        store: tenant.store,
        // Reading the indexes reads the models from the file, which few commands need.
        get indexes() {
          return tenant.indexes;
        },
        config,
        now: clock.now(),
        newId: uuidv7,
        backlog: backlogOf(tenant),
      };
      replies = commitGroup(context, group.requests, isOver).map((result) =>
        result.ok ? result : { ok: false as const, error: serialiseError(result.error) },
      );
      ({ position } = tenant.store);
    } catch (error) {
      replies = failGroup(group, error);
    }
    return { replies, figures: { ms: performance.now() - startedAt, requests: replies.length }, position };
  };
}
