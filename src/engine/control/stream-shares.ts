import { randomUUID } from 'node:crypto';
import { EngineError } from '../errors.ts';
import type { Clock } from '../ports.ts';
import { openCounterFile } from './counter-file.ts';

/** Interval at which a process says that its streams are still open (ms). */
const TELL_EVERY_MS = 10_000;
/** Time without word after which the streams of a process count as closed (ms): it was killed. */
const SILENT_MS = 30_000;

/** The event streams that tenants keep open, counted over all processes of a data folder. */
export interface StreamShares {
  /**
   * Takes a stream of a tenant's share.
   * @param share most streams of the tenant; 0 for any number
   * @returns a function that gives it back; undefined if the share is taken
   */
  take(tenantId: string, share: number): (() => void) | undefined;
  close(): void;
}

const TABLES = {
  schema: `CREATE TABLE IF NOT EXISTS open_streams (
      process TEXT NOT NULL, tenant TEXT NOT NULL, streams INTEGER NOT NULL, told_at REAL NOT NULL,
      PRIMARY KEY (process, tenant)
    ) STRICT, WITHOUT ROWID;`,
  statements: {
    others: `SELECT coalesce(sum(streams), 0) AS streams FROM open_streams
       WHERE tenant = :tenant AND process <> :process AND abs(:now - told_at) < ${SILENT_MS}`,
    tell: `INSERT INTO open_streams VALUES (:process, :tenant, :streams, :now)
       ON CONFLICT (process, tenant) DO UPDATE SET streams = excluded.streams, told_at = excluded.told_at`,
    forget: `DELETE FROM open_streams WHERE streams = 0 OR abs(:now - told_at) >= ${SILENT_MS}`,
  },
} as const;

/**
 * Opens the counts. Their small file is made when the first share applies. While it cannot be written, each process
 * counts its own streams alone.
 */
export function openStreamShares(file: string, clock: Clock): StreamShares {
  let shared: ReturnType<typeof openCounterFile<keyof typeof TABLES.statements>> | undefined;
  const id = randomUUID();
  /** Streams of this process by tenant, those of tenants without a share included. */
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
      statements.forget.run({ now });
    });
  const leave = (tenant: string) => tell([[tenant, change(tenant, -1)]]);

  /** Counts a stream in the file unless the share is taken. Throws what `CounterFile.write` does. */
  const enter = (tenant: string, share: number): boolean => {
    shared ??= openCounterFile(file, TABLES);
    telling ??= setInterval(() => tell(own), TELL_EVERY_MS).unref();
    return shared.write((statements) => {
      const now = clock.now();
      const others = statements.others.get({ tenant, process: id, now }) as { readonly streams: number };
      const streams = own.get(tenant) ?? 0;
      if (others.streams + streams >= share) return false;
      statements.tell.run({ process: id, tenant, streams: streams + 1, now });
      return true;
    });
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
