/** Ledgers of many tenants in PostgreSQL, as rows alone: a store for each would take long. */
import pg from 'pg';
import { vi } from 'vitest';
import type { Config } from '../../src/engine/config.ts';
import { tenantFile, type Placement } from '../../src/engine/control/tenant-paths.ts';
import type { PostgresServer } from './postgres.ts';

interface InsertedLedgers {
  readonly config: Config;
  /** Address of the database; by default that of OM_DATABASE_URL. */
  readonly database?: string;
  readonly placement?: Placement;
  readonly prefix: string;
  readonly count: number;
}

/** Makes rows of tenants, and of one due job of each; returns the tenants' paths. */
export async function insertLedgers(
  server: PostgresServer,
  { config, database = config.OM_DATABASE_URL!, placement, prefix, count }: InsertedLedgers,
): Promise<string[]> {
  await server.read(
    database,
    `INSERT INTO tenants (id, writes) SELECT '${prefix}' || n, 1 FROM generate_series(0, ${count - 1}) AS n;
     INSERT INTO jobs (tenant, seq, uuid, kind, memory, step, state, run_at, created_at, updated_at)
       SELECT tenant, 1, uuid_send(gen_random_uuid()), 'memory', 1, 'encode', 'queued', 1, 1, 1
       FROM tenants WHERE id LIKE '${prefix}%'`,
  );
  return Array.from({ length: count }, (_, n) => tenantFile(config.paths, `${prefix}${n}`, placement));
}

/** Lets the statement that reads statuses fail with an SQLSTATE when it reads ledgers of certain tenants. */
export async function breakLedgers(
  server: PostgresServer,
  { database, prefix, code }: { readonly database: string; readonly prefix: string; readonly code: string },
): Promise<void> {
  await server.read(
    database,
    `ALTER FUNCTION ledger_statuses RENAME TO sound_statuses;
     CREATE FUNCTION ledger_statuses(integer[], text[], bigint, bigint)
       RETURNS TABLE (number integer, interactive text[], bulk text[], has_lapsed boolean, is_unfinished boolean)
       LANGUAGE plpgsql AS $$ BEGIN
         IF (SELECT count(*) FROM tenants AS t WHERE t.tenant = ANY ($1) AND t.id LIKE '${prefix}%') > 0 THEN
           RAISE EXCEPTION 'broken' USING ERRCODE = '${code}';
         END IF;
         RETURN QUERY SELECT * FROM sound_statuses($1, $2, $3, $4);
       END $$`,
  );
}

/** Returns how many ledgers each statement reads that reads statuses while `work` runs. */
export async function countRead(work: () => Promise<unknown>): Promise<number[]> {
  const asked = vi.spyOn(pg.Client.prototype, 'query');
  await work();
  const statements = asked.mock.calls as unknown as readonly [{ name?: string; values?: unknown[][] }][];
  const counts = statements.flatMap(([{ name, values }]) => (name === 'statuses' ? [values![0]!.length] : []));
  asked.mockRestore();
  return counts;
}
