import { hold, type HeldConnection, type TenantPlace } from './tenant-database.ts';

/** Reads stamps of tenants of one database: texts that differ after every write to the tenant. */
export interface StampReader {
  /** Returns the stamps of those of the tenants that the database has, by id, in one statement. */
  read(ids: readonly string[]): ReadonlyMap<string, string>;
  close(): void;
}

const READ = `SELECT id, tenant, writes, placement FROM tenants
  WHERE id IN (SELECT json_array_elements_text($1::json))`;

/** Makes a reader of stamps. It uses the connection of this thread's looks, which waits for 5 s at most. */
export function openStampReader(place: Pick<TenantPlace, 'database' | 'name'>): StampReader {
  let held: HeldConnection | undefined;
  return {
    read(ids) {
      held ??= hold('look', place);
      const { rows } = held.connection().query(READ, [JSON.stringify(ids)], 'stamps_of_tenants');
      return new Map(rows.map(([id, ...stamp]) => [id as string, stamp.join()]));
    },
    close: () => held?.release(),
  };
}
