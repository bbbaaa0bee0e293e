import { randomUUID } from 'node:crypto';
import { EngineError } from '../errors.ts';
import type { Clock } from '../ports.ts';
import { openCounterFile } from './counter-file.ts';
import type { CounterPlace } from './counters.ts';

/** Interval at which a process writes its counts of open streams to the file again (ms). */
const TELL_EVERY_MS = 10_000;
/**
 * Time after which the streams of a process count as closed if it has not written its counts again (ms), because it was
 * probably killed.
 */
const SILENT_MS = 30_000;

/** Counts the open event streams of each tenant over all processes of a data folder, or all nodes of a database. */
export interface StreamShares {
  /**
   * Counts one more open stream of a tenant. While the counts cannot be written, only the streams of this process
   * count.
   * @param share greatest number of open streams that the tenant may have; 0 for no limit
   * @returns a function that counts the stream as closed, to be called once; undefined if the tenant has `share`
   *   streams open already
   */
  take(tenantId: string, share: number): (() => void) | undefined;
  close(): void;
}

const TABLES = {
  schema: `CREATE TABLE IF NOT EXISTS stream_counts (
      process TEXT NOT NULL, tenant_id TEXT NOT NULL, streams INTEGER NOT NULL, told_at REAL NOT NULL,
      PRIMARY KEY (process, tenant_id)
    ) STRICT, WITHOUT ROWID;`,
  statements: {
    others: `SELECT coalesce(sum(streams), 0) AS streams FROM stream_counts
       WHERE tenant_id = :tenant AND process <> :process AND abs(:now - told_at) < ${SILENT_MS}`,
    tell: `INSERT INTO stream_counts (process, tenant_id, streams, told_at)
       VALUES (:process, :tenant, :streams, :now)
       ON CONFLICT (process, tenant_id) DO UPDATE SET streams = excluded.streams, told_at = excluded.told_at`,
    forget: `DELETE FROM stream_counts WHERE streams = 0 OR abs(:now - told_at) >= ${SILENT_MS}`,
  },
} as const;

/**
 * Opens the counts. Their small file is made when the first limit applies. While it cannot be written, each process
 * counts only its own streams.
 */
export function openStreamShares(place: CounterPlace, clock: Clock): StreamShares {
  let shared: ReturnType<typeof openCounterFile<keyof typeof TABLES.statements>> | undefined;
  const id = randomUUID();
  /** Number of open streams of this process by tenant, including tenants without a limit. */
  const own = new Map<string, number>();
  let telling: NodeJS.Timeout | undefined;

  const change = (tenant: string, by: number) => {
    const streams = (own.get(tenant) ?? 0) + by;
    if (streams === 0) own.delete(tenant);
    else own.set(tenant, streams);
    return streams;
  };
  const tell = (tenants: Iterable<readonly [tenant: string, streams: number]>) =>
    shared?.note((statements) => {
      const now = clock.now();
      for (const [tenant, streams] of tenants) statements.tell.run({ process: id, tenant, streams, now });
    }, id);
  /**
   * Writes all counts of this process to the file again. It also removes rows without streams, and those of processes
   * that were probably killed.
   */
  const tellAll = () => {
    tell(own);
    shared?.note((statements) => statements.forget.run({ now: clock.now() }), id);
  };
  const leave = (tenant: string) => tell([[tenant, change(tenant, -1)]]);

  /**
   * Counts a stream in the file and returns true; returns false if `share` streams are open already. Throws what
   * `CounterFile.write` throws.
   */
  const enter = (tenant: string, share: number): boolean => {
    shared ??= openCounterFile(place, TABLES);
    telling ??= setInterval(tellAll, TELL_EVERY_MS).unref();
    return shared.write((statements) => {
      const now = clock.now();
      const others = statements.others.get({ tenant, process: id, now }) as { readonly streams: number };
      const streams = own.get(tenant) ?? 0;
      if (others.streams + streams >= share) return false;
      statements.tell.run({ process: id, tenant, streams: streams + 1, now });
      return true;
    }, tenant);
  };

  return {
    take(tenant, share) {
      if (share > 0 && !hasRoom(tenant, share)) return undefined;
      change(tenant, 1);
      return () => void leave(tenant);
    },
    close() {
      clearInterval(telling);
      tell([...own.keys()].map((tenant) => [tenant, 0]));
      shared?.close();
    },
  };

  function hasRoom(tenant: string, share: number): boolean {
    try {
      return enter(tenant, share);
    } catch (error) {
      if (error instanceof EngineError) return (own.get(tenant) ?? 0) < share;
      throw error;
    }
  }
}
