import type { Config } from '../config.ts';
import type { Clock } from '../ports.ts';
import { busyTotals } from '../store/open-store.ts';
import type { TenantPool } from '../tenant-file/tenant-pool.ts';
import { createGroupRunner } from './group-runner.ts';
import type { GroupTransport } from './grouping-writer.ts';
import type { CommitFigures, WriteReply } from './writer.ts';

/**
 * Makes the transport that commits on the calling thread: for the command line, for workers and for tests with a clock
 * of their own. Its `close` closes the pool.
 */
export function createInlineTransport(options: { pool: TenantPool; config: Config; clock: Clock }): GroupTransport {
  const commit = createGroupRunner(options);
  return {
    async commit(group) {
      const replies: WriteReply[] = [];
      const counted: CommitFigures[] = [];
      let position = 0;
      // A commit may end before the last request, as one with long texts does.
      while (replies.length < group.requests.length) {
        const done = commit({ ...group, requests: group.requests.slice(replies.length) });
        replies.push(...done.replies);
        counted.push(done.figures);
        ({ position } = done);
      }
      return { replies, commit: counted.at(-1)!, counted, position, busy: busyTotals() };
    },
    evict: async (path) => options.pool.evict(path),
    close: async () => options.pool.close(),
  };
}
