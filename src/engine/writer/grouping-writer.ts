import { EngineError, reviveError } from '../errors.ts';
import type { Metrics } from '../metrics.ts';
import type { WriteCommandName, WriteInput, WriteOutput } from './commands.ts';
import type { GroupReply, Writer, WriteGroup, WriteReply } from './writer.ts';

/** Where groups are committed: on this thread or on the writer thread. */
export interface GroupTransport {
  commit(groups: readonly WriteGroup[]): Promise<readonly GroupReply[]>;
  evict(path: string): Promise<void>;
  close(): Promise<void>;
}

interface Pending {
  readonly path: string;
  readonly name: WriteCommandName;
  readonly input: unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

const GROUP_REQUESTS_MAX = 256;

/** Sends one round of groups at a time; what arrives meanwhile waits for the next round. */
export function createGroupingWriter(transport: GroupTransport, metrics: Metrics): Writer {
  let waiting: Pending[] = [];
  let round: Promise<void> | undefined;
  let closed = false;

  const run = async () => {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, GROUP_REQUESTS_MAX);
      waiting = waiting.slice(GROUP_REQUESTS_MAX);
      await commitRound(batch);
    }
    round = undefined;
  };

  const commitRound = async (batch: readonly Pending[]) => {
    const byPath = Map.groupBy(batch, (pending) => pending.path);
    const groups = [...byPath].map(([path, members]) => ({
      path,
      requests: members.map(({ name, input }) => ({ name, input })),
    }));
    let replies: readonly GroupReply[];
    try {
      replies = await transport.commit(groups);
    } catch (error) {
      for (const pending of batch) pending.reject(error);
      return;
    }
    for (const [index, members] of [...byPath.values()].entries()) {
      const reply = replies[index] as GroupReply;
      metrics.commits.observe(reply.commitMs / 1000);
      metrics.commitRequests.observe(members.length);
      for (const [position, pending] of members.entries()) settle(pending, reply.replies[position] as WriteReply);
    }
  };

  return {
    write<N extends WriteCommandName>(path: string, name: N, input: WriteInput<N>): Promise<WriteOutput<N>> {
      if (closed) return Promise.reject(new EngineError('unavailable', 'shutting down', { retryAfterMs: 1_000 }));
      return new Promise((resolve, reject) => {
        waiting.push({ path, name, input, resolve: resolve as (value: unknown) => void, reject });
        // Starts after the current turn of the event loop, so that requests read from sockets together are committed together.
        round ??= new Promise<void>((begin) => setImmediate(begin)).then(run);
      });
    },
    evict: (path) => transport.evict(path),
    async close() {
      closed = true;
      await round;
      await transport.close();
    },
  };
}

function settle(pending: Pending, reply: WriteReply): void {
  if (reply.ok) pending.resolve(reply.value);
  else pending.reject(reviveError(reply.error));
}
